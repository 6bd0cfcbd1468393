package cloud_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// A push that is never completed, and the remains of one that a killed service
// left, are collected with their bytes; a running push is not.
func TestCollectLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	dir := filepath.Join(c.Config.DataDir, "blobs")
	push := func(name string) api.UploadPlan {
		plan, err := alice.Push(t.Context(), api.PushRequest{
			Target: "shop", Name: name, Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 10,
			SHA256: "1f825aa2f0020ef7cf91dfa30da4668d791c5d4824fc8e41354b89ec05795ab3",
		})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	push("abandoned")
	folder, err := blob.OpenFolder(dir, c.URL, []byte("0123456789abcdef"), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	// An upload that the database does not know.
	if _, err := folder.Begin(t.Context(), snap.NewSnapshotID(), 10, 10); err != nil {
		t.Fatal(err)
	}
	clock.Advance(47 * time.Hour)
	running := push("running")
	clock.Advance(2 * time.Hour)
	if n, err := c.Service.Collect(t.Context()); err != nil || n != 1 {
		t.Errorf("Collect = %d, %v; want the abandoned one", n, err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "uploads"))
	if err != nil || len(left) != 1 {
		t.Errorf("uploads left: %v, %v; want the running one", left, err)
	}
	if _, err := alice.Parts(t.Context(), running.ID, api.PartsRequest{Parts: []api.PartSpec{}}); err != nil {
		t.Errorf("the running push: %v", err)
	}
}

// An object that cannot be removed does not keep the service from removing others.
func TestGarbageThatStays(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	ids := []string{c.Push(alice, "shop", []byte("1")).ID, c.Push(alice, "shop", []byte("2")).ID}
	slices.Sort(ids)
	var objects []string
	for _, id := range ids {
		found, err := filepath.Glob(filepath.Join(c.Config.DataDir, "blobs", "objects", "*", id))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v, %v", found, err)
		}
		objects = append(objects, found...)
		must(t, os.Remove(found[0]))
		must(t, os.MkdirAll(filepath.Join(found[0], "a folder with content"), 0o700))
		must(t, alice.Delete(t.Context(), id))
	}
	must(t, os.Remove(filepath.Join(objects[1], "a folder with content")))
	if _, err := c.Service.Collect(t.Context()); err == nil {
		t.Error("no error about the object that cannot be removed")
	}
	if _, err := os.Stat(objects[1]); !os.IsNotExist(err) {
		t.Errorf("the other object: %v", err)
	}
}

// The service may be killed between completing a push in the object store and recording it in the
// database. Such a push is no orphan either: pushing again completes it, and otherwise it is
// collected.
func TestCompletionThatWasNotRecorded(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		clock := clocktest.New(time.Now())
		c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
		alice := c.As("alice@acme.test")
		request := api.PushRequest{
			Target: "shop", Name: "shop-1", Type: snap.TypeSnapshot, Engine: snap.SQLite, Size: 10,
			SHA256: "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882",
		}
		plan, err := alice.Push(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		c.PutPart(alice, plan.ID, 1, []byte("0123456789"))
		completeBehindItsBack(t, c, clock, plan.ID, request)
		if again {
			next := cloudtest.Start(t, cloudtest.Options{Clock: clock, DataDir: c.Config.DataDir})
			got, err := next.As("alice@acme.test").Push(t.Context(), request)
			if err != nil || !got.Exists || got.ID != plan.ID {
				t.Errorf("pushed again: %+v, %v; want it to be there", got, err)
			}
			continue
		}
		clock.Advance(49 * time.Hour)
		if n, err := c.Service.Collect(t.Context()); err != nil || n != 1 {
			t.Errorf("Collect = %d, %v; want 1", n, err)
		}
		objects, err := filepath.Glob(filepath.Join(c.Config.DataDir, "blobs", "objects", "*", "*"))
		objects = slices.DeleteFunc(objects, func(o string) bool { return filepath.Base(o) == cloud.ClaimKey })
		if err != nil || len(objects) != 0 {
			t.Errorf("objects left: %v, %v", objects, err)
		}
	}
}

func completeBehindItsBack(t *testing.T, c *cloudtest.Cloud, clock *clocktest.Clock, id string, r api.PushRequest) {
	t.Helper()
	folder, err := blob.OpenFolder(filepath.Join(c.Config.DataDir, "blobs"), c.URL, []byte("0123456789abcdef"),
		clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := folder.ListUploads(t.Context())
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending %v, %v", pending, err)
	}
	if err := folder.Complete(t.Context(), id, pending[0].Upload, r.Size, r.SHA256); err != nil {
		t.Fatal(err)
	}
}
