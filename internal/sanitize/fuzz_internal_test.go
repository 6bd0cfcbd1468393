package sanitize

import (
	"testing"

	"snap"
)

// FuzzRules: any rules file is read or refused as wrong.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"", "tables: {}", "tables: {a: {columns: {b: keep}}}",
		"tables:\n  a:\n    rows: drop",
		"tables: [", "a: &a [*a]", "large_objects: keep", "tables: {a: {columns: {b: {mask: email}}}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRules("rules.yaml", text)
		if err != nil && snap.CodeOf(err) == snap.CodeInternal {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && r.Digest() == "" {
			t.Fatal("rules without a digest")
		}
	})
}
