package cli

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

// TestShortIDsAreUnique checks that a truncated ID names one row of the printed list, even when the
// list comes in pages (SPEC 2.1). The IDs here are far more alike than random ones.
func TestShortIDsAreUnique(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) string {
			return snap.IDPrefix + rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 16, 16, -1).Draw(t, "id")
		})
		ids := rapid.SliceOfNDistinct(id, 1, 40, rapid.ID[string]).Draw(t, "ids")
		split := rapid.IntRange(0, len(ids)).Draw(t, "split")
		var short shortener
		shown := map[string]bool{}
		for i, page := range [][]string{ids[:split], ids[split:]} {
			short.setLength(page, i == 0)
			for _, id := range page {
				got := short.id(id)
				if shown[got] || !strings.HasPrefix(id, got) {
					t.Fatalf("%s is shown as %s, which is taken or no beginning of it", id, got)
				}
				shown[got] = true
			}
		}
	})
}

// TestShortIDsAreShort: IDs that differ early are shown with eight characters.
func TestShortIDsAreShort(t *testing.T) {
	t.Parallel()
	page := []string{"snap_0000000000000000", "snap_1000000000000000"}
	var short shortener
	short.setLength(page, false)
	if got := short.id(page[0]); got != "snap_00000000" {
		t.Errorf("shown as %s", got)
	}
}
