package store_test

import (
	"fmt"
	"sync"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Several processes of the service may start at the same time on an empty database, and again on a
// full one. Existing data is kept.
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

// The data of an earlier version of the service is kept in an upgrade: organizations, users,
// snapshots and who may see them.
func TestOpenUpgradesEveryVersion(t *testing.T) {
	t.Parallel()
	newest, err := store.Versions()
	if err != nil {
		t.Fatal(err)
	}
	for version := int64(1); version <= newest; version++ {
		for name, options := range map[string]func(t *testing.T) store.Options{
			"sqlite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir()} },
			"postgres": func(t *testing.T) store.Options { return store.Options{URL: servertest.Postgres(t)} },
		} {
			t.Run(fmt.Sprintf("%s from %d", name, version), func(t *testing.T) {
				t.Parallel()
				o := options(t)
				if err := store.FillVersion(t.Context(), o, version, firstVersionRows...); err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, o)
				alice, err := w.UserByEmail(w.ctx, w.acme.ID, "alice@acme.test")
				w.ok(err)
				page, err := w.Snapshots(w.ctx, w.caller(alice.ID), store.Query{})
				w.ok(err)
				if len(page.Items) != 1 || page.Items[0].ID != "snap_old" || page.Items[0].Shared {
					t.Errorf("after the upgrade alice sees %+v, want the one old snapshot", page.Items)
				}
				sn := page.Items[0]
				gail := w.user(w.globex, "gail", snap.RoleMember)
				if _, err := w.Snapshot(w.ctx, gail, sn.ID); err != nil {
					t.Errorf("after the upgrade the recipient does not see it: %v", err)
				}
				w.ok(w.Share(w.ctx, w.caller(alice.ID), sn))
			})
		}
	}
}

// firstVersionRows are the rows that the first version stored when alice pushed and shared with
// globex.
var firstVersionRows = []string{
	`INSERT INTO principals(kind) VALUES('org'), ('org'), ('user')`,
	`INSERT INTO orgs(id, slug, name, policy) VALUES(1, 'acme', 'Acme', '{}'), (2, 'globex', 'Globex', '{}')`,
	`INSERT INTO users(id, org_id, issuer, subject, email, email_folded, name, role, created_at)
		VALUES(3, 1, 'i', 'alice', 'alice@acme.test', 'alice@acme.test', 'Alice', 'member', 0)`,
	`INSERT INTO membership(principal, kind, audience) VALUES(1, 1, 9), (1, 2, 10), (1, 4, 12), (2, 1, 17), (2, 2, 18), (2, 4, 20), (3, 0, 24), (3, 2, 10), (3, 4, 12)`,
	`INSERT INTO targets(name) VALUES('shop')`,
	`INSERT INTO org_targets(org_id, target_id, folded) VALUES(1, 1, 'shop')`,
	`INSERT INTO snapshots(key, id, org_id, owner_id, target_id, target, name, folded, type, engine, size, sha256, blob, widened, created_at)
		VALUES(4194304, 'snap_old', 1, 3, 1, 'shop', 'shop-1', 'shop-1', 'snapshot', 'sqlite', 1, '00', 'blob', 1, 1)`,
	`INSERT INTO grants(audience, snapshot, target_id, type, created_at) VALUES(9, 4194304, 1, 'snapshot', 1), (24, 4194304, 1, 'snapshot', 1), (20, 4194304, 1, 'snapshot', 1)`,
}
