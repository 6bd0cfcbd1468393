package servertest

import (
	"context"
	"database/sql"
	"io"
	"runtime"
	"time"
)

// waitReady waits until a server answers. If the server does not answer in time, waitReady closes
// alive, which ends the server.
func waitReady(alive io.Closer, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			alive.Close()
			return err
		case <-again.C:
		}
	}
}

// restart sends a command to the shell that runs a server. The shell then crashes the server and
// starts it again. restart waits until the server is ready.
func restart(shell io.Writer, admin *sql.DB, ready func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	before, err := admin.Conn(ctx) // a connection to the server before the crash
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
