package sqlite

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// A mask can exchange the values of a unique column, whatever they are. The storage classes remain.
func TestPermutedValues(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	extremes := []int64{math.MinInt64, math.MinInt64 + 1, -1<<62 - 1, -1 << 62, -1, 0, 1, 1<<62 - 1, 1 << 62, 1<<62 + 1,
		math.MaxInt64 - 1, math.MaxInt64}
	integer := rapid.OneOf(rapid.SampledFrom(extremes), rapid.Int64Range(-20, 20), rapid.Int64())
	rapid.Check(t, func(r *rapid.T) {
		// By the column's definition, whether it can store text, and so all storage classes.
		columns := map[string]bool{"v INTEGER PRIMARY KEY": false, "v INT PRIMARY KEY": true, "v INTEGER UNIQUE": true,
			"v UNIQUE": true, "v NUMERIC UNIQUE": true, "v BLOB PRIMARY KEY": true}
		kind := rapid.SampledFrom([]string{"", "STRICT", "WITHOUT ROWID", "STRICT, WITHOUT ROWID"}).Draw(r, "kind")
		switch kind {
		case "STRICT":
			columns = map[string]bool{"v INTEGER PRIMARY KEY": false, "v INT UNIQUE": false, "v ANY UNIQUE": true}
		case "WITHOUT ROWID":
			columns = map[string]bool{"v INTEGER PRIMARY KEY": true, "v PRIMARY KEY": true}
		case "STRICT, WITHOUT ROWID":
			columns = map[string]bool{"v INTEGER PRIMARY KEY": false, "v ANY PRIMARY KEY": true}
		}
		names := []string{}
		for name := range columns {
			names = append(names, name)
		}
		slices.Sort(names)
		column := rapid.SampledFrom(names).Draw(r, "column")
		value := rapid.Map(integer, func(n int64) any { return n })
		if columns[column] {
			value = rapid.OneOf(value, rapid.SampledFrom([]any{0.5, -2.5, 1e300, "a", "b", "cc", []byte("x"),
				[]byte("y")}))
		}
		values := rapid.SliceOfNDistinct(value, 1, 12, func(v any) string { return fmt.Sprintf("%T %v", v, v) }).
			Draw(r, "values")
		checkPermuted(t, r, "CREATE TABLE a ("+column+", n INT) "+kind, values)
	})
}

// checkPermuted replaces each value with the next value of its type.
func checkPermuted(t *testing.T, r *rapid.T, create string, values []any) {
	dir, err := os.MkdirTemp("", "sqlite-permuted-")
	if err != nil {
		r.Fatal(err)
	}
	defer os.RemoveAll(dir)
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	db, err := open(from, "rwc")
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA synchronous = OFF;" + create); err != nil {
		r.Fatal(err)
	}
	next, want, first, last := map[string]string{}, make([]string, len(values)), map[string]any{}, map[string]any{}
	for n, v := range values {
		if _, err := db.Exec("INSERT INTO a (v, n) VALUES (?, ?)", v, n); err != nil {
			r.Fatal(err)
		}
		class := fmt.Sprintf("%T", v)
		if last[class] == nil {
			first[class] = v
		} else {
			next[textOf(last[class])] = textOf(v)
		}
		last[class] = v
	}
	for class, v := range last {
		next[textOf(v)] = textOf(first[class])
	}
	for n, v := range values {
		want[n] = fmt.Sprintf("%02d %T %s", n, v, next[textOf(v)])
	}
	d, _ := dumped(t, from)
	plan := keepAll(t, d)
	a := plan.Tables[[2]string{"", "a"}]
	a.Columns["v"], a.Permuted = func(v string) (string, bool) { return next[v], false }, []string{"v"}
	plan.Tables[[2]string{"", "a"}] = a
	if err := rewritten(t, d, plan, to); err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, row := range rowsOf(t, to, engine.Table{Name: "a", Columns: d.Info.Tables[0].Columns}) {
		v, n := row[0], row[1]
		if d.Info.Tables[0].Columns[0].Name != "v" {
			v, n = n, v
		}
		got = append(got, fmt.Sprintf("%02d %T %s", n, v, textOf(v)))
	}
	if slices.Sort(got); !reflect.DeepEqual(got, want) {
		r.Fatalf("%s: got %q, want %q", create, got, want)
	}
}
