package servertest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
)

// MariaDB returns the URL of a fresh, empty database on a real MariaDB server, as
// mysql://root@host:port/name. All tests of one process share the server, which is started at the
// first call and ends with the process. The database is dropped when the test ends. The test is
// skipped when MariaDB is not installed.
func MariaDB(t testing.TB) string {
	t.Helper()
	return MySQL(t, "mariadb")
}

// MySQLServers names the servers that [MySQL] knows: the installed MariaDB, and others that
// tools/unpack puts below bin.
func MySQLServers() []string { return []string{"mariadb", "mariadb-11.8", "mysql-8.0", "mysql-9.7"} }

// MySQL is like [MariaDB], for one of [MySQLServers]. The test is skipped if that server is
// missing.
func MySQL(t testing.TB, server string) string {
	t.Helper()
	RequireServers(t, "MySQL")
	s := mysqlServer(server, filepath.Join(Root(t), "bin", server))
	if errors.Is(s.err, errNotInstalled) && server == "mariadb" {
		t.Skip("needs MariaDB: install the package mariadb-server")
	}
	if errors.Is(s.err, errNotInstalled) {
		t.Skipf("needs %[1]s: run make bin/%[1]s", server)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	s.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { s.exec(t, "DROP DATABASE IF EXISTS "+name) })
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", s.port, name)
}

// mysqlServer returns this process's server with a name. The first call starts it.
func mysqlServer(name, folder string) *mariadb {
	once, _ := mysqlServers.LoadOrStore(name, sync.OnceValue(func() *mariadb {
		return startMySQL(name, folder, "", volatileOptions(name)...)
	}))
	return once.(func() *mariadb)()
}

// startMySQL starts a server of the programs in folder. Its data is below dir, or in a temporary
// folder if dir is "".
func startMySQL(name, folder, dir string, options ...string) (s *mariadb) {
	for n := range 3 { // another program may take the free port first
		data := ""
		if dir != "" {
			data = filepath.Join(dir, strconv.Itoa(n))
		}
		s = &mariadb{}
		s.err = s.start(name, folder, data, options...)
		if s.err == nil || errors.Is(s.err, errNotInstalled) {
			break
		}
	}
	return s
}

// OwnMySQL returns the URL of an empty database on a server of the test's own: one of
// [MySQLServers] with these options. Its data is below dir, or in a temporary folder if dir is "".
func OwnMySQL(t testing.TB, server, dir string, options ...string) string {
	t.Helper()
	return ownMySQL(t, server, dir, append(volatileOptions(server), options...)...).ownURL()
}

// CrashingMySQL is like [OwnMySQL], with a server that keeps committed data after a crash. The
// other MySQL servers of this package can lose it. The function crash crashes the server, starts it
// again, and returns when it answers.
func CrashingMySQL(t testing.TB, server string) (url string, crash func()) {
	t.Helper()
	s := ownMySQL(t, server, "")
	return s.ownURL(), func() {
		if err := restart(s.alive, s.admin, s.ready); err != nil {
			t.Fatal(err)
		}
	}
}

func ownMySQL(t testing.TB, server, dir string, options ...string) *mariadb {
	t.Helper()
	RequireServers(t, "MySQL")
	if dir != "" {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // otherwise the server's user cannot reach dir
			t.Fatal(err)
		}
	}
	s := startMySQL(server, filepath.Join(Root(t), "bin", server), dir, options...)
	if errors.Is(s.err, errNotInstalled) {
		t.Skipf("needs %[1]s: run make servers bin/%[1]s", server)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	t.Cleanup(func() {
		s.admin.Close()
		s.alive.Close()
		_ = s.process.Wait() // killed, which is not an error
	})
	s.exec(t, "CREATE DATABASE own")
	return s
}

// ownURL returns the URL of the database on a server of a test's own.
func (s *mariadb) ownURL() string { return fmt.Sprintf("mysql://root@127.0.0.1:%d/own", s.port) }

var mysqlServers sync.Map // name to func() *mariadb

type mariadb struct {
	port      int
	admin     *sql.DB
	process   *exec.Cmd
	alive     io.WriteCloser // the server ends when this is closed, at the latest when the process ends
	databases atomic.Int64
	err       error
}

func (s *mariadb) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := s.admin.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// watchMariaDB is a shell script that runs the server until the script's standard input ends, and
// then removes the server's folder. For every line that it reads, the script kills the server and
// starts it again.
const watchMariaDB = `dir="$1"; shift
run() { "$@" >>"$dir/log" 2>&1 </dev/null & pid=$!; }
run "$@"
while read -r _; do kill -KILL $pid; wait $pid; run "$@"; done
kill -KILL $pid; wait $pid; rm -rf "$dir"`

// mysqlCommands returns the command that sets up a data folder and the command that serves it.
// Neither has the options that name the data folder; see [dataIn].
func mysqlCommands(name, folder string) (setup, serve []string, err error) {
	root := filepath.Join(folder, "root", "usr")
	switch {
	case name == "mariadb":
		program, err := exec.LookPath("mariadbd")
		if err != nil {
			program = "/usr/sbin/mariadbd"
		}
		setup, serve = []string{"mariadb-install-db"}, []string{program}
	case strings.HasPrefix(name, "mariadb"):
		setup = []string{filepath.Join(folder, "bin", "mariadb-install-db")}
		serve = []string{filepath.Join(folder, "bin", "mariadbd")}
	default:
		program := filepath.Join(folder, "bin", "mysqld")
		setup = []string{program, "--no-defaults", "--initialize-insecure", "--basedir=" + root}
		return setup, []string{program, "--no-defaults", "--basedir=" + root, "--mysqlx=OFF", "--secure-file-priv="},
			requirePrograms(program)
	}
	setup = append(setup, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db")
	serve = append(serve, "--no-defaults")
	if name != "mariadb" {
		setup = append(setup, "--basedir="+root)
		serve = append(serve, "--basedir="+root, "--lc-messages-dir="+filepath.Join(root, "share", "mysql"),
			"--plugin-dir="+filepath.Join(root, "lib", "mysql", "plugin"))
	}
	return setup, serve, requirePrograms(setup[0], serve[0])
}

func requirePrograms(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return errNotInstalled
		}
	}
	return nil
}

// start starts a server of the programs in folder. Its data is in the folder data, or in a
// temporary folder if data is "".
func (s *mariadb) start(name, folder, data string, options ...string) error {
	setup, serve, err := mysqlCommands(name, folder)
	if err != nil {
		return err
	}
	dir, err := serverDir(name)
	if err != nil {
		return err
	}
	data = cmp.Or(data, filepath.Join(dir, "data"))
	tmp := filepath.Join(dir, "tmp") // not shared, because a server removes all files in it when it starts
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	as, err := serverUser("mysql")
	if err != nil {
		return err
	}
	if err := giveTo(as, dir, tmp, filepath.Dir(data)); err != nil {
		return err
	}
	err = copyInitial(setup[0], data, as, func(dir string) error { return install(setup, dir, as) })
	if err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	args := append([]string{"-c", watchMariaDB, "sh", dir}, serve...)
	args = append(args, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port), "--tmpdir="+tmp,
		"--socket="+filepath.Join(data, "s"), "--pid-file="+filepath.Join(data, "pid"),
		"--max-connections=100", "--innodb-buffer-pool-size=256M")
	s.process = exec.Command("/bin/sh", append(append(args, options...), dataIn(data, as)...)...)
	runApart(s.process)
	if s.alive, err = s.process.StdinPipe(); err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	if s.admin, err = sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/", s.port)); err != nil {
		return err
	}
	return s.ready()
}

// install creates the data folder dir/data of a server that never ran.
func install(setup []string, dir string, as *account) error {
	if err := giveTo(as, dir); err != nil {
		return err
	}
	args := slices.Concat(setup[1:], dataIn(filepath.Join(dir, "data"), as))
	if out, err := exec.Command(setup[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", setup[0], err, out)
	}
	return nil
}

// dataIn returns the options for programs that work on a data folder as an account.
func dataIn(data string, as *account) []string {
	if as == nil {
		return []string{"--datadir=" + data}
	}
	return []string{"--datadir=" + data, "--user=mysql"} // the servers change to the account themselves
}

// volatileOptions returns options for a server whose data need not survive a crash. The server does
// not wait for the disk, and writes neither a binary log nor a doublewrite buffer.
func volatileOptions(name string) []string {
	options := []string{"--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0",
		"--innodb-flush-method=nosync"}
	if strings.HasPrefix(name, "mysql") {
		return append(options, "--performance-schema=OFF")
	}
	return append(options, "--debug-no-sync")
}

// giveTo makes the account the owner of files and folders, and lets all users read them. Without an
// account, it changes nothing.
func giveTo(as *account, paths ...string) error {
	if as == nil {
		return nil
	}
	for _, path := range paths {
		if err := errors.Join(os.Chmod(path, 0o755), os.Chown(path, int(as.Uid), int(as.Gid))); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the server answers.
func (s *mariadb) ready() error {
	if err := waitReady(s.alive, s.admin.PingContext); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	return nil
}
