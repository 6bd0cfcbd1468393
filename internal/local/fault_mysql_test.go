//go:build linux

package local

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// Killed at many points of a build, a sanitize or a load, the swap included, the
// tables are the old ones or the new ones, whole; the next load finishes what
// was begun, and leaves nothing behind. SNAP_KILL_ROUNDS sets how many rounds
// there are, SNAP_KILL_SEED their points.
func TestMySQLKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	for _, server := range servertest.MySQLServers() {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			killMySQL(t, server)
		})
	}
}

func killMySQL(t *testing.T, server string) {
	rounds, seed := fromEnv("SNAP_KILL_ROUNDS", 15), fromEnv("SNAP_KILL_SEED", 5)
	if testing.Short() {
		rounds = 3
	}
	from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
	source, destination := openMySQL(t, from), openMySQL(t, strings.TrimSuffix(to, to[strings.LastIndexByte(to, '/')+1:]))
	defer source.Close()
	defer destination.Close()
	name := to[strings.LastIndexByte(to, '/')+1:]
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
	for range 13 { // 8192 rows
		if _, err := source.Exec("INSERT INTO customer (pad) SELECT concat(pad, id) FROM customer"); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{"CREATE TABLE " + name + ".old (a INT)", "INSERT INTO " + name + ".old VALUES (1)"} {
		if _, err := destination.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s := newShop(t)
	if err := s.AddTarget(Target{Name: shopTarget, Source: from, Destination: to, Jobs: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	mask := s.rulesFile(t, "keep: ['*.id', '*.customer']\ntables: {customer: {columns: {pad: redact}}}\n")
	r := rand.New(rand.NewPCG(uint64(seed), 6))
	killed := 0
	for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
		action := []string{"load", "load", "build", "load", "sanitize"}[round%5]
		lines, moment := 1+r.IntN(30), time.Duration(r.IntN(300))*time.Millisecond
		if s.killedAt(t, action, lines, moment, "SNAPCLI_TEST_RULES="+mask) {
			killed++
		}
		var old, others, rows int
		if err := destination.QueryRow("SELECT count(CASE WHEN table_name = 'old' THEN 1 END), count(CASE WHEN table_name <> 'old' AND table_type = 'BASE TABLE' THEN 1 END) FROM information_schema.tables WHERE table_schema = ?", name).Scan(&old, &others); err != nil {
			t.Fatal(err)
		}
		if others > 0 {
			if err := destination.QueryRow("SELECT count(*) FROM " + name + ".customer").Scan(&rows); err != nil {
				t.Fatal(err)
			}
		}
		if !(old == 1 && others == 0) && !(old == 0 && others == 2 && rows == 8192) {
			t.Fatalf("round %d, %s killed after %d lines and %s: %d old and %d new tables, %d rows", round, action, lines, moment, old, others, rows)
		}
		list, err := s.Snapshots("")
		if err != nil {
			t.Fatal(err)
		}
		for _, snapshot := range list {
			if _, err := s.Verify(t.Context(), snapshot.Name, nil); err != nil {
				t.Fatalf("round %d: %s: %v", round, snapshot.Name, err)
			}
		}
	}
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, nil); err != nil {
		t.Fatalf("the next load: %v", err)
	}
	var programs, left int
	if err := destination.QueryRow(`SELECT (SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = ?) + (SELECT count(*) FROM information_schema.views WHERE table_schema = ?) + (SELECT count(*) FROM information_schema.routines WHERE routine_schema = ?),
		(SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'snapcli%' AND is_free_lock(right(schema_name, 16)))`, name, name, name).Scan(&programs, &left); err != nil || programs != 3 || left != 0 {
		t.Errorf("%d programs, %d databases left behind, %v", programs, left, err)
	}
}

// A wrong password is told without it, and the right one is in no argument of
// any process: no program is started.
func TestMySQLWrongPassword(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	url := strings.Replace(servertest.MariaDB(t), "root@", "root:s3cret@", 1)
	if err := s.AddTarget(Target{Name: shopTarget, Source: url}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if snap.CodeOf(err) != snap.CodeDatabase || strings.Contains(fmt.Sprintf("%+v", err), "s3cret") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}
