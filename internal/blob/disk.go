package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"snap"
	"snap/internal/disk"
)

// diskError wraps an error of the file system. The code is storage_full if the disk is full,
// and not_found if the file does not exist.
func diskError(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case disk.Full(err):
		return storageFull(err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", what, snap.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// storageFull returns the error for an object store without enough free space.
func storageFull(cause error) error {
	return &snap.Error{
		Code:   snap.CodeStorageFull,
		Detail: "the object store is full",
		Hint: "free some space there, or ask its operator to; then run the command again: it resumes where it " +
			"stopped",
		Cause: cause,
	}
}

// rename renames a file or folder and syncs the folder of its new name.
func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(to))
}

// makeDir creates a folder in an existing folder and syncs the existing one.
func makeDir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(dir))
}
