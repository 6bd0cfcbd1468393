package sqlite

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
)

// Generated databases come back as they were: any names, any types of values,
// any page size and journal mode, with deletions in between.
func TestGeneratedDatabasesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "sqlite-property-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
		generate(t, from)
		var b bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), URLOf(from), &b, engine.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Engine{}.Restore(t.Context(), URLOf(to), dumpOf(b.Bytes(), info), engine.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Swap(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if got, want := everything(t, to), everything(t, from); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %q\nwant %q", got, want)
		}
	})
}

func generate(t *rapid.T, path string) {
	db, err := open(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	do := func(statement string, args ...any) {
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	do("PRAGMA synchronous = OFF")
	do(fmt.Sprintf("PRAGMA page_size = %d", rapid.SampledFrom([]int{512, 1024, 4096, 65536}).Draw(t, "page size")))
	do("PRAGMA journal_mode = " + rapid.SampledFrom([]string{"DELETE", "WAL"}).Draw(t, "journal"))
	name := rapid.StringMatching(`[a-z"' äß東-]{1,12}`)
	for i := range rapid.IntRange(1, 4).Draw(t, "tables") {
		table := quote(fmt.Sprintf("%s%d", name.Draw(t, "table"), i))
		columns := rapid.IntRange(1, 4).Draw(t, "columns")
		var list []string
		for c := range columns {
			kind := rapid.SampledFrom([]string{"", " INT", " TEXT NOT NULL DEFAULT 'x'", " BLOB", " REAL", " VARCHAR(3) COLLATE NOCASE"}).Draw(t, "type")
			list = append(list, quote(fmt.Sprintf("%s%d", name.Draw(t, "column"), c))+kind)
		}
		do("CREATE TABLE " + table + " (" + strings.Join(list, ", ") + ")")
		for range rapid.IntRange(0, 30).Draw(t, "rows") {
			values := make([]any, columns)
			for c := range values {
				values[c] = value().Draw(t, "value")
			}
			do("INSERT OR IGNORE INTO "+table+" VALUES (?"+strings.Repeat(", ?", columns-1)+")", values...)
		}
		do("DELETE FROM " + table + " WHERE rowid % 3 = 1")
	}
}

func value() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64(), func(v int64) any { return v }),
		rapid.Map(rapid.Float64(), func(v float64) any { return v }),
		rapid.Map(rapid.String(), func(v string) any { return v }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3000), func(v []byte) any { return v }),
		rapid.Just[any](nil),
	)
}

// everything returns the schema, and every row with its number and the kinds
// of its values.
func everything(t *rapid.T, path string) []string {
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := column(t, db, "SELECT type || name || sql FROM sqlite_schema ORDER BY rowid")
	list, err := tables(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range list {
		var parts []string
		for _, c := range table.Columns {
			parts = append(parts, fmt.Sprintf("typeof(%[1]s) || quote(%[1]s)", quote(c.Name)))
		}
		all = append(all, column(t, db, "SELECT rowid || ' ' || "+strings.Join(parts, " || ")+" FROM "+quote(table.Name))...)
	}
	return all
}

func column(t *rapid.T, db *sql.DB, query string) []string {
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}
