//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// If a load into an existing database is killed, at any of many points, it leaves the complete
// old or new content and none of its own schemas.
func TestPostgresLoadIntoExistingKilledAtRandomPoints(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to, _ := p.crashing(t)
		s, _ := p.built(t, to)
		env := fmt.Sprintf("%s=%d", childInto, engine.Existing)
		rounds, r, killed, steps := p.rounds(9), chance(t, 14), 0, s.steps(t, "load", env)
		for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
			oldPostgres(t, to)
			lines, moment := 1+r.IntN(steps), time.Duration(r.IntN(50))*time.Millisecond
			if s.killedAt(t, "load", lines, moment, env) {
				killed++
			}
			waitForSessions(t, to)
			wholePostgres(t, to, fmt.Sprintf("round %d, killed after %d lines and %s", round, lines, moment))
			nothingOfALoad(t, to)
		}
		if killed < rounds/3 {
			t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
		}
	})
}

// If a load into an existing database is stopped in any phase, or if the server crashes then, the
// complete old or new content is left.
func TestPostgresLoadIntoExistingStoppedInAnyPhase(t *testing.T) {
	onPostgres(t, func(t *testing.T, p pgServer) {
		to, crash := p.crashing(t)
		s, _ := p.built(t, to)
		for phase, reached := 1, true; reached; phase++ {
			for _, how := range []string{"stopped", "the server crashed"} {
				oldPostgres(t, to)
				ctx, stop := context.WithCancel(t.Context())
				halt := stop
				if how != "stopped" {
					halt = crash
				}
				var err error
				reached, err = until(phase, 0, halt, func(p Progress) error {
					_, err := s.Load(ctx, shopTarget, LoadOptions{Into: engine.Existing}, p)
					return err
				})
				stop()
				wholePostgres(t, to, fmt.Sprintf("%s in phase %d: %v", how, phase, err))
				nothingOfALoad(t, to)
			}
		}
		if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Into: engine.Existing, Terminate: true},
			nil); err != nil {
			t.Fatal(err)
		}
		wholePostgres(t, to, "the next load")
	})
}

// nothingOfALoad checks that a load left no schema in the database.
func nothingOfALoad(t *testing.T, url string) {
	t.Helper()
	if n := one(t, url, `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'snapcli\_%'`); n != 0 {
		t.Errorf("%d schemas are left behind", n)
	}
}

// A killed load in place leaves a database that is marked as incomplete. The next load completes
// it.
func TestPostgresLoadInPlaceKilled(t *testing.T) {
	t.Parallel()
	to, _ := pgServer{}.crashing(t)
	s, _ := pgServer{}.built(t, to)
	env := fmt.Sprintf("%s=%d", childInto, engine.InPlace)
	marked, steps := false, s.steps(t, "load", env)
	rounds := min(steps, fromEnv("SNAP_KILL_ROUNDS", 10))
	for round := 0; round < rounds || !marked && round < 20*steps; round++ {
		lines := spread(round, rounds, steps)
		oldPostgres(t, to)
		s.killedAt(t, "load", lines, 0, env)
		waitForSessions(t, to)
		marked = one(t, to, "SELECT count(*) FROM pg_namespace WHERE nspname = '"+engine.Unfinished+"'") > 0
		if !marked {
			wholePostgres(t, to, fmt.Sprintf("killed after %d lines", lines))
			continue
		}
		info, err := s.Preflight(t.Context(), shopTarget, LoadOptions{})
		if err != nil || len(info.Warnings) != 1 || info.Warnings[0] != engine.UnfinishedWarning {
			t.Errorf("%q, %v", info.Warnings, err)
		}
	}
	if !marked {
		t.Error("no load was killed while it filled the database")
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Into: engine.InPlace, Terminate: true},
		nil); err != nil {
		t.Fatal(err)
	}
	wholePostgres(t, to, "the next load")
	nothingOfALoad(t, to)
}

// spread returns the step, from 1, at which a round kills a load. The rounds are spread evenly over
// all steps, of which a load of many rows has hundreds. Rounds beyond that number try every step in
// turn.
func spread(round, rounds, steps int) int {
	if round < rounds {
		return 1 + round*steps/rounds
	}
	return 1 + round%steps
}

// killMySQLInPlace does the same as TestPostgresLoadInPlaceKilled, on a server of MySQL or MariaDB.
func killMySQLInPlace(t *testing.T, server string) {
	s, destination, name := mySQLShop(t, servertest.MySQL(t, server), servertest.MySQL(t, server))
	env := fmt.Sprintf("%s=%d", childInto, engine.InPlace)
	marked, steps := false, s.steps(t, "load", env)
	rounds := min(steps, fromEnv("SNAP_KILL_ROUNDS", 10))
	for round := 0; round < rounds || !marked && round < 20*steps; round++ {
		lines := spread(round, rounds, steps)
		oldMySQL(t, destination, name)
		s.killedAt(t, "load", lines, 0, env)
		if err := destination.QueryRow("SELECT count(*) > 0 FROM information_schema.tables WHERE table_schema = ? "+
			"AND table_name = ?", name, engine.Unfinished).Scan(&marked); err != nil {
			t.Fatal(err)
		}
		if !marked {
			wholeMySQL(t, destination, name, fmt.Sprintf("killed after %d lines", lines))
			continue
		}
		info, err := s.Preflight(t.Context(), shopTarget, LoadOptions{})
		if err != nil || len(info.Warnings) != 1 || info.Warnings[0] != engine.UnfinishedWarning {
			t.Errorf("%q, %v", info.Warnings, err)
		}
	}
	if !marked {
		t.Error("no load was killed while it filled the database")
	}
	if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Into: engine.InPlace, Terminate: true},
		nil); err != nil {
		t.Fatal(err)
	}
	wholeMySQL(t, destination, name, "the next load")
	if left := mySQLLeft(t, destination); left != 0 {
		t.Errorf("%d databases are left behind", left)
	}
}

// The after_load SQL of a load into an existing database cannot end the transaction. With COMMIT or
// ROLLBACK in any form, the load fails and the old content stays.
func TestPostgresAfterLoadEndsTheTransaction(t *testing.T) {
	t.Parallel()
	to := servertest.Postgres(t)
	s, _ := pgServer{}.built(t, to)
	path := filepath.Join(t.TempDir(), "fix.sql")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set("targets."+shopTarget+".after_load", path); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"COMMIT", "SELECT 1; commit; SELECT 2", "END; BEGIN", "ROLLBACK", "ABORT; BEGIN",
		"COMMIT AND CHAIN", "ROLLBACK AND CHAIN", "PREPARE TRANSACTION 'x'", "DO $$ BEGIN COMMIT; END $$",
		"SET CONSTRAINTS ALL DEFERRED; COMMIT; BEGIN", "SAVEPOINT a; ROLLBACK TO a; COMMIT"} {
		oldPostgres(t, to)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), shopTarget, LoadOptions{Into: engine.Existing}, nil); err == nil {
			t.Errorf("%s: the load succeeded", text)
		}
		if n := one(t, to, "SELECT count(*) FROM pg_class WHERE relname = 'old' AND relkind = 'r'"); n != 1 {
			t.Errorf("%s: the old content is gone", text)
		}
		wholePostgres(t, to, text)
		nothingOfALoad(t, to)
	}
}
