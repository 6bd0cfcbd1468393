package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace ignores perm: a file inherits its permissions from its directory.
func replace(path string, content []byte, _ fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // the temporary file no longer exists after a successful rename
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
