package sqlite

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

// TestOnlyIfEmpty checks a load that is not allowed to replace content. It replaces a file only if
// the file is still an empty database at the exchange. Otherwise, the file remains unchanged.
func TestOnlyIfEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, "CREATE TABLE ours (a); INSERT INTO ours VALUES (1), (2)")
	d, _ := dumped(t, from)
	const theirs = "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (7);"
	for name, c := range map[string]struct {
		before, meanwhile string // SQL; "" writes an empty file, and - does nothing
		refused           string
	}{
		"still missing":      {"-", "-", ""},
		"still empty":        {"", "-", ""},
		"created":            {"-", "", ""},
		"created and filled": {"-", theirs, "has content now"},
		"filled":             {"", theirs, "has content now"},
		"filled with a view": {"CREATE TABLE b (a); DROP TABLE b", "CREATE VIEW theirs AS SELECT 7", "has content now"},
		"its log is filled": {"", "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; " + theirs,
			"has content now"},
		"filled and emptied": {"", theirs + "DROP TABLE theirs", ""},
		"without tables":     {"CREATE TABLE b (a); DROP TABLE b", "-", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := filepath.Join(t.TempDir(), "to.db")
			run := func(text string) {
				switch text {
				case "-":
				case "":
					if err := os.WriteFile(to, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				default:
					makeDB(t, to, text)
				}
			}
			run(c.before)
			s, err := Engine{}.Restore(t.Context(), URLOf(to), d, engine.Options{Jobs: 1, OnlyIfEmpty: true})
			if err != nil {
				t.Fatal(err)
			}
			run(c.meanwhile)
			want := contents(t, from)
			if c.refused != "" {
				want = contents(t, to)
			}
			err = s.Swap(t.Context(), false)
			if c.refused == "" && err != nil || c.refused != "" && (snap.CodeOf(err) != snap.CodeConflict ||
				!strings.Contains(err.Error(), c.refused)) {
				t.Errorf("the load: %v", err)
			}
			if err := s.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			if got := contents(t, to); !reflect.DeepEqual(got, want) {
				t.Errorf("it has %v, want %v", got, want)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(to), "*"))
			left = slices.DeleteFunc(left, func(name string) bool { // a database in WAL mode keeps its log
				return name == to || name == to+"-wal" || name == to+"-shm"
			})
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestOnlyIfEmptyRefusesOthers: a colleague writes into the new database while the load exchanges
// it, or saves another file under its name. Neither is lost.
func TestOnlyIfEmptyRefusesOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, "CREATE TABLE ours (a)")
	d, _ := dumped(t, from)
	swap := func(meanwhile func()) error {
		s, err := Engine{}.Restore(t.Context(), URLOf(to), d, engine.Options{Jobs: 1, OnlyIfEmpty: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drop(t.Context())
		meanwhile()
		return s.Swap(t.Context(), false)
	}
	db, err := open(to, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = swap(func() {
		if _, err := db.Exec("BEGIN; CREATE TABLE theirs (a)"); err != nil {
			t.Fatal(err)
		}
	})
	if snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("into a database that is being filled: %v", err)
	}
	if _, err := db.Exec("INSERT INTO theirs VALUES (7); COMMIT"); err != nil {
		t.Errorf("the colleague: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if all := contents(t, to); !strings.Contains(strings.Join(all, "\n"), "theirs") {
		t.Errorf("it has %v", all)
	}
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	err = swap(func() {
		if err := os.WriteFile(to, []byte("a letter"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if b, _ := os.ReadFile(to); snap.CodeOf(err) != snap.CodeDatabase || string(b) != "a letter" {
		t.Errorf("over another file: %v, %q", err, b)
	}
}
