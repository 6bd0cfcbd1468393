package blob_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap"
	"snap/internal/blob"
	"snap/internal/disk"
	"snap/internal/servertest"
)

// smallFolder returns a folder store on a separate disk.
func smallFolder(t *testing.T, size int64) (s site, folder *blob.Folder, dir string) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	dir = filepath.Join(servertest.SmallDisk(t, size), "blobs")
	folder, err := blob.OpenFolder(dir, server.URL, []byte("0123456789abcdef"), nil)
	mustBe(t, err, nil)
	mux.Handle(blob.PartsPath, folder.Handler())
	return serve(mux, server, folder), folder, dir
}

// Beginning uploads uses no space on the disk, however many there are. On a full disk Begin fails,
// and existing files stay intact.
func TestFolderOnAFullDisk(t *testing.T) {
	t.Parallel()
	s, _, dir := smallFolder(t, 24<<20)
	data := random(3 * partSize)
	before, _ := disk.Free(dir)
	id := begin(t, s, "first", data)
	for range 20 {
		begin(t, s, "another", data)
	}
	if after, _ := disk.Free(dir); before-after > 1<<20 {
		t.Errorf("beginning the uploads used %d bytes", before-after)
	}
	for _, n := range []int{1, 2, 3} {
		s.put(t, "first", id, data, n)
	}
	_, err := s.Begin(t.Context(), "second", int64(len(data)), partSize)
	mustBe(t, err, &snap.Error{Code: snap.CodeStorageFull})
	mustBe(t, s.Complete(t.Context(), "first", id, int64(len(data)), sum(data)), nil)
	if got := s.read(t, "first", "", http.StatusOK); !bytes.Equal(got, data) {
		t.Error("the object on the full disk differs from the uploaded data")
	}
	mustBe(t, s.Delete(t.Context(), "first"), nil)
	begin(t, s, "second", data)
}

// Uploads leave the reserve free, both when an upload begins and when a part arrives.
func TestUploadsStopAtTheLowWaterMark(t *testing.T) {
	t.Parallel()
	s, folder, dir := smallFolder(t, 24<<20)
	folder.LeaveFree(10 << 20)
	data := random(2 * partSize)
	one, two := begin(t, s, "one", data), begin(t, s, "two", data)
	s.put(t, "one", one, data, 1)
	s.put(t, "one", one, data, 2)
	signed, err := s.SignPart(t.Context(), "two", two, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	if status := send(t, signed, cut(data, 1)); status != http.StatusInsufficientStorage {
		t.Errorf("a part that would use the reserve: status %d, want 507", status)
	}
	_, err = s.Begin(t.Context(), "three", partSize, partSize)
	mustBe(t, err, &snap.Error{Code: snap.CodeStorageFull})
	if free, _ := disk.Free(dir); free < 10<<20 {
		t.Errorf("%d bytes are free, want at least 10 MiB", free)
	}
	mustBe(t, s.Complete(t.Context(), "one", one, int64(len(data)), sum(data)), nil)
	mustBe(t, s.Delete(t.Context(), "one"), nil)
	if status := send(t, signed, cut(data, 1)); status != http.StatusOK {
		t.Errorf("the part when there is space again: status %d, want 200", status)
	}
}

// An object that is being written reserves its space. The next one then cannot use the reserve.
func TestPutLeavesTheReserve(t *testing.T) {
	t.Parallel()
	s, folder, _ := smallFolder(t, 24<<20)
	folder.LeaveFree(10 << 20)
	data := random(8 << 20)
	from, to := io.Pipe()
	first := make(chan error, 1)
	go func() { first <- s.Put(t.Context(), "first", from, int64(len(data)), sum(data)) }()
	_, err := to.Write(data[:1])
	mustBe(t, err, nil)
	err = s.Put(t.Context(), "second", bytes.NewReader(data), int64(len(data)), sum(data))
	mustBe(t, err, &snap.Error{Code: snap.CodeStorageFull})
	_, err = to.Write(data[1:])
	mustBe(t, errors.Join(err, to.Close()), nil)
	mustBe(t, <-first, nil)
	mustBe(t, s.Delete(t.Context(), "first"), nil)
	mustBe(t, s.Put(t.Context(), "second", bytes.NewReader(data), int64(len(data)), sum(data)), nil)
}

// The disk can also fill up between Begin and a part, or leave no space for the journal.
func TestFolderConfirmsNoPartThatItCannotNote(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	small := servertest.SmallDisk(t, 16<<20)
	folder, err := blob.OpenFolder(filepath.Join(small, "blobs"), server.URL, []byte("0123456789abcdef"), nil)
	mustBe(t, err, nil)
	mux.Handle(blob.PartsPath, folder.Handler())
	s := serve(mux, server, folder)
	data := random(partSize)
	id := begin(t, s, "k", data)
	signed, err := s.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	fill(t, filepath.Join(small, "ballast"))
	if status := send(t, signed, data); status != http.StatusInsufficientStorage {
		t.Errorf("status %d, want 507", status)
	}
	if parts, err := s.Parts(t.Context(), "k", id); err != nil || len(parts) != 0 {
		t.Errorf("Parts = %v, %v; want none", parts, err)
	}
	mustBe(t, os.Remove(filepath.Join(small, "ballast")), nil)
	if status := send(t, signed, data); status != http.StatusOK {
		t.Errorf("status %d with space again, want 200", status)
	}
}

// fill writes until there is no space for another byte.
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
