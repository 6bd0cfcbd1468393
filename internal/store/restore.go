package store

import (
	"os"
	"path/filepath"

	"snap"
)

// RestoringDir is the folder in data_dir in which a restore prepares what it
// puts in place at its end.
const RestoringDir = ".restoring"

// CheckRestored reports, with code usage, that a restore into the data directory
// has not ended. Whoever opens the database asks it before.
func CheckRestored(o Options) error {
	_, err := os.Stat(filepath.Join(o.DataDir, RestoringDir))
	if begun := err == nil; !begun || o.URL != "" {
		return nil
	}
	return snap.Usage("a restore into "+o.DataDir+" has not ended",
		"run `snapcloud restore` again: it resumes where it stopped")
}
