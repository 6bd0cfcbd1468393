//go:build linux

package local

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"snap/internal/servertest"
)

// Killed at many points, a load into PostgreSQL leaves the old database or the
// new one, whole, and the next load drops the scratch databases.
func TestPostgresLoadKilledAtRandomPoints(t *testing.T) {
	t.Parallel()
	rounds := 16
	if testing.Short() {
		rounds = 4
	}
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	execute(t, from, `CREATE TABLE customer (id int PRIMARY KEY, pad text); INSERT INTO customer SELECT n, repeat('x', 200) FROM generate_series(1, 20000) n;
		CREATE TABLE purchase (id int PRIMARY KEY, customer int REFERENCES customer); INSERT INTO purchase SELECT id, id FROM customer; CREATE INDEX ON purchase (customer)`)
	execute(t, to, "CREATE TABLE old (a int); INSERT INTO old VALUES (1)")
	s := newShop(t)
	if err := s.AddTarget(Target{Name: shopTarget, Source: from, Destination: to, Jobs: 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	killed := 0
	for round := range rounds {
		lines, moment := 1+r.IntN(12), time.Duration(r.IntN(400))*time.Millisecond
		if s.killedAt(t, "load", lines, moment) {
			killed++
		}
		wholePostgres(t, to, fmt.Sprintf("round %d, killed after %d lines and %s", round, lines, moment))
	}
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, nil); err != nil {
		t.Fatalf("the next load: %v", err)
	}
	db, err := sql.Open("pgx", to)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if left := scratchLeft(t, db); left != 0 {
		t.Errorf("%d scratch databases are left behind", left)
	}
}

func wholePostgres(t *testing.T, url, when string) {
	t.Helper()
	switch tables := one(t, url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); tables {
	case 1:
		if n := one(t, url, "SELECT a FROM old"); n != 1 {
			t.Fatalf("%s: the old database changed", when)
		}
	case 2:
		if n := one(t, url, "SELECT (SELECT count(*) FROM customer) + (SELECT count(*) FROM purchase) + (SELECT count(*) FROM pg_indexes WHERE schemaname = 'public')"); n != 40003 {
			t.Fatalf("%s: the new database is not whole: %d", when, n)
		}
	default:
		t.Fatalf("%s: %d tables", when, tables)
	}
}

func execute(t *testing.T, url, text string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

func one(t *testing.T, url, query string) (n int64) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
