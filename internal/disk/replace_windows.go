package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace does not need perm: a file has the rights that its folder hands down.
func replace(path string, content []byte, _ fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // is gone when all went well
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
