package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"snap"
)

// diskError says what failed, as storage_full when the disk has no room and as
// not_found when the file is not there.
func diskError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &snap.Error{
			Code:   snap.CodeStorageFull,
			Detail: "the service's storage is full",
			Hint:   "ask who runs the service to make room, then run the command again: it goes on where it stopped",
			Cause:  err,
		}
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", what, snap.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// syncDir makes renames and removals in dir survive a power cut. Windows does
// that by itself and does not sync folders.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// makeDir makes a folder below an existing one and syncs the latter.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
