package sqlite

import (
	"os"
	"time"
)

// stale reports whether a scratch file was not written for a day.
func stale(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}
