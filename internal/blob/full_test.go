package blob_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap"
	"snap/internal/blob"
	"snap/internal/servertest"
)

// A full disk shows when an upload begins, not at its end, and what is there
// stays whole.
func TestFolderOnAFullDisk(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	dir := filepath.Join(servertest.SmallDisk(t, 24<<20), "blobs")
	folder, err := blob.OpenFolder(dir, server.URL, []byte("0123456789abcdef"), nil)
	mustBe(t, err, nil)
	mux.Handle(blob.PartsPath, folder.Handler())
	s := serve(mux, server, folder)

	data := random(3 * partSize)
	id := begin(t, s, "first", data)
	full := &snap.Error{Code: snap.CodeStorageFull}
	_, err = s.Begin(t.Context(), "second", int64(len(data)), partSize)
	mustBe(t, err, full)
	if left, err := os.ReadDir(filepath.Join(dir, "uploads")); err != nil || len(left) != 1 {
		t.Errorf("a refused upload leaves %v, %v", left, err)
	}
	for _, n := range []int{1, 2, 3} {
		s.put(t, "first", id, data, n)
	}
	mustBe(t, s.Complete(t.Context(), "first", id, int64(len(data)), sum(data)), nil)
	if got := s.read(t, "first", "", http.StatusOK); !bytes.Equal(got, data) {
		t.Error("the object on the full disk is not what was put")
	}
	mustBe(t, s.Delete(t.Context(), "first"), nil)
	begin(t, s, "second", data)
}

// Room can also run out between Begin and a part, where the file system does
// not keep what it promised or the journal finds none.
func TestFolderConfirmsNoPartThatItCannotNote(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	disk := servertest.SmallDisk(t, 16<<20)
	folder, err := blob.OpenFolder(filepath.Join(disk, "blobs"), server.URL, []byte("0123456789abcdef"), nil)
	mustBe(t, err, nil)
	mux.Handle(blob.PartsPath, folder.Handler())
	s := serve(mux, server, folder)
	data := random(partSize)
	id := begin(t, s, "k", data)
	signed, err := s.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	fill(t, filepath.Join(disk, "ballast"))
	if status := send(t, signed, data); status != http.StatusInsufficientStorage {
		t.Errorf("status %d, want 507", status)
	}
	if parts, err := s.Parts(t.Context(), "k", id); err != nil || len(parts) != 0 {
		t.Errorf("Parts = %v, %v; want none", parts, err)
	}
	mustBe(t, os.Remove(filepath.Join(disk, "ballast")), nil)
	if status := send(t, signed, data); status != http.StatusOK {
		t.Errorf("status %d with room again, want 200", status)
	}
}

// fill writes until there is no room for another byte.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	mustBe(t, err, nil)
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
	}
}
