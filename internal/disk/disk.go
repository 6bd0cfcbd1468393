// Package disk is what the operating systems do differently, or easily wrong,
// when a file must be whole after a power cut and a full disk must be told
// apart from other failures. It knows nothing of snapshots.
package disk

import (
	"os"
	"runtime"
)

// SyncDir makes renames and removals in a folder survive a power cut. Windows
// does that by itself and does not sync folders.
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
