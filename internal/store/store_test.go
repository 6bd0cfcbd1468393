package store_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"snap"
	"snap/internal/auditlog"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// newClock returns a clock that only the test moves.
func newClock() *clocktest.Clock {
	return clocktest.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
}

// onBoth runs a test on a fresh SQLite store and on a fresh PostgreSQL store.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, store.Options{DataDir: t.TempDir()}))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t, store.Options{URL: postgres(t)}))
	})
}

// migrated copies an empty database with the newest schema into a folder.
var migrated = servertest.Template(func(dir string) error {
	s, err := store.Open(context.Background(), store.Options{DataDir: dir})
	if err != nil {
		return err
	}
	return s.Close()
})

// postgres returns the URL of an empty PostgreSQL database with the newest schema.
var postgres = servertest.PostgresTemplate(func(url string) error {
	s, err := store.Open(context.Background(), store.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
})

// world is a store with two organizations and some users.
type world struct {
	*store.Store
	t            testing.TB
	ctx          context.Context
	clock        *clocktest.Clock
	acme, globex snap.OrgRef
	pushes       int
}

// newWorld opens a database, which is new if the folder in the options is empty.
func newWorld(t testing.TB, o store.Options) *world {
	w := &world{t: t, ctx: t.Context(), clock: newClock()}
	if left, err := os.ReadDir(o.DataDir); err == nil && len(left) == 0 {
		migrated(t, o.DataDir)
	}
	o.Now = w.clock.Now
	s, err := store.Open(w.ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w.Store = s
	w.acme, w.globex = w.org("acme"), w.org("globex")
	return w
}

// auditKey signs the checkpoints of tests.
var auditKey = auditlog.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))

// sequence gives the waiting lines of the audit logs their numbers.
func (w *world) sequence() {
	w.t.Helper()
	for _, org := range []snap.OrgRef{w.acme, w.globex} {
		_, err := w.Sequence(w.ctx, org.ID, auditKey)
		w.ok(err)
	}
}

func (w *world) org(slug string) snap.OrgRef {
	w.t.Helper()
	org, err := w.ApplyOrg(w.ctx, slug, "The "+slug, snap.Policy{})
	w.ok(err)
	return org
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// user signs a user in and returns them as a caller.
func (w *world) user(org snap.OrgRef, name string, role snap.Role, groups ...string) snap.Caller {
	w.t.Helper()
	in := store.SignIn{OrgID: org.ID, Issuer: "https://idp.test", Subject: name, Email: name + "@" + org.Slug + ".test",
		Name: name, Role: role}
	for _, g := range groups {
		in.Groups = append(in.Groups, snap.Group{GroupID: g, Name: "the " + g})
	}
	id, err := w.ApplySignIn(w.ctx, in)
	w.ok(err)
	return w.caller(id)
}

func (w *world) caller(id int64) snap.Caller {
	w.t.Helper()
	c, err := w.CallerOfUser(w.ctx, id)
	w.ok(err)
	c.Credential.Kind = snap.UserKey
	return c
}

func (w *world) orgKey(org snap.OrgRef) snap.Caller {
	w.t.Helper()
	c, err := w.CallerOfOrg(w.ctx, org.ID)
	w.ok(err)
	c.Credential = snap.Credential{Kind: snap.PipelineKey, ID: 1, Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush}}
	return c
}

// privateKey is like orgKey, with the scope private.
func (w *world) privateKey(org snap.OrgRef) snap.Caller {
	c := w.orgKey(org)
	c.Credential.Scopes = append(c.Credential.Scopes, snap.ScopePrivate)
	return c
}

// upload returns the upload with which the world's next push begins.
func (w *world) upload(target string, typ snap.Type) store.Upload {
	w.pushes++
	return store.Upload{
		ID: snap.NewSnapshotID(), Target: target, Name: snap.SnapshotName(target, w.clock.Now()), Type: typ,
		Engine: snap.SQLite,
		Size:   int64(1000 + w.pushes), SHA256: fmt.Sprintf("%064x", w.pushes), Blob: fmt.Sprintf("blob-%d", w.pushes),
		BlobUpload: "u", PartSize: 1 << 24,
	}
}

// push pushes a snapshot a second later than the one before.
func (w *world) push(c snap.Caller, target string, typ snap.Type) snap.Snapshot {
	w.t.Helper()
	w.clock.Advance(time.Second)
	u := w.upload(target, typ)
	w.ok(w.BeginUpload(w.ctx, c, u))
	sn, err := w.CompleteUpload(w.ctx, c, u)
	w.ok(err)
	return sn
}

// sees fails the test unless the caller can list and find exactly the wanted snapshots of all.
func (w *world) sees(c snap.Caller, all []snap.Snapshot, want ...snap.Snapshot) {
	w.t.Helper()
	should := map[string]bool{}
	for _, sn := range want {
		should[sn.ID] = true
	}
	page, err := w.Snapshots(w.ctx, c, store.Query{})
	w.ok(err)
	listed := map[string]bool{}
	for _, sn := range page.Items {
		listed[sn.ID] = true
	}
	for i, sn := range all {
		_, err := w.Snapshot(w.ctx, c, sn.ID)
		if listed[sn.ID] != should[sn.ID] || (err == nil) != should[sn.ID] {
			w.t.Errorf("snapshot %d: listed %v, found %v, want %v", i, listed[sn.ID], err, should[sn.ID])
		}
		if err != nil && !errors.Is(err, snap.ErrNotFound) {
			w.t.Errorf("snapshot %d: %v", i, err)
		}
	}
}
