package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A scratch file that nobody has written for a day is named and removed.
func TestMendRemovesStaleScratchFiles(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "shop.db")
	stale, fresh := filepath.Join(filepath.Dir(place), tempPrefix(place)+"1"+tempSuffix), filepath.Join(filepath.Dir(place), tempPrefix(place)+"2"+tempSuffix)
	for _, path := range []string{stale, fresh} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	url := URLOf(place)
	if left, err := (Engine{}).Leftovers(t.Context(), url); err != nil || len(left) != 1 || left[0] != stale {
		t.Errorf("left: %v, %v", left, err)
	}
	if removed, err := (Engine{}).Mend(t.Context(), url); err != nil || len(removed) != 1 || removed[0] != stale {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if left, err := (Engine{}).Leftovers(t.Context(), url); err != nil || len(left) != 0 {
		t.Errorf("left after mending: %v, %v", left, err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("the scratch file of a running load is gone")
	}
}
