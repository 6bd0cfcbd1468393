//go:build !windows

package disk

import (
	"io/fs"
	"path/filepath"

	"github.com/google/renameio/v2"
)

func replace(path string, content []byte, perm fs.FileMode) error {
	return renameio.WriteFile(path, content, perm, renameio.WithTempDir(filepath.Dir(path)))
}
