package servertest

import (
	"context"
	"database/sql"
	"io"
	"runtime"
)

// restart has the shell that runs a server crash it and start it again, and
// waits until it is ready.
func restart(shell io.Writer, admin *sql.DB, ready func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	before, err := admin.Conn(ctx) // of the server that is to crash
	if err != nil {
		return err
	}
	defer before.Close()
	if _, err := io.WriteString(shell, "crash\n"); err != nil {
		return err
	}
	for before.PingContext(ctx) == nil {
		runtime.Gosched()
	}
	return ready()
}
