package sanitize

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A mask without settings never changes its result for a value. Otherwise masked snapshots of one
// release could not be joined with those of the next.
func TestMasksStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"address city company constant email first_name format hash last_name name noise null phone redact " +
			"shift": "11c089c05f57366f4b42ff5ef883dc170803cbac275dcb304cab2a9465ab59c6",
		"card choice iban": "5d14542006a9c149b4350f454f48aa3088f4b655a1f6892b9bac62abc4a94613",
		"boolean currency date domain integer number paragraph password password_hash sentence time_zone url uuid " +
			"word": "b0cd37e078893da1cdd49e5c9b2e82ddd7cef83886a97ef8f47ab65072ffb289",
		"coordinates ip key mac user_name": "3ebb2908c9122ab8466d72a58b4962a60ec201e15d3f53bef3182046899bd0f9",
	} {
		if got := digestOf(strings.Fields(names)); got != want {
			t.Errorf("%s make other values than before: %s, want %s", names, got, want)
		}
	}
}

// digestOf returns the digest of the masks' results for a thousand values of three kinds.
func digestOf(names []string) string {
	rule := ColumnRule{Value: "x", Percent: 10, Days: 30, Values: []string{"a", "b", "c"}}
	h := sha256.New()
	made := makers()
	for _, name := range names {
		mask := made[name](testKey, rule, 0)
		for i := range 1000 {
			for _, original := range []string{fmt.Sprintf("%d-12-%02d", 1900+i/10, 1+i%28), fmt.Sprintf("%d.5", i),
				fmt.Sprintf("Person %d", i)} {
				v, null := mask(original)
				fmt.Fprintln(h, name, v, null)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
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
