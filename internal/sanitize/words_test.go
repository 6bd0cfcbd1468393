package sanitize

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"
)

// A mask's result for a value never changes, or masked snapshots of one release
// would not join with those of the next.
func TestMasksStayAsTheyAre(t *testing.T) {
	t.Parallel()
	rule := ColumnRule{Value: "x", Percent: 10, Days: 30}
	h := sha256.New()
	made := makers()
	for _, name := range MaskNames() {
		mask := made[name](testKey, rule, 0)
		if mask == nil {
			continue // keep
		}
		for i := range 1000 {
			for _, original := range []string{fmt.Sprintf("%d-12-%02d", 1900+i/10, 1+i%28), fmt.Sprintf("%d.5", i),
				fmt.Sprintf("Person %d", i)} {
				v, null := mask(original)
				fmt.Fprintln(h, name, v, null)
			}
		}
	}
	const want = "11c089c05f57366f4b42ff5ef883dc170803cbac275dcb304cab2a9465ab59c6"
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		t.Errorf("the masks make other values than before: %s, want %s", got, want)
	}
}

func TestWordsStandOnce(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{
		"firstNames": firstNames[:], "lastNames": lastNames[:], "streetNames": streetNames[:],
		"streetKinds": streetKinds[:],
		"cities":      cities[:], "trades": trades[:], "companyForms": companyForms[:],
	} {
		sorted := slices.Sorted(slices.Values(words))
		if n := len(slices.Compact(sorted)); n != len(words) {
			t.Errorf("%s: %d of %d words stand twice", name, len(words)-n, len(words))
		}
	}
}
