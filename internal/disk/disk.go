// Package disk has file operations that differ between operating systems or are easy to get wrong,
// such as replacing a file durably and recognizing a full disk. It knows nothing about snapshots.
package disk

import (
	"os"
	"runtime"
)

// SyncDir makes renames and removals in a directory survive a power cut. On Windows it does
// nothing, because Windows cannot sync directories and needs no sync.
func SyncDir(dir string) error {
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
