//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A load keeps the owner and the mode of the file.
func TestOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs to be root, who can give files away")
	}
	path := filepath.Join(t.TempDir(), "shop.db")
	makeDB(t, path, "CREATE TABLE t (a)")
	if err := errors.Join(os.Chown(path, 1234, 5678), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	d, _ := dumped(t, path)
	if err := load(t, path, d); err != nil {
		t.Fatal(err)
	}
	file, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if of := file.Sys().(*syscall.Stat_t); of.Uid != 1234 || of.Gid != 5678 || file.Mode().Perm() != 0o640 {
		t.Errorf("it is of %d:%d, %v", of.Uid, of.Gid, file.Mode())
	}
}
