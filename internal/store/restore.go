package store

import (
	"os"
	"path/filepath"

	"snap"
)

// RestoringDir is the folder in data_dir in which a restore prepares its data before putting it in
// place.
const RestoringDir = ".restoring"

// CheckRestored fails with code usage when a restore into the data directory has not ended. It must
// be called before the database is opened.
func CheckRestored(o Options) error {
	_, err := os.Stat(filepath.Join(o.DataDir, RestoringDir))
	if begun := err == nil; !begun || o.URL != "" {
		return nil
	}
	return snap.Usage("a restore into "+o.DataDir+" has not finished",
		"run `snapcloud restore` again: it resumes where it stopped")
}
