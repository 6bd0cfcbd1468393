package engine

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	names := [][2]string{{"public", "orders"}, {"public", "Orders"}, {"sales", "orders_2024"}, {"sales", "a.b"},
		{"", "a.b"}, {"s.t", `x"y*`}, {"public", "größe"}}
	for pattern, want := range map[string][]int{
		"orders": {0, 1}, `"orders"`: {0}, `"Orders"`: {1}, "ORDERS*": {0, 1, 2}, "sales.*": {2, 3}, "*": {0, 1, 2,
			3, 4, 5, 6},
		"a.b": {4}, `"a.b"`: {3, 4}, `"s.t".*`: {5}, `"x""y*"`: {5}, "x?y?": {5}, "order?": {0, 1}, "?rders_20*4": {2},
		"GRÖSSE": nil, "Größe": {6}, "public.*r*s*": {0, 1}, "orders|a": nil, "[a-z]*": nil,
	} {
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		var got []int
		for i, n := range names {
			if p.Matches(n[0], n[1]) {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s matches %v, want %v", pattern, got, want)
		}
	}
	for _, bad := range []string{"", ".", "a.b.c", ".a", "a.", `"a`, `""`, "a\x00", "\xff"} {
		if _, err := ParsePattern(bad); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestPatternIsQuick matches a pattern that would be slow without care, and compares the results
// for random patterns with those of a simple matcher.
func TestPatternIsQuick(t *testing.T) {
	t.Parallel()
	if p, _ := ParsePattern(strings.Repeat("*a", 1000) + "b"); p.Matches("", strings.Repeat("a", 10_000)) {
		t.Error("it matches")
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab*?")), 1, 8, -1).Draw(r, "pattern")
		name := rapid.StringOfN(rapid.SampledFrom([]rune("abC")), 0, 8, -1).Draw(r, "name")
		p, err := ParsePattern(text)
		if err != nil || p.Matches("", name) != simple(text, strings.ToLower(name)) {
			r.Errorf("%q and %q: %v", text, name, err)
		}
	})
}

func simple(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return simple(pattern[1:], text) || text != "" && simple(pattern, text[1:])
	}
	return text != "" && (pattern[0] == '?' || pattern[0] == text[0]) && simple(pattern[1:], text[1:])
}
