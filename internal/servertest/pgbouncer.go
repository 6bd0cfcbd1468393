package servertest

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// PgBouncer starts PgBouncer in transaction mode in front of a database of [Postgres], and returns
// the URL of the database through PgBouncer. PgBouncer has fewer connections to the server than a
// service uses, so the transactions of one client run on several connections. PgBouncer ends with
// the test. The test is skipped when PgBouncer is not installed. settings are further lines of its
// configuration, which override the others.
func PgBouncer(t testing.TB, database string, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("needs PgBouncer: install the package pgbouncer")
		}
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	as, err := serverUser("postgres")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	if err := os.WriteFile(file, fmt.Appendf(nil, `[databases]
* = host=127.0.0.1 port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
%s
`, u.Port(), port, strings.Join(settings, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := giveTo(as, file, filepath.Dir(file), filepath.Dir(filepath.Dir(file))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `"$1" -q "$2" & pid=$!; cat >/dev/null; kill -KILL $pid`, "sh", program, file)
	runAs(cmd, as)
	runApart(cmd)
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		alive.Close()
		_ = cmd.Wait()
	})
	u.Host = fmt.Sprintf("127.0.0.1:%d", port)
	db, err := sql.Open("pgx", u.String()+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := waitReady(alive, db.PingContext); err != nil {
		t.Fatalf("PgBouncer does not answer: %v", err)
	}
	return u.String()
}
