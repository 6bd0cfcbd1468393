package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"snap/internal/engine"
)

// A scratch file that was not written to for a day is listed and removed.
func TestMendRemovesStaleScratchFiles(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "shop.db")
	stale, fresh := filepath.Join(filepath.Dir(place), tempPrefix(place)+"1"+tempSuffix),
		filepath.Join(filepath.Dir(place), tempPrefix(place)+"2"+tempSuffix)
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
	removed, err := (Engine{}).RemoveLeftovers(t.Context(), url)
	if err != nil || len(removed) != 1 || removed[0] != stale {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if left, err := (Engine{}).Leftovers(t.Context(), url); err != nil || len(left) != 0 {
		t.Errorf("left after mending: %v, %v", left, err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error("the scratch file of a running load is gone")
	}
}

// The remains of a killed load are found and removed. Files that a running load
// uses are not.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, victim)
	d, _ := dumped(t, from)
	running, err := Engine{}.Restore(t.Context(), URLOf(to), d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	killed, err := Engine{}.Restore(t.Context(), URLOf(to), d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	left := killed.(*scratch)
	if err := left.lock.Unlock(); err != nil { // as the system does when a process is killed
		t.Fatal(err)
	}
	if err := os.WriteFile(left.path+"-journal", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Engine{}.Leftovers(t.Context(), URLOf(to))
	if err != nil || len(found) != 1 || found[0] != left.path {
		t.Errorf("found %q, %v", found, err)
	}
	if removed, err := (Engine{}).RemoveLeftovers(t.Context(), URLOf(to)); err != nil || len(removed) != 1 ||
		removed[0] != left.path {
		t.Errorf("removed %q, %v", removed, err)
	}
	if err := running.Swap(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(files) > 0 {
		t.Errorf("still there: %q", files)
	}
}
