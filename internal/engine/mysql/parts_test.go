package mysql

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/servertest"
)

// big is a table of 16384 rows. Each row has 500 bytes to dump and takes 3500 more on the server's
// disk, where an empty CHAR takes its full length. The total is 66 MB.
var big = "CREATE TABLE big (id BIGINT PRIMARY KEY AUTO_INCREMENT, pad VARCHAR(500)" + empty(14) +
	") CHARSET latin1; INSERT INTO big (pad) VALUES (repeat('x', 500));" +
	strings.Repeat("INSERT INTO big (pad) SELECT pad FROM big;", 14) + "ANALYZE TABLE big;"

// empty declares n empty columns of 250 bytes.
func empty(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, ", c%d CHAR(250) NOT NULL DEFAULT ''", i)
	}
	return s.String()
}

const sumOfBig = "SELECT concat_ws(' ', count(*), min(id), max(id), sum(id), sum(crc32(pad))) FROM big"

// A big table is read in parts by several connections and restored completely. Another dump of the
// same rows is equal, whichever connection is faster.
func TestBigTableInParts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, big)
		db, d := openURL(t, from)
		c, err := session(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		tables, err := listTables(t.Context(), c, d.name)
		if err != nil {
			t.Fatal(err)
		}
		sources, err := sourcesOf(t.Context(), c, d.name, tables)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := inParts(t.Context(), c, sources)
		if err != nil || len(parts) < 3 {
			t.Errorf("%d parts of %+v, %v", len(parts), sources, err)
		}
		c.Close()
		db.Close()
		dump, first := dumped(t, from)
		if _, second := dumped(t, from); !bytes.Equal(first, second) {
			t.Error("a second dump of the same rows differs")
		}
		counted(t, from, dump.Info.Tables)
		if err := load(t, to, dump, false); err != nil {
			t.Fatal(err)
		}
		if a, b := sorted(t, from, sumOfBig), sorted(t, to, sumOfBig); !slices.Equal(a, b) {
			t.Errorf("the rows %q became %q", a, b)
		}
	})
}

// Every number is in exactly one range, whatever the bounds are.
func TestRanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3),
			rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		a, b := number.Draw(r, "a"), number.Draw(r, "b")
		all := ranges("k", fmt.Sprint(min(a, b)), fmt.Sprint(max(a, b)), rapid.IntRange(2, 40).Draw(r, "parts"))
		for _, n := range []int64{a, b, a/2 + b/2, math.MinInt64, math.MaxInt64, number.Draw(r, "n")} {
			in := 0
			for _, where := range all {
				if within(r, where, n) {
					in++
				}
			}
			if in != 1 {
				r.Fatalf("%d is in %d of %q", n, in, all)
			}
		}
	})
	for _, odd := range []string{"", "18446744073709551615", "1.5"} {
		if got := ranges("k", "0", odd, 4); len(got) != 1 || got[0] != "" {
			t.Errorf("up to %q: %q", odd, got)
		}
	}
}

// within evaluates a condition of ranges.
func within(r *rapid.T, where string, n int64) bool {
	if where == "" {
		return true
	}
	for _, part := range strings.Split(strings.TrimPrefix(where, " WHERE "), " AND ") {
		var sign string
		var bound int64
		if _, err := fmt.Sscanf(part, "k %s %d", &sign, &bound); err != nil {
			r.Fatalf("%q: %v", part, err)
		}
		if sign == "<" && n >= bound || sign == ">=" && n < bound {
			return false
		}
	}
	return true
}
