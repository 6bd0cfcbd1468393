package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

func TestPreallocate(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Preallocate(f, 12345); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 12345 {
		t.Errorf("size %v, %v", info, err)
	}
	if err := SyncDir(filepath.Dir(f.Name())); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(filepath.Dir(f.Name()), "none")); runtime.GOOS != "windows" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	if !Full(fmt.Errorf("write: %w", &fs.PathError{Err: syscall.ENOSPC})) || Full(fs.ErrNotExist) || Full(nil) {
		t.Error("a full disk is told by its error, wrapped or not")
	}
}

// What is written past the cache is there, whatever its offset and length, and
// so it is where that cannot be done.
func TestWriteAt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	direct := OpenDirect(path)
	if direct != nil {
		defer direct.Close()
	}
	want := make([]byte, 3*sector+100)
	for i := range want {
		want[i] = byte(i % 251)
	}
	for _, part := range []struct{ from, to int }{{sector, 3*sector + 100}, {0, sector}, {5, 77}} {
		for _, d := range []*os.File{direct, nil} {
			if err := WriteAt(f, d, want[part.from:part.to], int64(part.from)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want the %d that were written", len(got), err, len(want))
	}
}
