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
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
)

// MariaDB returns the URL of a fresh, empty database on a real MariaDB server,
// as mysql://root@host:port/name. All tests of one process share the server,
// which is started at the first call and ends with the process. The database is
// dropped when the test ends. The test is skipped when MariaDB is not installed.
func MariaDB(t testing.TB) string {
	t.Helper()
	server := sharedMariaDB()
	if errors.Is(server.err, errNoMariaDB) {
		t.Skip("needs MariaDB: install the package mariadb-server")
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	name := fmt.Sprintf("test_%d", server.databases.Add(1))
	server.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { server.exec(t, "DROP DATABASE IF EXISTS "+name) })
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", server.port, name)
}

var errNoMariaDB = errors.New("MariaDB is not installed")

// sharedMariaDB is the server of this process.
var sharedMariaDB = sync.OnceValue(func() *mariadb {
	var s *mariadb
	for range 3 { // another program may take the free port first
		s = &mariadb{}
		if s.err = s.start(); s.err == nil || errors.Is(s.err, errNoMariaDB) {
			break
		}
	}
	return s
})

type mariadb struct {
	port      int
	admin     *sql.DB
	alive     io.Closer // the server ends when this is closed, at the latest by the process's end
	databases atomic.Int64
	err       error
}

func (s *mariadb) exec(t testing.TB, statement string) {
	t.Helper()
	if _, err := s.admin.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// watchMariaDB runs the server until its standard input ends.
const watchMariaDB = `dir="$1"; shift; "$@" >"$dir/log" 2>&1 </dev/null & pid=$!; read -r _; kill -KILL $pid; wait $pid; rm -rf "$dir"`

func (s *mariadb) start() error {
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		program = "/usr/sbin/mariadbd"
	}
	install, missing := exec.LookPath("mariadb-install-db")
	if _, err := os.Stat(program); err != nil || missing != nil {
		return errNoMariaDB
	}
	dir, err := os.MkdirTemp("", "servertest-mariadb-")
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	asUser := []string{}
	if os.Getuid() == 0 { // the programs change to it themselves
		asUser = append(asUser, "--user=mysql")
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	setup := exec.Command(install, append([]string{"--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}, asUser...)...)
	if out, err := setup.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	args := append([]string{"-c", watchMariaDB, "sh", dir, program, "--no-defaults", "--datadir=" + data, "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port),
		"--socket=" + filepath.Join(data, "s"), "--pid-file=" + filepath.Join(data, "pid"), "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--max-connections=100"}, asUser...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.alive, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if s.admin, err = sql.Open("mysql", fmt.Sprintf("root@tcp(127.0.0.1:%d)/", s.port)); err != nil {
		return err
	}
	return s.ready()
}

// ready waits until the server answers, at most half a minute.
func (s *mariadb) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := s.admin.PingContext(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			s.alive.Close()
			return fmt.Errorf("start MariaDB: %w", err)
		case <-again.C:
		}
	}
}
