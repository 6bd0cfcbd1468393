package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/reach"
	"snap/internal/servertest"
)

// through returns a route through an SSH server of the test, with passwords that a command prints.
func through(t *testing.T, s *servertest.SSH, command ...string) *reach.Way {
	t.Helper()
	tunnel, err := (&reach.Tunnels{Env: s.Env, Idle: time.Hour}).To(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if len(command) == 0 {
		return reach.NewWay(tunnel, nil)
	}
	return reach.NewWay(tunnel, &reach.Command{Setting: "password_command", Words: command})
}

// recorded returns a folder with PostgreSQL's programs, and a function that returns the arguments and
// environments that they were run with. Of the environments it returns PostgreSQL's variables.
func recorded(t *testing.T) (tools string, read func() string) {
	t.Helper()
	tools = t.TempDir()
	log := filepath.Join(tools, "log")
	for _, name := range []string{"pg_dump", "pg_restore"} {
		text := fmt.Sprintf("#!/bin/sh\n{ echo \"$0 $*\"; env | grep ^PG; } >>'%s'\nexec '%s' \"$@\"\n", log,
			filepath.Join(servertest.PostgresBin(), name))
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return tools, func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// TestThroughSSH builds, takes a subset and loads through an SSH server, over verified TLS, with
// passwords that a program prints for each connection. PostgreSQL's programs get neither the
// password nor an address on the network.
func TestThroughSSH(t *testing.T) {
	t.Parallel()
	s := servertest.StartSSH(t)
	raw, certs := secured(t)
	execute(t, raw, "ALTER USER asked SUPERUSER")
	psql(t, raw, script(t, "CREATE TABLE a (id int PRIMARY KEY, b text); INSERT INTO a SELECT n, 'b' || n FROM "+
		"generate_series(1, 1000) n; CREATE INDEX ON a (b); CREATE VIEW v AS SELECT b FROM a; CREATE TABLE c (a int "+
		"REFERENCES a); INSERT INTO c VALUES (7)"))
	tools, log := recorded(t)
	counted := filepath.Join(t.TempDir(), "count")
	e := Engine{Tools: []string{tools}, Way: through(t, s, "/bin/sh", "-c", "echo >>'"+counted+"'; echo secret")}
	url := withParameters(t, raw, "asked", "sslmode=verify-full&sslrootcert="+filepath.Join(certs, "ca.pem"))
	execute(t, raw, "CREATE DATABASE copy")
	at := func(url string) string { return strings.Replace(url, "/test?", "/copy?", 1) }
	for _, subset := range []*engine.Subset{nil, {Percent: 100}} {
		for _, trust := range []engine.Trust{engine.Mine, engine.Ours} {
			d := chosenBy(t, e, url, engine.Options{Jobs: 2, Subset: subset})
			d.Trust = trust
			if err := loadBy(t, e, at(url), d, false); err != nil {
				t.Fatal(err)
			}
			same(t, raw, strings.Replace(raw, "/test", "/copy", 1))
		}
	}
	said := log()
	if !strings.Contains(said, "pg_dump") || !strings.Contains(said, "pg_restore") {
		t.Fatalf("the programs did not run: %s", said)
	}
	for _, secret := range []string{"secret", "127.0.0.1", "ca.pem"} {
		if strings.Contains(said, secret) {
			t.Errorf("the programs see %q", secret)
		}
	}
	runs, err := os.ReadFile(counted)
	if err != nil || len(runs) < 4*4 {
		t.Errorf("the password was printed %d times, %v", len(runs), err)
	}
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d SSH connections", n)
	}
}

// TestSocketThroughSSH connects to a socket of the SSH server's machine.
func TestSocketThroughSSH(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	folder := texts(t, raw, "SHOW unix_socket_directories")[0]
	port := texts(t, raw, "SHOW port")[0]
	name := texts(t, raw, "SELECT current_database()")[0]
	e := Engine{Way: through(t, servertest.StartSSH(t))}
	info, err := e.Check(t.Context(), "postgres://postgres@/"+name+"?host="+folder+"&port="+port)
	if err != nil || !info.Exists {
		t.Errorf("%+v, %v", info, err)
	}
	_, err = e.Check(t.Context(), "postgres://postgres@127.0.0.1:1/"+name)
	if err == nil || !strings.HasPrefix(err.Error(), "the SSH server ") ||
		!strings.HasSuffix(err.Error(), " cannot reach 127.0.0.1:1") {
		t.Error(err)
	}
}

// TestPasswordCommandFails checks that a load reports a failure of the command that prints the
// password, whichever connection needed it.
func TestPasswordCommandFails(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	psql(t, raw, script(t, "CREATE TABLE a (b int); INSERT INTO a SELECT generate_series(1, 1000)"))
	d := chosen(t, raw, engine.Options{})
	count := filepath.Join(t.TempDir(), "count")
	few := fmt.Sprintf("echo >>'%[1]s'; [ $(wc -l <'%[1]s') -le $0 ] && echo secret", count)
	for n := range 20 { // a different connection fails each time
		if err := os.RemoveAll(count); err != nil {
			t.Fatal(err)
		}
		e := Engine{Way: reach.NewWay(nil, &reach.Command{Setting: "password_command",
			Words: []string{"/bin/sh", "-c", few, fmt.Sprint(n)}})}
		err := loadBy(t, e, raw, d, true)
		if err == nil && n > 0 {
			return
		}
		if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "which prints the password") {
			t.Fatalf("after %d connections: %v", n, err)
		}
	}
	t.Error("it needs too many connections")
}

// TestCanceledThroughGate checks that a stopped program leaves no session on the server.
func TestCanceledThroughGate(t *testing.T) {
	t.Parallel()
	raw := servertest.Postgres(t)
	d, err := Engine{Way: reach.NewWay(nil, &reach.Command{Words: []string{"echo", "secret"}})}.parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tool := tool{path: filepath.Join(servertest.PostgresBin(), "psql")}
	cmd, _, done, err := d.program(ctx, tool, "-c", "SELECT pg_sleep(1000)")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	admin := connectTo(t, raw)
	defer admin.Close(context.Background())
	running := func() (n int) {
		err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(1000)' "+
			"AND state = 'active' AND datname = current_database()").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for running() == 0 {
	}
	cancel()
	_ = cmd.Wait()
	_ = done()
	for running() > 0 {
	}
}
