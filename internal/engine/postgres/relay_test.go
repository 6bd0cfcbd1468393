package postgres

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRelayedDumpIsTheSame checks that pg_restore writes the same SQL for a dump whose rows
// bypassed pg_dump as for a dump that pg_dump wrote alone.
func TestRelayedDumpIsTheSame(t *testing.T) {
	t.Parallel()
	url := various(t)
	raw, err := exec.CommandContext(t.Context(), filepath.Join(servertest.PostgresBin(), "pg_dump"), "-Fc", "-Z0",
		"--no-privileges", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	var relayed bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &relayed, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"many": 30000, "large": 3, "none": 0, "empty": 7}
	for _, table := range info.Tables {
		if table.Rows != want[table.Name] {
			t.Errorf("%s: %d rows, not %d", table.Name, table.Rows, want[table.Name])
		}
	}
	if asSQL(t, raw) != asSQL(t, relayed.Bytes()) {
		t.Error("the relayed dump holds something else")
	}
}

// A dump that is stopped while it receives rows reports the reason and leaves no connection.
func TestRelayedDumpIsStopped(t *testing.T) {
	t.Parallel()
	url := various(t)
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := d.maintenance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	stop := errors.New("stop")
	for name, c := range map[string]struct {
		act   func(cancel context.CancelFunc) error // called while rows are being received
		found func(error) bool
	}{
		"by the server": {
			func(context.CancelFunc) error {
				_, err := admin.Exec(t.Context(),
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
					d.name())
				return err
			},
			func(err error) bool { // from pg_dump's session or the other one, whichever notices first
				return snap.CodeOf(err) == snap.CodeDatabase && (strings.Contains(err.Error(), "pg_dump failed") ||
					strings.Contains(err.Error(), "administrator command"))
			},
		},
		"by the caller": {
			func(cancel context.CancelFunc) error { cancel(); return nil },
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
		"by the writer": {
			func(context.CancelFunc) error { return stop },
			func(err error) bool { return errors.Is(err, stop) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
			defer cancel()
			_, err := Engine{}.Dump(ctx, url, &acting{after: 2 << 20, act: func() error { return c.act(cancel) }},
				engine.Options{Jobs: 1})
			if !c.found(err) {
				t.Errorf("got %v", err)
			}
			for left := []string{"unknown"}; len(left) > 0; { // sessions end a moment after they were canceled
				if left, err = connections(t.Context(), admin, d.name()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// acting is a writer that calls act once, after a number of bytes.
type acting struct {
	after int
	act   func() error
}

func (a *acting) Write(p []byte) (int, error) {
	before := a.after
	a.after -= len(p)
	if before > 0 && a.after <= 0 {
		if err := a.act(); err != nil {
			return 0, err
		}
	}
	return io.Discard.Write(p)
}

// Only the relay has the password and the server's address. pg_dump only has the relay's socket.
func TestRelayKeepsThePassword(t *testing.T) {
	t.Setenv("PGPASSWORD", "s3cret")
	t.Setenv("PGSSLMODE", "verify-full")
	r := &relay{dir: "/a socket",
		server: &pgconn.HijackedConn{Config: &pgconn.Config{Host: "h", Database: "a db", User: "u",
			Password: "s3cret"}}}
	cmd, _ := r.command(t.Context(), tool{path: "/bin/true"}, "--x")
	if args := strings.Join(cmd.Args, " "); !strings.HasSuffix(args,
		"--dbname=postgres://u@/a%20db?host=%2Fa%20socket&port=5432") {
		t.Errorf("arguments %s", args)
	}
	if env := strings.Join(cmd.Env, "\n"); strings.Contains(env, "s3cret") || strings.Contains(env, "verify-full") ||
		!strings.Contains(env, "PATH=") {
		t.Error("the environment tells how to connect")
	}
}

// A killed build leaves its socket behind, and a later build removes the socket.
func TestSocketsAreSwept(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	old, young, other := filepath.Join(temp, socketPrefix+"1"), filepath.Join(temp, socketPrefix+"2"),
		filepath.Join(temp, "other")
	for _, dir := range []string{old, young, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{old, other} {
		if err := os.Chtimes(dir, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	sweepSockets(t.Context(), temp)
	if left, err := filepath.Glob(filepath.Join(temp, "*")); err != nil || !slices.Equal(left, []string{other, young}) {
		t.Errorf("left are %v, %v", left, err)
	}
}
