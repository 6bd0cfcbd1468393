//go:build linux

package local

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// pgServer is a PostgreSQL server to test faults on: the machine's own, or one of a
// certain major version.
type pgServer struct{ major int }

// onPostgres runs a test of faults on the machine's own PostgreSQL and on the
// versions in the comma-separated list SNAP_FAULT_POSTGRES (18 by default).
// SNAP_KILL_ROUNDS sets the number of rounds of a random test, and SNAP_KILL_SEED
// their points.
func onPostgres(t *testing.T, test func(*testing.T, pgServer)) {
	t.Parallel()
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		test(t, pgServer{})
	})
	versions, set := os.LookupEnv("SNAP_FAULT_POSTGRES")
	if !set {
		versions = "18"
	}
	for version := range strings.SplitSeq(versions, ",") {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			major, err := strconv.Atoi(version)
			if err != nil {
				t.Fatalf("SNAP_FAULT_POSTGRES: %v", err)
			}
			test(t, pgServer{major})
		})
	}
}

// database returns the URL of an empty database on the shared server of this version.
func (p pgServer) database(t *testing.T) string {
	t.Helper()
	if p.major == 0 {
		return servertest.Postgres(t)
	}
	return servertest.PostgresVersion(t, p.major)
}

// crashing returns the URL of the test's own server and a function that crashes it.
func (p pgServer) crashing(t *testing.T) (url string, crash func()) {
	t.Helper()
	if p.major == 0 {
		return servertest.CrashingPostgres(t)
	}
	return servertest.CrashingPostgresVersion(t, p.major)
}

// tools returns the folder of the version's programs, or of the newest available
// ones if that version has none. It returns "" for the programs that the product
// finds itself.
func (p pgServer) tools(t *testing.T) string {
	t.Helper()
	if p.major == 0 {
		return ""
	}
	for _, major := range []int{p.major, 18, 17} {
		if bin := servertest.PostgresTools(t, major); major >= p.major && bin != "" {
			return bin
		}
	}
	t.Skipf("needs pg_dump %d or newer: `make databases` gets it", p.major)
	return ""
}

// rounds returns the number of rounds of a random test: many for the machine's own
// version, and fewer for others.
func (p pgServer) rounds(many int) int {
	if p.major != 0 || testing.Short() {
		many /= 3
	}
	return fromEnv("SNAP_KILL_ROUNDS", many)
}

// chance is the source of a test's random points.
func chance(t *testing.T, test uint64) *rand.Rand {
	t.Helper()
	seed := fromEnv("SNAP_KILL_SEED", 3)
	t.Logf("SNAP_KILL_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), test))
}

// shop returns a target from a database on a server of this version to another
// database that has content to lose.
func (p pgServer) shop(t *testing.T, to string) (s shop, from string) {
	t.Helper()
	from = p.database(t)
	execute(t, from,
		`CREATE TABLE customer (id int PRIMARY KEY, email text);
		INSERT INTO customer SELECT n, 'person-' || n || '@real.example' FROM generate_series(1, 8000) n;
		CREATE TABLE purchase (id int PRIMARY KEY, customer int REFERENCES customer, note text);
		INSERT INTO purchase SELECT id, id, repeat(md5(id::text), 8) FROM customer;
		CREATE INDEX ON purchase (customer)`)
	oldPostgres(t, to)
	s = newShop(t)
	if tools := p.tools(t); tools != "" {
		if err := s.file.write(fmt.Appendf(nil, "postgres_tools: [%q]\n", tools)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddTarget(Target{Name: shopTarget, Source: from, Destination: to, Jobs: 2}); err != nil {
		t.Fatal(err)
	}
	return s, from
}

// built returns a shop with a snapshot.
func (p pgServer) built(t *testing.T, to string) (s shop, from string) {
	t.Helper()
	s, from = p.shop(t, to)
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return s, from
}

// If a load into PostgreSQL is killed, at any of many points, it leaves the
// complete old or new database. The next load drops the scratch databases.
func TestPostgresLoadKilledAtRandomPoints(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to, _ := p.crashing(t) // a separate server: other tests leave scratch databases on the shared one
		s, _ := p.built(t, to)
		rounds, r, killed, steps := p.rounds(9), chance(t, 4), 0, s.steps(t, "load")
		for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
			oldPostgres(t, to)
			lines, moment := 1+r.IntN(steps), time.Duration(r.IntN(50))*time.Millisecond
			if s.killedAt(t, "load", lines, moment) {
				killed++
			}
			waitForSessions(t, to)
			wholePostgres(t, to, fmt.Sprintf("round %d, killed after %d lines and %s", round, lines, moment))
		}
		t.Logf("%d of %d rounds were killed in time", killed, rounds)
		if killed < rounds/3 {
			t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
		}
		s.nextLoad(t, to)
	})
}

// If the server crashes at any moment of a load, the complete old or new database
// is there afterwards.
func TestPostgresServerCrashesDuringLoad(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to, crash := p.crashing(t)
		s, _ := p.built(t, to)
		rounds, r, failed := p.rounds(3), chance(t, 8), 0
		for round := range rounds {
			oldPostgres(t, to)
			phase, moment := 1+r.IntN(5), time.Duration(r.IntN(300))*time.Millisecond
			_, err := s.loadUntil(t.Context(), phase, moment, crash)
			if err != nil {
				failed++
			}
			if code := snap.CodeOf(err); err != nil && code != snap.CodeDatabase {
				t.Errorf("round %d: %s: %v", round, code, err)
			}
			wholePostgres(t, to, fmt.Sprintf("round %d, the server crashed in phase %d after %s: %v", round, phase,
				moment, err))
		}
		if failed == 0 && rounds > 5 {
			t.Error("no load noticed a crash")
		}
		s.nextLoad(t, to)
	})
}

// If a load is stopped in any phase, it leaves the old database or the new one, and
// nothing else.
func TestPostgresLoadStoppedInAnyPhase(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to, _ := p.crashing(t)
		s, _ := p.built(t, to)
		r := chance(t, 9)
		for phase, reached := 1, true; reached; phase++ {
			for n := range 1 + p.rounds(1) {
				moment := time.Duration(n*r.IntN(200)) * time.Millisecond // first as the phase begins
				oldPostgres(t, to)
				ctx, stop := context.WithCancel(t.Context())
				var err error
				reached, err = s.loadUntil(ctx, phase, moment, stop)
				stop()
				when := fmt.Sprintf("stopped in phase %d after %s: %v", phase, moment, err)
				wholePostgres(t, to, when)
				if left := scratchLeft(t, to); left != nil {
					t.Fatalf("%s: %q are left behind", when, left)
				}
			}
		}
	})
}

// A load into a database that is in use is refused, and changes nothing.
func TestPostgresLoadRefused(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to := p.database(t)
		s, _ := p.built(t, to)
		user, err := sql.Open("pgx", to)
		if err != nil {
			t.Fatal(err)
		}
		defer user.Close()
		if err := user.Ping(); err != nil {
			t.Fatal(err)
		}
		restoring := func(e Event) {
			if e.Phase == "restore" {
				t.Error("the restore began although the destination is in use")
			}
		}
		if _, err := s.Load(t.Context(), shopTarget, LoadOptions{}, restoring); snap.CodeOf(err) != snap.CodeConflict ||
			!strings.Contains(err.Error(), "in use") {
			t.Errorf("%v", err)
		}
		wholePostgres(t, to, "refused")
	})
}

// loadUntil loads, and calls f a given time after the phase with this number began.
// reached is false if the load had fewer phases.
func (s shop) loadUntil(ctx context.Context, phase int, moment time.Duration, f func()) (reached bool, err error) {
	return until(phase, moment, f, func(p Progress) error {
		_, err := s.Load(ctx, shopTarget, LoadOptions{Terminate: true}, p)
		return err
	})
}

// until is like loadUntil, for any action.
func until(phase int, moment time.Duration, f func(), action func(Progress) error) (reached bool, err error) {
	here, done := make(chan struct{}), make(chan error, 1)
	go func() {
		last, begun := "", 0
		done <- action(func(e Event) {
			if e.Phase == last {
				return
			}
			if last, begun = e.Phase, begun+1; begun == phase {
				close(here)
			}
		})
	}()
	select {
	case <-here:
		<-time.After(moment)
		f()
		return true, <-done
	case err := <-done:
		return false, err
	}
}

// nextLoad loads once more, and fails the test if that does not remove the remains of earlier
// loads.
func (s shop) nextLoad(t *testing.T, to string) {
	t.Helper()
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Terminate: true}, nil); err != nil {
		t.Fatalf("the next load: %v", err)
	}
	wholePostgres(t, to, "the next load")
	if left := scratchLeft(t, to); left != nil {
		t.Errorf("%q are left behind", left)
	}
}

// waitForSessions waits until a server has ended the sessions of a killed load. Until then, the last
// statement that it sent can still succeed.
func waitForSessions(t *testing.T, url string) {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer leave(t, db, url)
	for there := true; there; {
		if err := db.QueryRow("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'snapcli')").Scan(
			&there); err != nil {
			t.Fatal(err)
		}
	}
}

// oldPostgres restores the old database, unless the database is the old one already.
func oldPostgres(t *testing.T, url string) {
	t.Helper()
	execute(t, url, "DROP TABLE IF EXISTS purchase, customer; DROP SCHEMA IF EXISTS "+engine.Unfinished+
		" CASCADE; CREATE TABLE IF NOT EXISTS old AS SELECT 1 AS a")
}

// wholePostgres fails the test unless a database is the complete old one or the complete new one.
func wholePostgres(t *testing.T, url, when string) {
	t.Helper()
	switch tables := one(t, url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); tables {
	case 1:
		if n := one(t, url, "SELECT a FROM old"); n != 1 {
			t.Fatalf("%s: the old database changed", when)
		}
	case 2:
		if n := one(t, url,
			"SELECT (SELECT count(*) FROM customer) + (SELECT count(*) FROM purchase) + (SELECT count(*) FROM "+
				"pg_indexes WHERE schemaname = 'public')"); n != 16003 {
			t.Fatalf("%s: the new database is not whole: %d", when, n)
		}
	default:
		t.Fatalf("%s: %d tables", when, tables)
	}
}
