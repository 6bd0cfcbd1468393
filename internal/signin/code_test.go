package signin

import (
	"strings"
	"testing"
)

// D1: 10,000 codes, all of the alphabet, none twice.
func TestTenThousandUserCodes(t *testing.T) {
	t.Parallel()
	seen, used := map[string]bool{}, map[rune]bool{}
	for range 10_000 {
		code := newUserCode()
		clean, ok := cleanUserCode(strings.ToLower(showUserCode(code)))
		if !ok || clean != code || seen[code] {
			t.Fatalf("code %q: understood %v as %q, seen before %v", code, ok, clean, seen[code])
		}
		seen[code] = true
		for _, r := range code {
			used[r] = true
		}
	}
	if len(used) != 20 {
		t.Errorf("%d letters are used, want 20", len(used))
	}
	for _, bad := range []string{"", "BCDF", "BCDF-GHJA", "BCDF-GHJKL", "ÄÄÄÄ", "BCDF'GHJK", "12345678"} {
		if _, ok := cleanUserCode(bad); ok {
			t.Errorf("%q was taken for a code", bad)
		}
	}
}
