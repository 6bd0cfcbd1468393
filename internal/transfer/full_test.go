package transfer_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// A full disk is reported before the first byte is fetched, with a hint, and leaves nothing behind.
func TestDownloadToAFullDisk(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(3<<20, 40)
	id := s.pushed(data)
	disk := servertest.SmallDisk(t, 4<<20)
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(disk, "pulled.snap")
	_, moved, err := transfer.Download(t.Context(), s.client(), id, file, quick())
	wantCode(t, err, snap.CodeStorageFull)
	var told *snap.Error
	if !errors.As(err, &told) || told.Hint == "" || moved != 0 {
		t.Errorf("moved %d, hint of %#v", moved, told)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err != nil {
		t.Fatal(err)
	}
	wantFile(t, file, data)
}

// If the service's disk is full, the push reports that. The same push succeeds once there is free
// space.
func TestUploadToAFullService(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dir = filepath.Join(servertest.SmallDisk(t, 4<<20), "blobs")
	s.restart()
	first, req := writeFile(t, random(3<<20, 41))
	done, err := transfer.Upload(t.Context(), s.client(), first, req, quick())
	if err != nil {
		t.Fatal(err)
	}
	second, req := writeFile(t, random(2<<20, 42))
	_, err = transfer.Upload(t.Context(), s.client(), second, req, quick())
	wantCode(t, err, snap.CodeStorageFull)
	if len(s.listed()) != 1 {
		t.Error("the earlier snapshot is no longer listed")
	}
	if err := s.store.Delete(t.Context(), done.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Upload(t.Context(), s.client(), second, req, quick()); err != nil {
		t.Errorf("with free space again: %v", err)
	}
}
