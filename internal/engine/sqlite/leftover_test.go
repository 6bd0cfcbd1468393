package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"snap/internal/engine"
)

// What a killed load left behind is found and removed; what a running one uses
// is not.
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
	if err != nil || len(found) != 1 || found[0].Name != left.path {
		t.Errorf("found %+v, %v", found, err)
	}
	if failed, err := (Engine{}).Clean(t.Context(), URLOf(to)); err != nil || len(failed) > 0 {
		t.Errorf("not removed: %+v, %v", failed, err)
	}
	if err := running.Swap(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(files) > 0 {
		t.Errorf("still there: %q", files)
	}
}
