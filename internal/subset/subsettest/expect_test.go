package subsettest

import (
	"testing"

	"pgregory.net/rapid"
)

// TestEverything checks that 100 percent includes every row, for any foreign keys and any number
// of NULL references.
func TestEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, _ := Generate(t)
		for i, kept := range Expect(m, Ask{Percent: 100}) {
			if len(kept) != len(m.Tables[i].Rows) {
				t.Fatalf("%s keeps %d of %d rows", m.Tables[i].Name, len(kept), len(m.Tables[i].Rows))
			}
		}
	})
}
