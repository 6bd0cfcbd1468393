package servertest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// init lets connections take a minute, so that no test fails because the machine is busy.
func init() { _ = os.Setenv("PGCONNECT_TIMEOUT", "60") }

// Postgres returns the URL of a fresh, empty database on a real PostgreSQL server. All tests of one
// process share the server. The first call starts it on a free loopback port. The server ends with
// the process, however the process ends; no TestMain is needed. The database is dropped when the
// test ends. The test is skipped when PostgreSQL is not installed.
//
// The server runs without fsync: it is for tests, not for measuring writes.
func Postgres(t testing.TB) string {
	t.Helper()
	return requireServer(t).database(t, "template1")
}

// PostgresTemplate returns a function like [Postgres] whose databases are copies of a template.
// fill writes the content of the template at the first call, once for all tests of a process.
func PostgresTemplate(fill func(url string) error) func(testing.TB) string {
	template := sync.OnceValues(func() (string, error) {
		s := sharedServer()
		name := fmt.Sprintf("template_%d", s.databases.Add(1))
		_, err := s.admin.Exec("CREATE DATABASE " + name)
		if err == nil {
			err = fill(s.url(name))
		}
		return name, err
	})
	return func(t testing.TB) string {
		t.Helper()
		s := requireServer(t)
		name, err := template()
		if err != nil {
			t.Fatal(err)
		}
		return s.database(t, name)
	}
}

// requireServer returns the server of this process, or skips the test.
func requireServer(t testing.TB) *server {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	s := sharedServer()
	s.require(t)
	return s
}

// require skips the test if PostgreSQL is not installed, and fails it if the server did not start.
func (s *server) require(t testing.TB) {
	t.Helper()
	if errors.Is(s.err, errNotInstalled) {
		t.Skip("needs PostgreSQL: install the package postgresql")
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
}

// database returns the URL of a copy of another database. The copy is dropped when the test ends.
func (s *server) database(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	s.copy(t, name, template)
	t.Cleanup(func() { s.exec(t, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	return s.url(name)
}

// copy creates a database as a copy of a template. PostgreSQL refuses that while a client is
// connected to the template, so copy tries again until the server processes of closed connections
// have ended.
func (s *server) copy(t testing.TB, name, template string) {
	t.Helper()
	for began := time.Now(); ; {
		_, err := s.admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + template + s.strategy)
		if err == nil {
			return
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" || time.Since(began) > Patience { // object_in_use
			t.Fatal(err)
		}
	}
}

// CrashingPostgres is like [Postgres], but the test gets its own server, and a function that crashes
// and restarts it. The function returns when the server answers again.
func CrashingPostgres(t testing.TB) (url string, crash func()) {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	return ownServer(t, startIn(PostgresBin()))
}

// PostgresIn is [Postgres] with a server of the test's own, whose data is in dir.
func PostgresIn(t testing.TB, dir string) string {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // otherwise the server's user cannot reach dir
		t.Fatal(err)
	}
	bin := PostgresBin()
	url, _ := ownServer(t, startWith(bin, func(place string, as *account) (string, error) {
		if err := changeOwner(as, dir); err != nil {
			return "", err
		}
		if err := os.Symlink(dir, filepath.Join(place, "data")); err != nil {
			return "", err
		}
		return "", initialize(bin, place, as)
	}))
	return url
}

// StoppingPostgres is like [Postgres], with a server of the test's own, and functions that stop the
// server, as a crash does, and start it again. Each function returns once the server has stopped or
// answers again.
func StoppingPostgres(t testing.TB) (url string, stop, restart func()) {
	t.Helper()
	RequireServers(t, "PostgreSQL")
	s := startIn(PostgresBin())
	url, _ = ownServer(t, s)
	send := func(command string, answers bool) func() {
		return func() {
			if err := s.send(command, answers); err != nil {
				t.Fatal(err)
			}
		}
	}
	return url, send("stop", false), send("start", true)
}

// send sends a command to the shell that runs a server. If answers is set, it waits until the
// server answers, and otherwise until the server has stopped.
func (s *server) send(command string, answers bool) error {
	if _, err := io.WriteString(s.alive, command+"\n"); err != nil {
		return err
	}
	if answers {
		return s.ready()
	}
	return waitReady(s.alive, func(ctx context.Context) error {
		if s.admin.PingContext(ctx) == nil {
			return errors.New("PostgreSQL still answers")
		}
		return nil
	})
}

// ownServer returns the URL of a database on a server of the test's own, and a function that
// crashes and restarts the server.
func ownServer(t testing.TB, s *server) (url string, crash func()) {
	t.Helper()
	s.require(t)
	t.Cleanup(func() {
		s.admin.Close()
		s.alive.Close()
	})
	s.exec(t, "CREATE DATABASE test")
	return s.url("test"), func() {
		if err := restart(s.alive, s.admin, s.ready); err != nil {
			t.Fatal(err)
		}
	}
}

// PostgresBin returns the folder of PostgreSQL's programs (initdb, pg_dump and so on) of the newest
// installed release, or "".
func PostgresBin() string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

func version(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
}

var errNotInstalled = errors.New("the server is not installed")

// sharedServer is the server of this process.
var sharedServer = sync.OnceValue(func() *server {
	s := startServer(PostgresBin())
	if s.err == nil {
		s.err = s.copyFiles()
	}
	return s
})

// copyFiles makes the server copy databases file by file, if its release is 15 or later. By default
// it logs every page of a copy, which takes more processor time.
func (s *server) copyFiles() error {
	var since15 bool
	err := s.admin.QueryRow("SELECT current_setting('server_version_num')::int >= 150000").Scan(&since15)
	if since15 {
		s.strategy = " STRATEGY file_copy"
	}
	return err
}

// startServer starts a server. It tries again if another program takes the free port first.
func startServer(bin string) (s *server) {
	for range 3 {
		s = startIn(bin)
		if s.err == nil || errors.Is(s.err, errNotInstalled) {
			break
		}
	}
	return s
}

type server struct {
	port      int
	admin     *sql.DB
	alive     io.WriteCloser // the server ends when this is closed, at the latest when the process ends
	databases atomic.Int64
	strategy  string // clause of CREATE DATABASE; see copyFiles
	err       error
}

func (s *server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

func (s *server) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := s.admin.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// watchPostgres is a shell script that runs the server until the script's standard input ends, and
// then removes the server's folder. The kernel closes the input when the test process is gone. When
// the script reads "stop", it ends the server as a crash would. When it reads "start", it starts
// the server again. For any other line it does both.
const watchPostgres = `run() { "$1/postgres" -D "$2/data" >>"$2/log" 2>&1 </dev/null & pid=$!; }
run "$1" "$2"
while read -r what; do
	[ "$what" = start ] || { kill -QUIT $pid; wait $pid; }
	[ "$what" = stop ] || run "$1" "$2"
done
kill -QUIT $pid; wait $pid; rm -rf "$2"`

func startIn(bin string) *server {
	return startWith(bin, func(dir string, as *account) (string, error) { return "", initialize(bin, dir, as) })
}

// initialize makes the data folder dir/data of a new server by copying an initial one.
func initialize(bin, dir string, as *account) error {
	return copyInitial(bin, filepath.Join(dir, "data"), as, func(first string) error { return initdb(bin, first, as) })
}

// initdb makes the data folder dir/data of a server that has never run.
func initdb(bin, dir string, as *account) error {
	if err := changeOwner(as, dir); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	cmd.Dir = dir
	runAs(cmd, as)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// startWith starts a server. prepare creates the server's data folder, dir/data, and returns
// additional settings.
func startWith(bin string, prepare func(dir string, as *account) (settings string, err error)) *server {
	if bin == "" {
		return &server{err: errNotInstalled}
	}
	as, err := serverUser("postgres")
	if err != nil {
		return &server{err: err}
	}
	dir, err := serverDir("postgres")
	if err != nil {
		return &server{err: err}
	}
	if err := changeOwner(as, dir); err != nil {
		return &server{err: err}
	}
	s := &server{}
	if s.err = s.run(bin, dir, as, prepare); s.err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		s.err = fmt.Errorf("start PostgreSQL: %w\n%s", s.err, log)
	}
	return s
}

func (s *server) run(bin, dir string, as *account, prepare func(string, *account) (string, error)) error {
	more, err := prepare(dir, as)
	if err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	settings := fmt.Sprintf("listen_addresses = '127.0.0.1'\nport = %d\nunix_socket_directories = '%s'\n"+
		"fsync = off\nsynchronous_commit = on\nmax_connections = 200\nshared_buffers = 512MB\n"+
		"autovacuum_naptime = 10\nmax_wal_size = 256MB\n%s", s.port, dir, more)
	if err := appendFile(filepath.Join(dir, "data", "postgresql.conf"), settings); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", watchPostgres, "sh", bin, dir)
	cmd.Dir = dir
	runAs(cmd, as)
	runApart(cmd)
	if s.alive, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if s.admin, err = sql.Open("pgx", s.url("postgres")); err != nil {
		return err
	}
	return s.ready()
}

// ready waits until the server answers.
func (s *server) ready() error { return waitReady(s.alive, s.admin.PingContext) }

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
