package mysql

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap/internal/engine"
	"snap/internal/reach"
	"snap/internal/servertest"
)

// TestThroughSSH builds, takes a subset and loads through an SSH server, with passwords that a
// program prints for each connection.
func TestThroughSSH(t *testing.T) {
	t.Parallel()
	servertest.RequireServers(t, "MySQL and MariaDB")
	s := servertest.StartSSH(t)
	tunnel, err := (&reach.Tunnels{Env: s.Env, Idle: time.Hour}).To(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Sessions(); n != 1 {
			t.Errorf("%d SSH connections", n)
		}
	})
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		user := strings.ReplaceAll(server, ".", "") + filepath.Base(to)
		script(t, from, "CREATE TABLE a (id int PRIMARY KEY, b text); INSERT INTO a VALUES (1, 'x'), (2, 'y'); "+
			"CREATE VIEW v AS SELECT b FROM a; CREATE USER `"+user+"` IDENTIFIED BY 'secret'; "+
			"GRANT ALL ON *.* TO `"+user+"` WITH GRANT OPTION")
		runs := filepath.Join(t.TempDir(), "runs")
		e := Engine{Way: reach.NewWay(tunnel, &reach.Command{Setting: "password_command",
			Words: []string{"/bin/sh", "-c", "echo >>'" + runs + "'; echo secret"}})}
		as := func(url string) string { return strings.Replace(url, "root@", user+"@", 1) }
		for _, subset := range []*engine.Subset{nil, {Percent: 100}} {
			for _, trust := range []engine.Trust{engine.Mine, engine.Ours} {
				var b bytes.Buffer
				info, err := e.Dump(t.Context(), as(from), &b, engine.Options{Jobs: 2, Subset: subset})
				if err != nil {
					t.Fatal(err)
				}
				d := dumpOf(b.Bytes(), info)
				d.Trust = trust
				if err := loadBy(t, e, as(to), d, true); err != nil {
					t.Fatal(err)
				}
				counted(t, to, []engine.Table{{Name: "a", Rows: 2}})
			}
		}
		if lines, err := os.ReadFile(runs); err != nil || len(lines) < 2*4 {
			t.Errorf("the password was printed %d times, %v", len(lines), err)
		}
	})
}
