package disk

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Replace atomically replaces or creates the file at path. A new file has mode perm; an existing
// one keeps its mode. Replace writes to a temporary file in the same directory, never in the
// system's temporary directory, so that a killed process leaves parts of a secret only next to the
// secret. [RemoveTemporary] removes such files.
func Replace(path string, content []byte, perm fs.FileMode) error {
	return replace(path, content, perm)
}

// RemoveTemporary removes the temporary files of processes that were killed during [Replace] of
// path. The caller must hold the file's lock, so that no running process is replacing it.
func RemoveTemporary(path string) {
	for _, left := range Glob(filepath.Dir(path), "."+EscapeGlob(filepath.Base(path))+"[0-9]*") {
		_ = os.Remove(left)
	}
}
