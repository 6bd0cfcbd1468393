//go:build linux

package local

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// A build, a sanitize or a load is killed at many points, including the swap. The tables are then all
// old or all new, and the next load completes the work and leaves nothing behind. SNAP_KILL_ROUNDS
// sets the number of rounds on each server, and SNAP_KILL_SEED their points.
func TestMySQLKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	for i, server := range servertest.MySQLServers() {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			killMySQL(t, server, []int{15, 5}[min(i, 1)])
			killMySQLInPlace(t, server) // not at the same time: each finds what the other's killed loads leave
		})
	}
}

func killMySQL(t *testing.T, server string, few int) {
	rounds := fromEnv("SNAP_KILL_ROUNDS", few)
	if testing.Short() {
		rounds = 3
	}
	s, destination, name := mySQLShop(t, servertest.MySQL(t, server), servertest.MySQL(t, server))
	mask := s.rulesFile(t, "keep: ['*.id', '*.customer']\ntables: {customer: {columns: {pad: redact}}}\n")
	steps := map[string]int{}
	for _, action := range []string{"build", "sanitize", "load"} {
		steps[action] = s.steps(t, action, "SNAPCLI_TEST_RULES="+mask)
	}
	r := chance(t, 6)
	killed, good := 0, map[string]bool{}
	for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
		oldMySQL(t, destination, name)
		action := []string{"load", "load", "build", "load", "sanitize"}[round%5]
		lines, moment := 1+r.IntN(steps[action]), time.Duration(r.IntN(50))*time.Millisecond
		if s.killedAt(t, action, lines, moment, "SNAPCLI_TEST_RULES="+mask) {
			killed++
		}
		wholeMySQL(t, destination, name, fmt.Sprintf("round %d, %s killed after %d lines and %s", round, action, lines,
			moment))
		list, err := s.Snapshots("")
		if err != nil {
			t.Fatal(err)
		}
		for _, snapshot := range list {
			if good[snapshot.Name] {
				continue
			}
			if _, err := s.Verify(t.Context(), snapshot.Name, nil); err != nil {
				t.Fatalf("round %d: %s: %v", round, snapshot.Name, err)
			}
			good[snapshot.Name] = true
		}
	}
	t.Logf("%d of %d rounds were killed in time", killed, rounds)
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, nil); err != nil {
		t.Fatalf("the next load: %v", err)
	}
	var programs int
	if err := destination.QueryRow(`SELECT (SELECT count(*) FROM information_schema.triggers `+
		`WHERE trigger_schema = ?) + (SELECT count(*) FROM information_schema.views `+
		`WHERE table_schema = ?) + (SELECT count(*) FROM information_schema.routines WHERE routine_schema = ?)`,
		name, name, name).Scan(&programs); err != nil || programs != 3 {
		t.Errorf("%d programs, %v", programs, err)
	}
	if left := mySQLLeft(t, destination); left != 0 {
		t.Errorf("%d databases are left behind", left)
	}
}

// mySQLShop returns a shop with a snapshot and a target from one MySQL database to another. It also
// returns the server and the name of the second database.
func mySQLShop(t *testing.T, from, to string) (s shop, server *sql.DB, name string) {
	t.Helper()
	name = to[strings.LastIndexByte(to, '/')+1:]
	source := openMySQL(t, from)
	defer source.Close()
	server = openMySQL(t, strings.TrimSuffix(to, name))
	t.Cleanup(func() { server.Close() })
	for _, statement := range []string{
		"CREATE TABLE customer (id INT PRIMARY KEY AUTO_INCREMENT, pad VARCHAR(300), KEY (pad))",
		"INSERT INTO customer (pad) VALUES (repeat('x', 200))",
		"CREATE TABLE purchase (id INT PRIMARY KEY, customer INT, FOREIGN KEY (customer) REFERENCES customer (id))",
		"CREATE TRIGGER made BEFORE INSERT ON purchase FOR EACH ROW SET NEW.id = NEW.id",
		"CREATE VIEW shown AS SELECT id FROM customer",
		"CREATE PROCEDURE done() SELECT 1",
	} {
		if _, err := source.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 11 { // 2048 rows
		if _, err := source.Exec("INSERT INTO customer (pad) SELECT concat(100000000 + id * 104729, substr(pad, " +
			"10)) FROM customer"); err != nil {
			t.Fatal(err)
		}
	}
	s = newShop(t)
	if err := s.AddTarget(Target{Name: shopTarget, Source: from, Destination: to, Jobs: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return s, server, name
}

// wholeMySQL fails the test unless a database is the complete old one or the complete new one.
func wholeMySQL(t *testing.T, server *sql.DB, name, when string) {
	t.Helper()
	var old, others, rows int
	if err := server.QueryRow("SELECT count(CASE WHEN table_name = 'old' THEN 1 END), count(CASE WHEN table_name <> "+
		"'old' AND table_type = 'BASE TABLE' THEN 1 END) FROM information_schema.tables WHERE table_schema = ?",
		name).Scan(&old, &others); err != nil {
		t.Fatal(err)
	}
	if others > 0 {
		if err := server.QueryRow("SELECT count(*) FROM " + name + ".customer").Scan(&rows); err != nil {
			t.Fatal(err)
		}
	}
	if !(old == 1 && others == 0) && !(old == 0 && others == 2 && rows == 2048) {
		t.Fatalf("%s: %d old and %d new tables, %d rows", when, old, others, rows)
	}
}

// mySQLLeft counts the databases that loads have left behind. A load of another test may drop a
// database, and free its lock, while a query runs. So only databases that a second query also finds
// are counted.
func mySQLLeft(t *testing.T, server *sql.DB) (left int) {
	t.Helper()
	const free = "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'snapcli%' AND " +
		"is_free_lock(right(schema_name, 16))"
	first := column(t, server, free)
	for _, name := range column(t, server, free) {
		if slices.Contains(first, name) {
			left++
		}
	}
	return left
}

// If a load is stopped in any phase, it leaves the old database or the new one, and
// nothing else.
func TestMySQLLoadStoppedInAnyPhase(t *testing.T) {
	t.Parallel()
	to := servertest.OwnMySQL(t, "mariadb", "") // a separate server: other tests leave databases on the shared one
	s, server, name := mySQLShop(t, servertest.MariaDB(t), to)
	r := chance(t, 9)
	for phase, reached := 1, true; reached; phase++ {
		for _, moment := range []time.Duration{0, time.Duration(r.IntN(100)) * time.Millisecond} {
			oldMySQL(t, server, name)
			ctx, stop := context.WithCancel(t.Context())
			var err error
			reached, err = s.loadUntil(ctx, phase, moment, stop)
			stop()
			when := fmt.Sprintf("stopped in phase %d after %s: %v", phase, moment, err)
			wholeMySQL(t, server, name, when)
			if left := mySQLLeft(t, server); left != 0 {
				t.Fatalf("%s: %d databases are left behind", when, left)
			}
		}
	}
}

// oldMySQL restores the old database, unless the database is the old one already or
// the next load must first complete a swap in it.
func oldMySQL(t *testing.T, server *sql.DB, name string) {
	t.Helper()
	var old, swaps int
	if err := server.QueryRow("SELECT (SELECT count(*) = 1 AND max(table_name) = 'old' FROM information_schema.tables "+
		"WHERE table_schema = ?), (SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE "+
		"'snapcli\\_journal\\_%')", name).Scan(&old, &swaps); err != nil {
		t.Fatal(err)
	}
	if old > 0 || swaps > 0 {
		return
	}
	for _, statement := range []string{"DROP DATABASE " + name, "CREATE DATABASE " + name, "CREATE TABLE " + name +
		".old (a INT)", "INSERT INTO " + name + ".old VALUES (1)"} {
		if _, err := server.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// The error for a wrong password does not contain the password.
func TestMySQLWrongPassword(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	url := strings.Replace(servertest.MariaDB(t), "root@", "root:s3cret@", 1)
	if err := s.AddTarget(Target{Name: shopTarget, Source: url}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if snap.CodeOf(err) != snap.CodeDatabase || strings.Contains(fmt.Sprintf("%+v", err), "s3cret") ||
		!strings.Contains(err.Error(), "refused the user") {
		t.Errorf("%v", err)
	}
}
