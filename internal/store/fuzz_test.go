package store_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"snap"
	"snap/internal/store"
)

// FuzzSearch checks that a search finds exactly the snapshots for which [store.Matches] is true,
// whatever special characters of SQL or LIKE it contains, and that an invalid query is an error of
// the caller, never of the service.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"shop", "SHOP", "%", "_", "\\", "\\%", "'", "é", "É", "ﬁ", "İ", "\x00", "a%b",
		" shop ",
		"shop-2026", "ẞ", "K"} {
		f.Add(seed, "", "")
	}
	f.Add("", store.Cursor(5), "")
	f.Add("", "AQ", "")
	f.Add("", "", "shop")
	w := newWorld(f, store.Options{DataDir: f.TempDir()})
	mia := w.user(w.acme, "mia", snap.RoleMember)
	var all []snap.Snapshot
	for _, target := range []string{"shop", "Shöp", "a%b", "a_b", "axb", "100%", "it's", "éclair", "ÉTÉ", "straße",
		"日本",
		"back'tick`"} {
		all = append(all, w.push(mia, target, snap.TypeSnapshot))
	}
	f.Fuzz(func(t *testing.T, q, cursor, target string) {
		page, err := w.Snapshots(t.Context(), mia, store.Query{Q: q, Cursor: cursor, Target: target})
		if err != nil {
			if snap.CodeOf(err) != snap.CodeInvalid && utf8.ValidString(q+cursor+target) {
				t.Fatalf("%q, cursor %q, target %q: %v", q, cursor, target, err)
			}
			return
		}
		if cursor != "" || target != "" {
			return
		}
		var want, got []string
		for _, sn := range all {
			if store.Matches(sn, q) {
				want = append(want, sn.ID)
			}
		}
		for _, sn := range page.Items {
			got = append(got, sn.ID)
		}
		slices.Sort(want)
		slices.Sort(got)
		if utf8.ValidString(q) && !slices.Equal(got, want) {
			t.Fatalf("a search for %q finds %d, and %d match", q, len(got), len(want))
		}
	})
}
