package disk

import (
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
