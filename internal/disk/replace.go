package disk

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace puts content in place of the file at path, or makes the file, whole or
// not at all. A new file has mode perm, one that was there keeps its own. The
// content is first written to a file next to it, never to the system's folder of
// temporary files, so that what a killed process leaves of a secret is where the
// secret is; [RemoveLeft] removes that.
func Replace(path string, content []byte, perm fs.FileMode) error {
	return replace(path, content, perm)
}

// RemoveLeft removes what processes left that were killed while they replaced
// the file at path. Nobody may be replacing it at the time: hold its lock.
func RemoveLeft(path string) {
	dir := filepath.Dir(path)
	left, _ := fs.Glob(os.DirFS(dir), "."+filepath.Base(path)+"[0-9]*") // fails only for a bad pattern
	for _, name := range left {
		_ = os.Remove(filepath.Join(dir, name))
	}
}
