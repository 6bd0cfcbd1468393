package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
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

// A URL of another kind of database, or with a certificate that does not exist, is an error.
func TestOpenRefusesOtherURLs(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"mysql://localhost/x", "postgres://localhost/x?sslrootcert=/none"} {
		if _, err := store.Open(t.Context(), store.Options{URL: wrong}); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// The data of every earlier version of the service is kept in an upgrade: organizations, users,
// snapshots and who may see them. One upgrade is from the first version to the newest at once. The
// other one stops at each version, where the service stores data as its first version did.
func TestOpenUpgradesEveryVersion(t *testing.T) {
	t.Parallel()
	newest, err := store.Versions()
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []int64{1, newest} {
		for name, options := range map[string]func(t *testing.T) store.Options{
			"sqlite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir()} },
			"postgres": func(t *testing.T) store.Options { return store.Options{URL: servertest.Postgres(t)} },
		} {
			t.Run(fmt.Sprintf("%s from 1 to %d", name, last), func(t *testing.T) {
				t.Parallel()
				o := options(t)
				var all []oldRows
				fill := func(db *sql.DB) error {
					rows, err := insertOldRows(t.Context(), db)
					all = append(all, rows)
					return err
				}
				if err := store.FillVersions(t.Context(), o, last, fill); err != nil {
					t.Fatal(err)
				}
				w := newWorld(t, o)
				for i, rows := range all {
					w.checkOldRows(i+1, rows)
				}
			})
		}
	}
}

// oldRows are rows of the first version: two organizations, and a user of the first one who pushed
// a snapshot and shared it with the second.
type oldRows struct{ pusher, recipient, user int64 }

func (r oldRows) snapshot() string { return fmt.Sprint("snap_old_", r.user) }

// insertOldRows stores rows as the first version did.
func insertOldRows(ctx context.Context, db *sql.DB) (r oldRows, err error) {
	if _, err := db.ExecContext(ctx, `INSERT INTO principals(kind) VALUES('org'), ('org'), ('user')`); err != nil {
		return r, err
	}
	if err := db.QueryRowContext(ctx, `SELECT max(id) FROM principals`).Scan(&r.user); err != nil {
		return r, err
	}
	r.pusher, r.recipient = r.user-2, r.user-1
	values := strings.NewReplacer("@pusher", fmt.Sprint(r.pusher), "@recipient", fmt.Sprint(r.recipient),
		"@user", fmt.Sprint(r.user), "@key", fmt.Sprint(r.user<<22), "@snapshot", r.snapshot(),
		"@admins", fmt.Sprint(r.pusher*8+1), "@members", fmt.Sprint(r.pusher*8+2), "@received",
		fmt.Sprint(r.pusher*8+4), "@self", fmt.Sprint(r.user*8), "@otherAdmins", fmt.Sprint(r.recipient*8+1),
		"@otherMembers", fmt.Sprint(r.recipient*8+2), "@shared", fmt.Sprint(r.recipient*8+4))
	for _, text := range firstVersionRows {
		if _, err := db.ExecContext(ctx, values.Replace(text)); err != nil {
			return r, err
		}
	}
	return r, nil
}

// checkOldRows checks that the owner and the recipient still see the snapshot, and that it can be
// shared.
func (w *world) checkOldRows(version int, r oldRows) {
	w.t.Helper()
	alice, err := w.UserByEmail(w.ctx, r.pusher, "alice@acme.test")
	w.ok(err)
	page, err := w.Snapshots(w.ctx, w.caller(alice.ID), store.Query{})
	w.ok(err)
	if len(page.Items) != 1 || page.Items[0].ID != r.snapshot() || page.Items[0].Shared {
		w.t.Errorf("from version %d: alice sees %+v, want the one old snapshot", version, page.Items)
		return
	}
	gail := w.user(snap.OrgRef{ID: r.recipient, Slug: "globex"}, "gail", snap.RoleMember)
	if _, err := w.Snapshot(w.ctx, gail, r.snapshot()); err != nil {
		w.t.Errorf("from version %d: the recipient does not see it: %v", version, err)
	}
	w.ok(w.Share(w.ctx, w.caller(alice.ID), page.Items[0]))
}

// firstVersionRows are the statements with which the first version stored that alice pushed and
// shared a snapshot. A word that begins with @ is a value.
var firstVersionRows = []string{
	`INSERT INTO orgs(id, slug, name, policy) VALUES(@pusher, 'old-@pusher', 'Acme', '{}'),
		(@recipient, 'old-@recipient', 'Globex', '{}')`,
	`INSERT INTO users(id, org_id, issuer, subject, email, email_folded, name, role, created_at)
		VALUES(@user, @pusher, 'i', 'alice', 'alice@acme.test', 'alice@acme.test', 'Alice', 'member', 0)`,
	`INSERT INTO membership(principal, kind, audience) VALUES(@pusher, 1, @admins), (@pusher, 2, @members),
		(@pusher, 4, @received), (@recipient, 1, @otherAdmins), (@recipient, 2, @otherMembers),
		(@recipient, 4, @shared), (@user, 0, @self), (@user, 2, @members), (@user, 4, @received)`,
	`INSERT INTO targets(name) VALUES('shop') ON CONFLICT DO NOTHING`,
	`INSERT INTO org_targets(org_id, target_id, folded) VALUES(@pusher, 1, 'shop')`,
	`INSERT INTO snapshots(key, id, org_id, owner_id, target_id, target, name, folded, type, engine, size, sha256, blob,
			widened, created_at)
		VALUES(@key, '@snapshot', @pusher, @user, 1, 'shop', 'shop-1', 'shop-1', 'snapshot', 'sqlite', 1, '00',
			'blob', 1, 1)`,
	`INSERT INTO grants(audience, snapshot, target_id, type, created_at) VALUES(@admins, @key, 1, 'snapshot', 1),
		(@self, @key, 1, 'snapshot', 1), (@shared, @key, 1, 'snapshot', 1)`,
}
