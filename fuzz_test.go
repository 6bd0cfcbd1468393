package snap_test

import (
	"path/filepath"
	"strings"
	"testing"

	"snap"
)

// FuzzCleanTarget checks that an accepted target name is the name of one folder, and does not
// change when it is cleaned again.
func FuzzCleanTarget(f *testing.F) {
	for _, seed := range []string{"shop", " shop ", "..", "a/b", "é", "日本", "-x", "\x00", "con", "a\u202eb",
		strings.Repeat("x", 101)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		name, err := snap.CleanTarget(typed)
		if err != nil {
			if snap.CodeOf(err) != snap.CodeInvalid {
				t.Fatalf("%q: %v", typed, err)
			}
			return
		}
		again, err := snap.CleanTarget(name)
		if err != nil || again != name || filepath.Base(name) != name || !filepath.IsLocal(name) ||
			len(name) > snap.MaxTargetName {
			t.Fatalf("%q became %q, then %q, %v", typed, name, again, err)
		}
	})
}

// FuzzCleanIDPrefix checks that an accepted prefix of an ID has no character with a special meaning
// in a database or a URL.
func FuzzCleanIDPrefix(f *testing.F) {
	for _, seed := range []string{"snap_pgbsn91ktegk2at1", "SNAP_PG", " pg ", "", "snap_", "%", "snap_l", "ſnap_1",
		"K"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, typed string) {
		prefix, ok := snap.CleanIDPrefix(typed)
		if !ok {
			return
		}
		rest, has := strings.CutPrefix(prefix, snap.IDPrefix)
		if !has || rest == "" || len(rest) > 16 || strings.Trim(rest, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
			t.Fatalf("%q became %q", typed, prefix)
		}
		if again, ok := snap.CleanIDPrefix(prefix); !ok || again != prefix {
			t.Fatalf("%q became %q, and that %q", typed, prefix, again)
		}
	})
}
