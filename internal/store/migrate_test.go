package store_test

import (
	"sync"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Several processes of the service may start at once on an empty database, and
// again on a full one; what is there stays.
func TestOpenMigratesOnceForAll(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(t *testing.T) store.Options{
		"sqlite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir()} },
		"postgres": func(t *testing.T) store.Options { return store.Options{URL: servertest.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			openAll(t, o, 5)
			w := newWorld(t, o)
			alice := w.user(w.acme, "alice", snap.RoleMember)
			sn := w.push(alice, "shop", snap.TypeSnapshot)
			for _, s := range openAll(t, o, 3) {
				if got, err := s.Snapshot(t.Context(), alice, sn.ID); err != nil || got.Name != sn.Name {
					t.Errorf("after opening again: %+v, %v", got, err)
				}
			}
		})
	}
}

// openAll opens the same database n times at once.
func openAll(t *testing.T, o store.Options, n int) []*store.Store {
	t.Helper()
	all := make([]*store.Store, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			s, err := store.Open(t.Context(), o)
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
				return
			}
			all[i] = s
			t.Cleanup(func() { s.Close() })
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

func TestOpenRefusesOtherURLs(t *testing.T) {
	t.Parallel()
	if _, err := store.Open(t.Context(), store.Options{URL: "mysql://localhost/x"}); err == nil {
		t.Error("a mysql:// URL was accepted")
	}
}
