package move_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/blob"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/move"
	"snap/internal/servertest"
	"snap/internal/store"
)

// site is where a service of a test keeps its data.
type site struct{ database, blobs, dir, key string }

func embedded(t *testing.T) site { return site{dir: t.TempDir()} }

func replicated(t *testing.T) site {
	return site{database: servertest.Postgres(t), blobs: servertest.S3(t), dir: t.TempDir(),
		key: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))}
}

// start starts a service at a site, with the public URL of an earlier service if one is given.
func (s site) start(t *testing.T, public string) *cloudtest.Cloud {
	t.Helper()
	return cloudtest.Start(t, cloudtest.Options{DatabaseURL: s.database, BlobURL: s.blobs, DataDir: s.dir,
		Config: func(c *cloud.Config) {
			c.Auth.KeyEncryptionKey, c.Audit.ArchiveAfter = s.key, "40d"
			if public != "" {
				c.PublicURL = public
			}
		}})
}

func (s site) options() store.Options { return store.Options{URL: s.database, DataDir: s.dir} }

func (s site) place(t *testing.T) move.Place {
	t.Helper()
	sealer, err := auth.NewSealer(s.key)
	ok(t, err)
	return move.Place{Database: s.options(), Sealer: sealer, Blobs: func(ctx context.Context) (blob.Store, error) {
		return cloud.OpenBlobs(ctx, cloud.Config{DataDir: s.dir, Blob: cloud.Blob{URL: s.blobs}})
	}, CheckOwner: cloud.CheckOwner}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err error, want snap.Code, says string) {
	t.Helper()
	if snap.CodeOf(err) != want || !strings.Contains(fmt.Sprint(err), says) {
		t.Fatalf("error %v (%s), want %s that says %q", err, snap.CodeOf(err), want, says)
	}
}

// story is the history of a service before it is moved.
type story struct {
	c      *cloudtest.Cloud
	keys   []string // of users and of the organization
	token  string   // of mia, by a device login
	shared []api.Snapshot
	lists  map[string][]string // each key's listing
}

// seed fills a service: pushes, every kind of share, keys, a login.
func seed(t *testing.T, c *cloudtest.Cloud, pushes int) *story {
	t.Helper()
	ctx := t.Context()
	alice := c.As("alice@acme.test")
	s := &story{c: c, token: c.Token("mia@acme.test"), keys: []string{
		c.Key("alice@acme.test"), c.Key("mia@acme.test"), c.Key("max@acme.test"), c.Key("gary@globex.test"),
		c.OrgKey("acme", snap.PipelineKey, snap.ScopePull),
	}}
	for i := range pushes {
		sn := c.Push(alice, "shop", fmt.Appendf(nil, "content of the snapshot %d %s", i, strings.Repeat("x", i*1000)))
		s.shared = append(s.shared, sn)
	}
	_, err := alice.Share(ctx, s.shared[0].ID)
	ok(t, err)
	_, err = alice.ShareGroup(ctx, s.shared[1].ID, "eng")
	ok(t, err)
	_, err = alice.ShareOrg(ctx, s.shared[2].ID, "globex", nil)
	ok(t, err)
	s.lists = s.listing(t, c)
	return s
}

// listing returns the listing of each of the story's keys at a service.
func (s *story) listing(t *testing.T, c *cloudtest.Cloud) map[string][]string {
	t.Helper()
	lists := map[string][]string{}
	for _, key := range s.keys {
		page, err := c.Client(key).Snapshots(t.Context(), api.ListOptions{Limit: 200})
		ok(t, err)
		for _, item := range page.Items {
			lists[key] = append(lists[key], item.ID+" "+item.SHA256)
		}
	}
	return lists
}

// holds checks that a service has all of the story, and works.
func (s *story) holds(t *testing.T, c *cloudtest.Cloud, at site) {
	t.Helper()
	ctx := t.Context()
	for key, want := range s.lists {
		if got := s.listing(t, c)[key]; !slices.Equal(got, want) {
			t.Errorf("the key %.4s lists %v there, and %v before", key, got, want)
		}
	}
	client, err := api.New(api.Options{BaseURL: c.URL, Mount: api.MountUser, Token: api.StaticToken(s.token)})
	ok(t, err)
	if me, err := client.Me(ctx); err != nil || me.Email != "mia@acme.test" {
		t.Errorf("the login of before: %+v, %v", me, err)
	}
	objects, err := at.place(t).Blobs(ctx)
	ok(t, err)
	for _, sn := range s.shared {
		b, err := c.Store.Bytes(ctx, owner(t, c), sn.ID)
		ok(t, err)
		ok(t, blob.Verify(ctx, objects, b.Blob, sn.Size, sn.SHA256))
	}
	ok(t, c.Store.CheckAudit(ctx))
	// It works: new rows get new identifiers, and lines join the chain.
	sum := strings.Repeat("ab", 32)
	plan, err := c.Client(s.keys[0]).Push(ctx, api.PushRequest{Target: "shop", Name: "shop-after",
		Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 5, SHA256: sum})
	if err != nil || plan.Parts != 1 {
		t.Errorf("a push after the move: %+v, %v", plan, err)
	}
	if _, err := c.Client(s.keys[0]).Share(ctx, s.shared[1].ID); err != nil {
		t.Errorf("a share after the move: %v", err)
	}
	if _, _, err := c.Service.Auth().NewKey(ctx,
		auth.KeySpec{OrgID: owner(t, c).Org.ID, Kind: snap.AgentKey, Name: "after",
			Scopes: []snap.Scope{snap.ScopePull}}); err != nil {
		t.Errorf("a new key after the move: %v", err)
	}
	ok(t, c.Store.CheckAudit(ctx))
}

func owner(t *testing.T, c *cloudtest.Cloud) snap.Caller {
	t.Helper()
	org, err := c.Store.OrgBySlug(t.Context(), "acme")
	ok(t, err)
	caller, err := c.Store.CallerOfOrg(t.Context(), org.ID)
	ok(t, err)
	return caller
}

// From a laptop to many replicas and back: one transfer moves a whole service. Keys, logins, listings,
// bytes and audit chains are unchanged; signing keys are sealed by the destination's key.
func TestTransferMovesTheWholeService(t *testing.T) {
	t.Parallel()
	from := embedded(t)
	first := from.start(t, "")
	s := seed(t, first, 5)
	first.Service.Close()
	to := replicated(t)

	dry, err := move.Transfer(t.Context(), from.place(t), to.place(t), move.Progress{}, true)
	ok(t, err)
	ok(t, store.CheckBeginAt(t.Context(), to.options(), "another service"))
	var tables int
	r, err := move.Transfer(t.Context(), from.place(t), to.place(t),
		move.Progress{Table: func(string, int64) { tables++ }}, false)
	ok(t, err)
	if r != dry || r.Objects != 5 || r.Rows == 0 || tables == 0 {
		t.Errorf("moved %+v, foretold %+v, %d tables", r, dry, tables)
	}
	second := to.start(t, first.URL)
	s.holds(t, second, to)
	keys, err := second.Store.SigningKeys(t.Context())
	ok(t, err)
	for _, k := range keys {
		if k.Private[0] != 1 {
			t.Error("a signing key is not encrypted at the destination, which has a key for it")
		}
	}
	hook, err := second.As("alice@acme.test").AddWebhook(t.Context(), api.WebhookRequest{URL: "https://hooks.example/"})
	ok(t, err)
	s.lists = s.listing(t, second)
	second.Service.Close()

	back := embedded(t)
	_, err = move.Transfer(t.Context(), to.place(t), back.place(t), move.Progress{}, false)
	is(t, err, snap.CodeUsage, "encrypted")
	back = site{dir: t.TempDir(), key: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))}
	_, err = move.Transfer(t.Context(), to.place(t), back.place(t), move.Progress{}, false)
	ok(t, err)
	third := back.start(t, first.URL)
	s.holds(t, third, back)
	hooks, err := third.Store.Webhooks(t.Context(), owner(t, third))
	ok(t, err)
	secret, err := back.place(t).Sealer.Open(store.HookSecretName(hooks[0].OrgID), hooks[0].Secrets[0])
	if err != nil || "whsec_"+base64.StdEncoding.EncodeToString(secret) != hook.Secret {
		t.Errorf("the secret of a webhook after the move: %v", err)
	}
}

// A move that would fail is refused before anything changes.
func TestTransferRefuses(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := t.Context()
	from := embedded(t)
	c := from.start(t, "")
	s := seed(t, c, 3)
	used, other := embedded(t), embedded(t)
	seed(t, used.start(t, ""), 3)
	seed(t, other.start(t, ""), 3)
	run := func(from, to site) error {
		_, err := move.Transfer(ctx, from.place(t), to.place(t), move.Progress{}, false)
		return err
	}
	is(t, run(from, from), snap.CodeUsage, "same database")
	is(t, run(embedded(t), embedded(t)), snap.CodeUsage, "no database")
	is(t, run(from, used), snap.CodeUsage, "belongs to another service")
	mixed := embedded(t).place(t)
	mixed.Blobs = from.place(t).Blobs
	_, err := move.Transfer(ctx, used.place(t), mixed, move.Progress{}, true)
	is(t, err, snap.CodeUsage, "belongs to another service")
	mixed = used.place(t)
	mixed.Blobs = embedded(t).place(t).Blobs
	_, err = move.Transfer(ctx, from.place(t), mixed, move.Progress{}, false)
	is(t, err, snap.CodeUsage, "not empty")

	ok(t, c.Store.RecordRunning(ctx, "replica"))
	is(t, run(from, embedded(t)), snap.CodeConflict, "running")
	ok(t, c.Store.RecordStopped(ctx, "replica"))

	half := embedded(t)
	begun, stop := context.WithCancel(ctx)
	_, err = move.Transfer(begun, from.place(t), half.place(t),
		move.Progress{Objects: func(int64, int64, int64) { stop() }}, false)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("a transfer that was stopped: %v", err)
	}
	_, err = cloud.New(ctx, cloud.Config{DataDir: half.dir, PublicURL: "http://127.0.0.1:1"}, cloud.Options{})
	is(t, err, snap.CodeUsage, "has not finished")
	is(t, run(other, half), snap.CodeUsage, "another service")
	mixed = half.place(t)
	mixed.Blobs = embedded(t).place(t).Blobs
	_, err = move.Transfer(ctx, other.place(t), mixed, move.Progress{}, true)
	is(t, err, snap.CodeUsage, "has already begun")
	_, err = move.Transfer(ctx, from.place(t), half.place(t), move.Progress{}, true)
	ok(t, err)
	ok(t, run(from, half))
	is(t, run(from, half), snap.CodeUsage, "not empty")
	s.holds(t, half.start(t, c.URL), half)

	b, err := c.Store.Bytes(ctx, owner(t, c), s.shared[2].ID)
	ok(t, err)
	damage(t, find(t, filepath.Join(from.dir, "blobs"), b.Blob))
	is(t, run(from, embedded(t)), snap.CodeChecksumMismatch, b.Blob)
	ok(t, os.Remove(find(t, filepath.Join(from.dir, "blobs"), b.Blob)))
	is(t, run(from, embedded(t)), snap.CodeCorrupt, b.Blob)
}

// find returns the file of an object in a folder.
func find(t *testing.T, dir, key string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "objects", "??", key))
	if err != nil || len(found) != 1 {
		t.Fatalf("the object %s: %v, %v", key, found, err)
	}
	return found[0]
}

// damage flips one bit of a file.
func damage(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	ok(t, err)
	content[len(content)/2] ^= 1
	ok(t, os.WriteFile(file, content, 0o600))
}

// A service is backed up while it is in use. A new one starts from the backup with every list, login,
// byte and audit line of that moment.
func TestBackUpAndRestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, dir := embedded(t), filepath.Join(t.TempDir(), "backups")
	c := from.start(t, "")
	s := seed(t, c, 4)
	clock := clocktest.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	backUp := func(keep int) move.Backup {
		clock.Advance(time.Hour)
		b, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir, Version: "v1", Keep: keep, Now: clock.Now},
			move.Progress{})
		ok(t, err)
		return b
	}
	first := backUp(0)
	if first.Objects != 4 || first.Added != 4 || first.Name != "20260102T040405.000Z" {
		t.Errorf("the first backup is %+v", first)
	}
	c.Push(c.As("alice@acme.test"), "shop", []byte("pushed after the first backup"))
	if second := backUp(0); second.Objects != 5 || second.Added != 1 {
		t.Errorf("the second backup copied %+v, want the one new object", second)
	}
	ok(t, c.As("alice@acme.test").Delete(ctx, s.shared[3].ID))
	for _, name := range []string{"", first.Name} {
		_, err := move.Verify(ctx, dir, name, move.Progress{})
		ok(t, err)
	}
	private(t, dir)
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(from.dir, link))
	for _, inside := range []string{from.dir, filepath.Join(from.dir, "new", "backups"),
		filepath.Join(link, "new", "..", "backups")} {
		_, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: inside}, move.Progress{})
		is(t, err, snap.CodeUsage, inside+" is in data_dir")
	}

	to := embedded(t)
	_, err := move.Restore(ctx, dir, first.Name, to.dir, move.Progress{})
	ok(t, err)
	private(t, to.dir)
	s.holds(t, to.start(t, c.URL), to)
	_, err = move.Restore(ctx, dir, first.Name, to.dir, move.Progress{})
	is(t, err, snap.CodeConflict, "not empty")

	if third := backUp(1); third.Objects != 4 || third.Added != 0 {
		t.Errorf("the third backup is %+v, want 4 objects and none new", third)
	}
	all, err := move.Backups(dir)
	ok(t, err)
	if len(all) != 1 {
		t.Errorf("%d backups are left, want 1", len(all))
	}
	files, err := filepath.Glob(filepath.Join(dir, "blobs", "objects", "??", "*"))
	if err != nil || len(files) != 4 {
		t.Errorf("%d objects are left, want the 4 that the last backup names (%v)", len(files), err)
	}
	_, err = move.Verify(ctx, dir, first.Name, move.Progress{})
	is(t, err, snap.CodeNotFound, first.Name)
}

// private checks that only the owner can read the files of a folder, because signing keys are in it.
func private(t *testing.T, dir string) {
	t.Helper()
	ok(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}))
}

// A backup never names bytes that it does not have, even if a snapshot is deleted before its bytes are
// copied.
func TestBackUpMeetsADeletion(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := t.Context()
	from, dir := embedded(t), t.TempDir()
	c := from.start(t, "")
	s := seed(t, c, 20)
	slices.SortFunc(s.shared, func(a, b api.Snapshot) int { return strings.Compare(a.ID, b.ID) })
	alice, last := c.As("alice@acme.test"), s.shared[len(s.shared)-1] // objects are copied in the order of their keys
	var once sync.Once                                                // copying waits until last is deleted
	b, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir},
		move.Progress{Objects: func(int64, int64, int64) {
			once.Do(func() {
				if err := alice.Delete(ctx, last.ID); err != nil {
					t.Error(err)
				}
			})
		}})
	ok(t, err)
	if b.Objects != 19 {
		t.Errorf("the backup has %d objects, want the 19 that were not deleted", b.Objects)
	}
	_, err = move.Verify(ctx, dir, "", move.Progress{})
	ok(t, err)
}

// A resumed restore does not trust the objects that an earlier run left.
func TestResumedRestoreVerifiesObjects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, dir, to := embedded(t), t.TempDir(), t.TempDir()
	seed(t, from.start(t, ""), 3)
	b, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir}, move.Progress{})
	ok(t, err)
	staging := filepath.Join(to, store.RestoringDir)
	ok(t, os.CopyFS(filepath.Join(staging, "blobs"), os.DirFS(filepath.Join(dir, "blobs"))))
	ok(t, os.WriteFile(filepath.Join(staging, "of"), []byte(b.Name), 0o600))
	found, err := filepath.Glob(filepath.Join(staging, "blobs", "objects", "*", "*"))
	ok(t, err)
	damage(t, found[0])
	_, err = move.Restore(ctx, dir, "", to, move.Progress{})
	ok(t, err)
	object, err := filepath.Rel(staging, found[0])
	ok(t, err)
	got, err := os.ReadFile(filepath.Join(to, object))
	ok(t, err)
	want, err := os.ReadFile(filepath.Join(dir, object))
	ok(t, err)
	if !bytes.Equal(got, want) {
		t.Error("a damaged object was put in place")
	}
}

// Any damage to a backup is detected, and nothing of it is restored.
func TestDamagedBackupsAreRefused(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := t.Context()
	from := embedded(t)
	c := from.start(t, "")
	seed(t, c, 3)
	for name, file := range map[string]string{
		"manifest": "2*/manifest", "database": "2*/snapcloud.db", "object": "blobs/objects/*/*",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir}, move.Progress{})
			ok(t, err)
			found, err := filepath.Glob(filepath.Join(dir, file))
			ok(t, err)
			damage(t, found[0])
			_, err = move.Verify(ctx, dir, "", move.Progress{})
			var e *snap.Error
			if !errors.As(err, &e) {
				t.Fatalf("the damage was not seen: %v", err)
			}
			hint := "backup list --from " + dir
			if name == "object" {
				hint = "remove its file below " + filepath.Join(dir, "blobs") + " if there is one"
			}
			to := t.TempDir()
			_, restored := move.Restore(ctx, dir, "", to, move.Progress{})
			r := &snap.Error{}
			if !errors.As(restored, &r) || !strings.Contains(r.Hint, hint) || !strings.Contains(e.Hint, hint) {
				t.Errorf("the restore ended with %v and the hint %q, the check with %q", restored, r.Hint, e.Hint)
			}
			if name == "object" {
				ok(t, os.Remove(found[0]))
				_, err = move.Verify(ctx, dir, "", move.Progress{})
				is(t, err, snap.CodeCorrupt, filepath.Base(found[0]))
				_, err = move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: dir}, move.Progress{})
				ok(t, err)
				_, err = move.Verify(ctx, dir, "", move.Progress{})
				ok(t, err)
			}
			if _, err := os.Stat(filepath.Join(to, "snapcloud.db")); err == nil {
				t.Error("a damaged database was put in place")
			}
			_, err = cloud.New(ctx, cloud.Config{DataDir: to, PublicURL: "http://127.0.0.1:1"}, cloud.Options{})
			if name != "manifest" { // with a damaged manifest, the restore did not begin
				is(t, err, snap.CodeUsage, "restore")
			}
		})
	}
	if _, err := move.BackUp(ctx, move.Options{DataDir: t.TempDir(), Dir: t.TempDir()},
		move.Progress{}); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("a backup of nothing: %v", err)
	}
}
