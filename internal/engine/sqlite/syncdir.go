package sqlite

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// syncDir makes a rename in a folder durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync the folder: %w", err)
	}
	return nil
}

// stale reports whether a scratch file was not written for a day.
func stale(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}
