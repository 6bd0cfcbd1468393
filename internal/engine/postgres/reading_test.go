package postgres

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestSplitRow checks that the fields of a row are those that were joined, and that only \N is
// NULL.
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

// TestLongRowsOfOthers checks that a row that needs a lot of memory is not read from a foreign
// snapshot, because a small file can contain a row of any length. Other snapshots have no such
// limit, and neither do loads.
func TestLongRowsOfOthers(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, fmt.Sprintf("CREATE TABLE t (a text); INSERT INTO t VALUES (repeat('x', %d)), ('b')",
		maxRow+1)))
	d, _ := dumped(t, from)
	read := func(d engine.Dump) error {
		r, err := Engine{}.ReadDump(t.Context(), d, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return r.Rows(t.Context(), func(int, [][]byte) error { return nil })
	}
	o := engine.Options{Jobs: 1}
	for name, use := range map[string]func(engine.Dump) error{
		"compare": read,
		"inspect": func(d engine.Dump) error { _, err := Engine{}.Inspect(t.Context(), d, 100, o); return err },
		"mask": func(d engine.Dump) error {
			plan := plainPlan(d)
			plan.Tables[[2]string{"public", "t"}].Columns["a"] = func(string) (string, bool) { return "y", false }
			_, err := Engine{}.Rewrite(t.Context(), d, plan, io.Discard, o)
			return err
		},
	} {
		if err := use(ours(d)); err != nil {
			t.Errorf("%s, ours: %v", name, err)
		}
		if err := use(foreign(d)); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s, of others: %v", name, err)
		}
	}
	if err := load(t, to, foreign(d), false); err != nil {
		t.Error(err)
	}
}
