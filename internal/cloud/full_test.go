package cloud_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Access can be taken away on a full disk. Uploads stop before the disk is full. When something
// else fills the rest, an unshare, the revocation of a key, the end of a session and the background
// work that frees space have a reserve that nothing else can use.
func TestAccessIsTakenAwayOnAFullDisk(t *testing.T) {
	t.Parallel()
	small := servertest.SmallDisk(t, 64<<20)
	dir := filepath.Join(small, "data")
	c := cloudtest.Start(t, cloudtest.Options{DataDir: dir,
		Config: func(o *cloud.Config) { o.Limits.DiskReserve = 32 << 20 }})
	ctx := context.Background()
	alice := c.As("alice@acme.test")
	sn, second := c.Push(alice, "shop", []byte("rows")), c.Push(alice, "shop", []byte("more rows"))
	for _, slug := range []string{"globex", "initech"} {
		_, err := alice.ShareOrg(ctx, sn.ID, slug, nil)
		must(t, err)
		_, err = alice.ShareOrg(ctx, second.ID, slug, nil)
		must(t, err)
	}
	old := c.Push(alice, "old", []byte("some rows"))
	c.Push(alice, "old", []byte("newer rows"))
	_, err := alice.SetRetention(ctx, api.RetentionRule{Target: "old", KeepLast: 1})
	must(t, err)
	admin := c.SignedIn("alice@acme.test")
	key, err := admin.NewKey(ctx, api.KeyRequest{Name: "ci", Kind: snap.UserKey})
	must(t, err)
	_, err = alice.Push(ctx, api.PushRequest{
		Target: "shop", Name: "shop-big", Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 40 << 20,
		SHA256: sn.SHA256,
	})
	if snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("a push that would use the reserve: %v", err)
	}
	gary := c.As("gary@globex.test")
	if !sees(t, gary, sn.ID) {
		t.Fatal("globex does not see the snapshot")
	}
	provider := provision(t, c, "acme")
	group := provider.group("qa", provider.user("mia"))
	ballast := filepath.Join(small, "ballast")
	fillDisk(t, ballast)

	if _, err := alice.Share(ctx, sn.ID); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("a share on the full disk: %v", err)
	}
	must(t, alice.UnshareOrg(ctx, sn.ID, "globex"))
	if sees(t, gary, sn.ID) {
		t.Error("globex still sees the snapshot")
	}
	_, err = alice.UnshareFrom(ctx, sn.ID, api.UnshareRequest{All: true})
	must(t, err)
	ended, err := alice.Bulk(ctx,
		api.BulkRequest{IDs: []string{second.ID}, Unshare: &api.UnshareRequest{All: true}}, false)
	if err != nil || len(ended.Items) != 1 || ended.Items[0].Error != nil {
		t.Errorf("a bulk unshare on the full disk: %+v, %v", ended, err)
	}
	for _, work := range []string{"collect", "retention"} {
		if held, err := c.Store.Lease(ctx, work, "replica", time.Hour); err != nil || !held {
			t.Errorf("the lease of %s on the full disk: %v, %v", work, held, err)
		}
	}
	_, err = c.Service.Collect(ctx)
	must(t, err)
	if must(t, c.Service.ExpireAll(ctx)); sees(t, alice, old.ID) {
		t.Error("retention deletes nothing on the full disk")
	}
	must(t, admin.RevokeKey(ctx, key.ID))
	if _, err := c.Client(key.Secret).Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the revoked key: %v", err)
	}
	provider.do("PATCH", "/Groups/"+group, patched(`{"op": "remove", "path": "members"}`), http.StatusNoContent)
	for range 20 { // others do not use the space that was freed
		if _, err := alice.Share(ctx, sn.ID); snap.CodeOf(err) != snap.CodeStorageFull {
			t.Fatalf("a share with the reserve: %v", err)
		}
	}
	c.Browser().SignIn("adam@acme.test") // a person may have to sign in before they can end anything
	sessions, err := admin.Sessions(ctx)
	must(t, err)
	for _, s := range sessions {
		if s.Current {
			must(t, admin.EndSession(ctx, s.ID))
		}
	}
	if _, err := admin.Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the ended session: %v", err)
	}
	o := c.Config.StoreOptions()
	o.Reserve = c.Config.Limits.DatabaseReserve()
	operator, err := store.Open(ctx, o)
	must(t, err)
	must(t, operator.Close())

	must(t, os.Remove(ballast))
	_, err = alice.Share(ctx, sn.ID)
	must(t, err)
	if info, err := os.Stat(filepath.Join(dir, "reserve")); err != nil || info.Size() != 2<<20 {
		t.Errorf("with room again, the reserve is %v, %v", info, err)
	}
}

// TestServiceStartsOnAFullDisk: a service that stopped on a full disk starts again, first with the
// reserve and then with the space that the reserve left.
func TestServiceStartsOnAFullDisk(t *testing.T) {
	t.Parallel()
	small := servertest.SmallDisk(t, 64<<20)
	c := cloudtest.Start(t, cloudtest.Options{DataDir: filepath.Join(small, "data"),
		Config: func(o *cloud.Config) { o.Limits.DiskReserve = 32 << 20 }})
	must(t, c.Service.Close())
	fillDisk(t, filepath.Join(small, "ballast"))
	_, err := store.Open(t.Context(), c.Config.StoreOptions()) // has no reserve
	if snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("the database without a reserve: %v", err)
	}
	for range 2 {
		s, err := cloud.New(t.Context(), c.Config, cloud.Options{})
		must(t, err)
		must(t, s.Close())
	}
}

// TestDeltasLeaveTheReserve: deltas and the files that are rebuilt from them do not use the disk
// reserve. With room again, they are made. A delta that does not fit removes no others in vain.
func TestDeltasLeaveTheReserve(t *testing.T) {
	t.Parallel()
	small := servertest.SmallDisk(t, 64<<20)
	const reserve = 32 << 20
	c := cloudtest.Start(t, cloudtest.Options{DataDir: filepath.Join(small, "data"),
		Config: func(o *cloud.Config) { o.Limits.DiskReserve = reserve }})
	mia, base, result := c.As("mia@acme.test"), version(t, 0), version(t, 1)
	id, next := c.Push(mia, "shop", base).ID, c.Push(mia, "shop", result).ID
	third := version(t, 2)
	if offer, err := deltaFor(mia, id, next); err != nil || offer.URL == "" {
		t.Fatalf("%+v, error %v", offer, err)
	}
	d := deltaBetween(t, base, third)
	push, place, err := beginDelta(t, mia, "shop", third, d, id)
	must(t, err)
	ballast := servertest.FillDisk(t, small, reserve+uint64(len(base))/2)
	offer, err := deltaFor(mia, next, id)
	if err != nil || offer.URL != "" {
		t.Errorf("a delta uses the reserve: %+v %v", offer, err)
	}
	if kept, err := os.ReadDir(c.Service.Deltas()); err != nil || len(kept) != 1 {
		t.Errorf("kept: %v, %v; want the first delta", kept, err)
	}
	if status := put(t, place.URL, d); status != http.StatusInsufficientStorage {
		t.Errorf("a rebuilt file uses the reserve: %d", status)
	}
	must(t, os.Remove(ballast))
	offer, err = deltaFor(mia, next, id)
	if err != nil || offer.URL == "" {
		t.Errorf("with room again, there is no delta: %+v %v", offer, err)
	}
	if status := put(t, place.URL, d); status != http.StatusNoContent {
		t.Errorf("with room again, the delta is refused: %d", status)
	}
	_, err = mia.Complete(t.Context(), push)
	must(t, err)
}

// fillDisk writes until there is no room for another byte.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	for _, size := range []int{1 << 20, 4096, 1} {
		block := bytes.Repeat([]byte{1}, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
	}
}

// A member ends their own uploads and sees how much of their quota they use.
func TestUploadsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(o *cloud.Config) { o.Limits.UploadsPerUser = 2 }})
	ctx := context.Background()
	mia, gus := c.As("mia@acme.test"), c.As("gus@acme.test")
	c.Push(mia, "shop", []byte("rows"))
	begin := func(name string) (api.UploadPlan, error) {
		return mia.Push(ctx, api.PushRequest{
			Target: "shop", Name: name, Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 3 << 30,
			SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		})
	}
	one, err := begin("one")
	must(t, err)
	_, err = begin("two")
	must(t, err)
	if _, err := begin("three"); snap.CodeOf(err) != snap.CodeQuota {
		t.Errorf("a third upload: %v, want quota_exceeded", err)
	}
	if err := gus.AbortUpload(ctx, one.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("somebody else ends it: %v", err)
	}
	must(t, mia.AbortUpload(ctx, one.ID))
	if left, err := mia.Uploads(ctx); err != nil || len(left) != 1 || left[0].Name != "two" {
		t.Errorf("uploads %+v, %v", left, err)
	}
	_, err = begin("three")
	must(t, err)
	me, err := mia.Me(ctx)
	if want := (api.Usage{Snapshots: 1, Bytes: 4, Uploads: 2, UploadsMax: 2}); err != nil || me.Usage == nil ||
		*me.Usage != want || me.OrgUsage != nil {
		t.Errorf("usage %+v, %+v, %v", me.Usage, me.OrgUsage, err)
	}
	if me, err := c.As("alice@acme.test").Me(ctx); err != nil || me.OrgUsage == nil || me.OrgUsage.Uploads != 2 ||
		me.OrgUsage.Bytes != 4 {
		t.Errorf("an owner sees %+v, %v", me.OrgUsage, err)
	}
	for _, line := range []string{`snapcloud_stored_bytes{organization="acme"} 4`,
		`snapcloud_snapshots{organization="acme"} 1`, `snapcloud_open_uploads{organization="acme"} 2`,
		`snapcloud_stored_bytes{organization="globex"} 0`} {
		if !strings.Contains(metrics(t, c), line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	res, data := send(t, http.MethodDelete, c.URL+api.MountAgent+"/uploads/"+one.ID, "", c.Key("mia@acme.test"))
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("ending it again: %d %s", res.StatusCode, data)
	}
}
