package postgres

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestSplitRow: the fields of a row are those that were joined, and only \N is NULL.
func TestSplitRow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]string{`\N`, "", "a", `\\N`, "N", `\\`, `a\tb`})
		values := rapid.SliceOfN(field, 1, 6).Draw(t, "values")
		var line []byte
		for i, v := range values {
			if i > 0 {
				line = append(line, '\t')
			}
			line = append(line, v...)
		}
		fields := splitRow(nil, line)
		if len(fields) != len(values) {
			t.Fatalf("%q has the fields %q", line, fields)
		}
		for i, v := range values {
			if null := fields[i] == nil; null != (v == `\N`) || !null && !bytes.Equal(fields[i], []byte(v)) {
				t.Fatalf("field %d of %q is %q", i, line, fields[i])
			}
		}
	})
}
