package sqlite

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// Generated databases are restored unchanged. They have any names, kinds of tables and values,
// page sizes and journal modes, and rows are deleted in between. Rules that keep everything change
// nothing, and masking a column changes nothing else.
func TestGeneratedDatabasesRoundTrip(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "sqlite-property-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		from, to, kept := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db"), filepath.Join(dir, "kept.db")
		generate(r, from)
		o := engine.Options{Jobs: 2, TempDir: dir}
		var b, masked bytes.Buffer
		info, err := Engine{}.Dump(r.Context(), URLOf(from), &b, o)
		if err != nil {
			r.Fatal(err)
		}
		d := dumpOf(b.Bytes(), info)
		loadGenerated(r, to, d, o)
		plan := keepAll(t, d)
		column := generatedMask(r, plan)
		if info, err = (Engine{}).Rewrite(r.Context(), d, plan, &masked, o); err != nil {
			r.Fatal(err)
		}
		loadGenerated(r, kept, dumpOf(masked.Bytes(), info), o)
		for path, without := range map[string]string{to: "", kept: column} {
			if got, want := everything(r, path, without), everything(r, from, without); !reflect.DeepEqual(got, want) {
				r.Fatalf("got %q\nwant %q", got, want)
			}
		}
	})
}

func loadGenerated(t *rapid.T, to string, d engine.Dump, o engine.Options) {
	s, err := Engine{}.Restore(t.Context(), URLOf(to), d, o)
	if err == nil {
		err = s.Swap(t.Context(), false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// generatedMask masks one column that is not a key and on which no other column depends, or none.
func generatedMask(t *rapid.T, p engine.Plan) (column string) {
	var all []string
	for _, table := range p.Tables {
		for name := range table.Columns {
			if strings.HasPrefix(name, "plain") {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	column = rapid.SampledFrom(append(all, "")).Draw(t, "masked")
	for _, table := range p.Tables {
		if _, ok := table.Columns[column]; ok {
			table.Columns[column] = reversed
		}
	}
	return column
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
	do("PRAGMA auto_vacuum = " + rapid.SampledFrom([]string{"NONE", "FULL", "INCREMENTAL"}).Draw(t, "auto vacuum"))
	do("PRAGMA journal_mode = " + rapid.SampledFrom([]string{"DELETE", "WAL"}).Draw(t, "journal"))
	name := rapid.StringMatching(`[a-z"' äß東-]{1,12}`)
	for i := range rapid.IntRange(1, 3).Draw(t, "tables") {
		generateTable(t, do, i, quote(fmt.Sprintf("%s%d", name.Draw(t, "table"), i)), quote(name.Draw(t, "column")+"0"))
	}
	if rapid.Bool().Draw(t, "search") {
		do("CREATE VIRTUAL TABLE search USING fts5(body)")
		do("INSERT INTO search VALUES (?)", rapid.StringMatching(`[a-z ]{0,40}`).Draw(t, "text"))
	}
}

// generateTable creates a table with a key, a column of any type, a plain column, and some indexes,
// triggers and other objects.
func generateTable(t *rapid.T, do func(string, ...any), i int, table, own string) {
	kind := rapid.SampledFrom([]string{"", " STRICT", " WITHOUT ROWID", " STRICT, WITHOUT ROWID"}).Draw(t, "kind")
	types := []string{"", "INT", "TEXT", "BLOB", "REAL", "VARCHAR(3) COLLATE NOCASE", "NUMERIC"}
	if strings.Contains(kind, "STRICT") {
		types = []string{"ANY"}
	}
	generated := rapid.SampledFrom([]string{"", ", g TEXT AS (key || '!') STORED",
		", g INT AS (key * 2) VIRTUAL"}).Draw(t, "generated")
	plain := quote(fmt.Sprintf("plain%d", i))
	do(fmt.Sprintf("CREATE TABLE %s (%s %s, %s TEXT, key INTEGER PRIMARY KEY CHECK (key >= 0)%s)%s", table, own,
		rapid.SampledFrom(types).Draw(t, "type"), plain, generated, kind))
	for n := range rapid.IntRange(0, 12).Draw(t, "rows") {
		do(fmt.Sprintf("INSERT INTO %s (%s, %s, key) VALUES (?, ?, ?)", table, own, plain), value().Draw(t, "value"),
			rapid.String().Draw(t, "plain"), n)
	}
	do("DELETE FROM " + table + " WHERE key % 3 = 1")
	for n, more := range []string{
		"CREATE INDEX %[3]s ON %[1]s (%[2]s)", "CREATE INDEX %[3]s ON %[1]s (lower(%[2]s), key)",
		"CREATE INDEX %[3]s ON %[1]s (key) WHERE %[2]s > 'k'",
		"CREATE UNIQUE INDEX %[3]s ON %[1]s (key DESC, %[2]s)", "CREATE VIEW %[3]s AS SELECT count(*) FROM %[1]s",
		"CREATE TRIGGER %[3]s BEFORE UPDATE ON %[1]s BEGIN SELECT RAISE(ABORT, 'must not fire'); END",
	} {
		if rapid.Bool().Draw(t, "more") {
			do(fmt.Sprintf(more, table, plain, quote(fmt.Sprintf("more %d %d", i, n))))
		}
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

// everything returns the schema and every row with the storage classes of its values. It omits
// one column.
func everything(t *rapid.T, path, without string) []string {
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := column(t, db, "SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
	list, err := tables(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range list {
		parts := []string{"''"}
		for _, c := range table.Columns {
			if c.Name != without {
				parts = append(parts, fmt.Sprintf("typeof(%[1]s) || quote(%[1]s)", quote(c.Name)))
			}
		}
		all = append(all, column(t, db, "SELECT "+strings.Join(parts, " || ")+" FROM "+quote(table.Name))...)
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
