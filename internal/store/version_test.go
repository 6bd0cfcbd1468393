package store_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// versions runs a test on each database.
func versions(t *testing.T, f func(t *testing.T, o store.Options)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, store.Options{DataDir: t.TempDir()}) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, store.Options{URL: servertest.Postgres(t)}) })
}

func stateOf(t *testing.T, s *store.Store) string {
	t.Helper()
	v, err := s.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.State
}

// Every commit, by this process or by another, makes another version; reading,
// and what was rolled back, does not have to.
func TestVersionChangesWithEveryCommit(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		other := openAll(t, store.Options{URL: o.URL, DataDir: o.DataDir}, 1)[0]
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		sn := w.push(adam, "shop", snap.TypeSnapshot)
		seen := map[string]bool{}
		for i := range 200 {
			s := []*store.Store{w.Store, other}[i/2%2]
			change := s.Share
			if i%2 == 1 {
				change = s.Unshare
			}
			w.ok(change(w.ctx, adam, sn))
			for _, reader := range []*store.Store{w.Store, other} {
				state := stateOf(t, reader)
				if reader == w.Store && seen[state] {
					t.Fatalf("after change %d the version is one of before: %s", i, state)
				}
				if reader == w.Store {
					seen[state] = true
				}
				if _, err := reader.Snapshots(w.ctx, adam, store.Query{}); err != nil {
					t.Fatal(err)
				}
				if o.URL == "" && stateOf(t, reader) != state { // other databases of the server may commit
					t.Fatalf("reading changed the version %s", state)
				}
			}
		}
	})
}

// While a transaction is open nobody sees what it wrote, and the version is the
// same before it and during it: only its end changes it.
func TestVersionChangesWhenTheCommitIsSeen(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		before := stateOf(t, w.Store)
		tx, err := w.DB().BeginTx(t.Context(), nil)
		w.ok(err)
		defer tx.Rollback()
		_, err = tx.Exec(`INSERT INTO targets(name) VALUES('made')`)
		w.ok(err)
		if o.URL == "" && stateOf(t, w.Store) != before {
			t.Error("an open transaction changes the version")
		}
		during := stateOf(t, w.Store)
		w.ok(tx.Commit())
		after := stateOf(t, w.Store)
		if after == before || after == during {
			t.Errorf("versions before, during and after a transaction: %s, %s, %s", before, during, after)
		}
	})
}

// A version that stands before and after means that what was read between is
// what would be read now, while others write all the time.
func TestEqualVersionsMeanEqualRows(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		writers := openAll(t, store.Options{URL: o.URL, DataDir: o.DataDir}, 2)
		count := func() (n int) {
			w.ok(w.Reads().QueryRow(`SELECT count(*) FROM targets`).Scan(&n))
			return n
		}
		const inserts = 150
		var running sync.WaitGroup
		var done atomic.Int64
		for i, other := range writers {
			running.Go(func() {
				defer done.Add(1)
				for n := range inserts {
					if _, err := other.DB().Exec(`INSERT INTO targets(name) VALUES($1)`, fmt.Sprint(i, "-", n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		rows := map[string]int{}
		// The database's own work (autovacuum) changes the version as well: the
		// last look counts when its version stood.
		for last := false; !last; {
			written := done.Load() == int64(len(writers))
			before := stateOf(t, w.Store)
			n := count()
			if stateOf(t, w.Store) != before {
				continue
			}
			last = written
			if known, ok := rows[before]; ok && known != n {
				t.Fatalf("version %s had %d rows, and now %d", before, known, n)
			}
			rows[before] = n
		}
		running.Wait()
		if len(rows) == 0 || !slices.Contains(slices.Collect(maps.Values(rows)), len(writers)*inserts) {
			t.Errorf("of %d versions that stood, none has all rows", len(rows))
		}
	})
}

// The next end of a share is told with the version: the earliest that is still
// to come.
func TestVersionTellsTheNextEnd(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		next := func() time.Time {
			v, err := w.Version(w.ctx)
			w.ok(err)
			return v.Next
		}
		if !next().IsZero() {
			t.Error("a share ends where none was made")
		}
		start := w.clock.Now()
		for i, after := range []time.Duration{time.Hour, time.Minute, 0} {
			sn := w.push(adam, "shop", snap.TypeSnapshot)
			var until time.Time
			if after > 0 {
				until = start.Add(after).Truncate(time.Millisecond)
			}
			_, _, err := w.ShareOrg(w.ctx, adam, sn, "globex", until)
			w.ok(err)
			if want := start.Add([]time.Duration{time.Hour, time.Minute, time.Minute}[i]).Truncate(time.Millisecond); !next().Equal(want) {
				t.Errorf("the next share ends %s, want %s", next(), want)
			}
		}
		w.clock.Advance(time.Minute)
		if want := start.Add(time.Hour).Truncate(time.Millisecond); !next().Equal(want) {
			t.Errorf("after the first end, the next is %s, want %s", next(), want)
		}
	})
}

// Versions of two connections have nothing to do with each other: after a crash
// the server may number again what it had numbered before.
func TestVersionIsOfOneConnection(t *testing.T) {
	t.Parallel()
	versions(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		before := stateOf(t, w.Store)
		w.Reconnect()
		if after := stateOf(t, w.Store); after == before {
			t.Errorf("the version is %s by two connections", after)
		}
	})
}
