//go:build linux

package local

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// The server crashes at random moments of a load, a build or a sanitize. Afterwards the tables are
// the old ones or the new ones, row for row, and no snapshot is incomplete. The next load completes
// the new database and leaves nothing behind. SNAP_KILL_ROUNDS sets the number of rounds, and makes
// the test run on every kind of server instead of one. SNAP_KILL_SEED sets the points of the
// rounds.
func TestMySQLServerCrashes(t *testing.T) {
	t.Parallel()
	servers := servertest.MySQLServers()
	if _, many := os.LookupEnv("SNAP_KILL_ROUNDS"); !many {
		servers = servers[:1]
	}
	for _, server := range servers {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			crashMySQL(t, server)
		})
	}
}

func crashMySQL(t *testing.T, server string) {
	from, crash := servertest.CrashingMySQL(t, server)
	to := strings.TrimSuffix(from, "own") + "dev"
	c := mySQLCrash{crash: crash}
	c.shop, c.server, _ = mySQLShop(t, from, to)
	c.mask = c.sqlFile(t, "UPDATE customer SET pad = concat('masked ', id)")
	c.fresh(t)
	c.old, c.new = mySQLTables(t, c.server, "dev"), mySQLTables(t, c.server, "own")
	whole := mySQLPrograms(t, c.server, "own")
	phases := map[string]int{}
	for _, action := range []string{"load", "build", "sanitize"} {
		phases[action] = c.phases(t, action)
	}
	r, failed, rounds := chance(t, 10), 0, fromEnv("SNAP_KILL_ROUNDS", 4)
	for round := range rounds {
		c.fresh(t)
		action := []string{"load", "build", "load", "sanitize", "load", "load"}[round%6]
		phase, moment := 1+r.IntN(phases[action]), time.Duration(r.IntN(300))*time.Millisecond
		if r.IntN(2) == 0 { // a phase may be short
			moment /= 20
		}
		reached, err := until(phase, moment, c.crash, func(p Progress) error { return c.does(t, action, p) })
		when := fmt.Sprintf("round %d, %s, the server crashed in phase %d after %s: %v", round, action, phase, moment,
			err)
		t.Log(when)
		if err != nil {
			failed++
			clearCrash(t, when, err, action == "load" && phase == phases[action])
		}
		if !reached {
			t.Errorf("%s: it had fewer phases", when)
		}
		if got := mySQLTables(t, c.server, "dev"); got != c.old && (got != c.new || action != "load") {
			t.Fatalf("%s: the tables are\n%s", when, got)
		}
		c.nothingHalf(t, when)
		if _, err := c.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, nil); err != nil {
			t.Fatalf("%s: the next load: %v", when, err)
		}
		if got := mySQLTables(t, c.server, "dev"); got != c.new {
			t.Fatalf("%s: the next load made\n%s", when, got)
		}
		if got := mySQLPrograms(t, c.server, "dev"); got != whole {
			t.Fatalf("%s: the next load made the programs\n%s", when, got)
		}
		c.nothingLeft(t, when)
	}
	t.Logf("%d of %d rounds noticed the crash", failed, rounds)
	if failed == 0 && rounds > 5 {
		t.Error("nothing noticed a crash")
	}
}

// mySQLCrash is a server that crashes. Its database own is the source of a target, and its database
// dev is the destination.
type mySQLCrash struct {
	shop
	server   *sql.DB
	crash    func()
	mask     string // path of a SQL file
	old, new string // results of mySQLTables
}

// does performs a load, a build or a sanitize. It verifies a new snapshot and removes it, so that
// the next load uses the snapshot that the test took first.
func (c mySQLCrash) does(t *testing.T, action string, p Progress) (err error) {
	t.Helper()
	var made Snapshot
	switch action {
	case "load":
		_, err = c.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, p)
		return err
	case "build":
		made, err = c.Build(t.Context(), shopTarget, BuildOptions{}, p)
	case "sanitize":
		made, err = c.Sanitize(t.Context(), shopTarget, SanitizeOptions{SQL: c.mask}, p)
	}
	if err != nil {
		return err
	}
	if _, err := c.Verify(t.Context(), made.Name, nil); err != nil {
		t.Errorf("%s: %v", action, err)
	}
	return c.DeleteSnapshot(made.Name)
}

// phases counts the phases of an action.
func (c mySQLCrash) phases(t *testing.T, action string) (n int) {
	t.Helper()
	last := ""
	err := c.does(t, action, func(e Event) {
		if e.Phase != last {
			last, n = e.Phase, n+1
		}
	})
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return n
}

// fresh creates the old database, which has everything that a swap must keep.
func (c mySQLCrash) fresh(t *testing.T) {
	t.Helper()
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS dev",
		"CREATE DATABASE dev",
		"CREATE TABLE dev.old (id INT PRIMARY KEY, pad VARCHAR(300))",
		"INSERT INTO dev.old SELECT id, concat('precious ', pad) FROM own.customer WHERE id % 4 = 0",
		"CREATE TRIGGER dev.keepme BEFORE INSERT ON dev.old FOR EACH ROW SET NEW.pad = 'kept'",
		"CREATE VIEW dev.oldview AS SELECT id FROM dev.old",
		"CREATE PROCEDURE dev.oldproc() SELECT 2",
	} {
		if _, err := c.server.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// nothingLeft fails the test if the server or this machine has anything that the
// next load should have removed.
func (c mySQLCrash) nothingLeft(t *testing.T, when string) {
	t.Helper()
	if left := rowsOf(t, c.server,
		"SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'snapcli%'"); left != "" {
		t.Fatalf("%s: left behind on the server: %s", when, left)
	}
	for _, pattern := range []string{"data/tmp/*", "data/snapshots/*/*" + partSuffix} {
		if left, _ := filepath.Glob(filepath.Join(c.dir, pattern)); len(left) > 0 {
			t.Fatalf("%s: left behind: %v", when, left)
		}
	}
}

// clearCrash fails the test unless the error says once that the server is or was unreachable, and has
// a helpful hint. After a crash in a swap, the hint is to load again.
func clearCrash(t *testing.T, when string, err error, swap bool) {
	t.Helper()
	var e *snap.Error
	if !errors.As(err, &e) || e.Code != snap.CodeDatabase ||
		!strings.Contains(e.Error(), "the MySQL server at 127.0.0.1:") || e.Hint == "" ||
		strings.Contains(err.Error(), "\n") || swap && !strings.Contains(e.Hint, "load again") {
		t.Errorf("%s: not clear: %#v", when, e)
	}
}

// counter matches a counter that a server may recompute when it starts.
var counter = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

// mySQLTables returns the definitions of a database's tables and the counts and checksums of their
// rows.
func mySQLTables(t *testing.T, server *sql.DB, name string) string {
	t.Helper()
	var all strings.Builder
	for _, table := range strings.Fields(rowsOf(t, server,
		"SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type = 'BASE TABLE' ORDER "+
			"BY table_name", name)) {
		of := name + "." + table
		made := counter.ReplaceAllString(rowsOf(t, server, "SHOW CREATE TABLE "+of), "")
		fmt.Fprintln(&all, made, rowsOf(t, server, "SELECT count(*) FROM "+of),
			strings.ReplaceAll(rowsOf(t, server, "CHECKSUM TABLE "+of), of, ""))
	}
	return all.String()
}

// mySQLPrograms returns a database's triggers, views and routines.
func mySQLPrograms(t *testing.T, server *sql.DB, name string) string {
	t.Helper()
	var all []string
	for _, query := range []string{
		"SELECT trigger_name, action_statement FROM information_schema.triggers WHERE trigger_schema = ? ORDER BY 1",
		"SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = ? ORDER BY 1",
		"SELECT routine_name, routine_definition FROM information_schema.routines WHERE routine_schema = ? ORDER BY 1",
	} {
		all = append(all, strings.ReplaceAll(rowsOf(t, server, query, name), "`"+name+"`.", ""))
	}
	return strings.Join(all, "\n")
}

// rowsOf returns the result of a query, one line for each row, with spaces between the values.
func rowsOf(t *testing.T, server *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := server.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.NullString)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(columns))
		for i, v := range values {
			texts[i] = v.(*sql.NullString).String
		}
		lines = append(lines, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return strings.Join(lines, "\n")
}
