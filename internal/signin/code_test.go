package signin

import (
	"strings"
	"testing"
)

// D1: 10,000 codes differ and use the whole alphabet. In one run of five hundred, two of them are
// equal by chance, so a few may be.
func TestTenThousandUserCodes(t *testing.T) {
	t.Parallel()
	seen, used := map[string]bool{}, map[rune]bool{}
	const n = 10_000
	for range n {
		code := newUserCode()
		clean, ok := cleanUserCode(strings.ToLower(formatUserCode(code)))
		if !ok || clean != code {
			t.Fatalf("code %q: understood %v as %q", code, ok, clean)
		}
		seen[code] = true
		for _, r := range code {
			used[r] = true
		}
	}
	if len(seen) < n-4 {
		t.Errorf("%d codes were repeated", n-len(seen))
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
