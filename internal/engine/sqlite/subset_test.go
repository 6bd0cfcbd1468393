package sqlite

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
	"snap/internal/subset/subsettest"
)

// sortedColumn returns one column of a query as sorted text.
func sortedColumn(t interface{ Fatal(...any) }, path, query string) []string {
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
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
	slices.Sort(all)
	return all
}

func makeDatabase(t interface{ Fatal(...any) }, path, text string) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// subsetOf dumps a subset and restores it, and returns the restored file.
func subsetOf(t *testing.T, dir, source string, want engine.Subset) (string, engine.Info, error) {
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), URLOf(source), &b, engine.Options{TempDir: dir, Subset: &want})
	if err != nil {
		return "", info, err
	}
	d := engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		Size: int64(b.Len()), Info: info}
	s, err := Engine{}.Restore(t.Context(), URLOf(filepath.Join(dir, "place.db")), d, engine.Options{TempDir: dir})
	if err != nil {
		return "", info, err
	}
	return s.(*scratch).path, info, nil
}

// TestSubsetOfADeepTree checks that a subset with a row has all of the row's ancestors, however
// many there are. One statement finds them, so the time is proportional to their number.
func TestSubsetOfADeepTree(t *testing.T) {
	t.Parallel()
	const levels = 15000
	dir := t.TempDir()
	source := filepath.Join(dir, "source.db")
	makeDatabase(t, source, subsettest.Deep(levels))
	_, info, err := subsetOf(t, dir, source,
		engine.Subset{Where: map[string]string{"deep": fmt.Sprintf("id = %d", levels)}})
	if err != nil {
		t.Fatal(err)
	}
	if rows := info.Tables[0].Rows; rows != levels {
		t.Errorf("the subset has %d rows, want %d", rows, levels)
	}
}

// For any foreign keys, a loaded subset has exactly the rows that the rules require, and every
// foreign key in it is valid.
func TestSubsetHoldsTheRows(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rapid.Check(t, func(r *rapid.T) {
		m, ask := subsettest.Generate(r)
		dir := t.TempDir()
		source := filepath.Join(dir, "source.db")
		makeDatabase(r, source, m.SQL(true))
		path, info, err := subsetOf(t, dir, source, engine.Subset{Where: ask.Where(m), Percent: ask.Percent})
		if err != nil {
			r.Fatal(err)
		}
		want := subsettest.Expect(m, ask)
		for i, table := range m.Tables {
			if got := sortedColumn(r, path, table.KeyQuery()); !slices.Equal(got, want[i]) {
				r.Fatalf("%s has %v, want %v\n%+v\n%s", table.Name, got, want[i], ask, m.SQL(true))
			}
			if told := info.Tables[i]; told.Name != table.Name || told.Rows != int64(len(want[i])) ||
				told.Of != int64(len(table.Rows)) {
				r.Fatalf("told of %s: %+v, want %d of %d", table.Name, told, len(want[i]), len(table.Rows))
			}
		}
		if broken := sortedColumn(r, path, "SELECT \"table\" FROM pragma_foreign_key_check"); len(broken) > 0 {
			r.Fatalf("foreign keys of %v do not hold", broken)
		}
	})
}

const subsetSchema = `
	CREATE TABLE "cus tomer" (id TEXT PRIMARY KEY COLLATE NOCASE, v int) WITHOUT ROWID;
	INSERT INTO "cus tomer" VALUES ('Ann', 1), ('BOB', 2), ('eve', 3);
	CREATE TABLE orders (rowid INTEGER, _rowid_ TEXT, customer REFERENCES "cus tomer", note TEXT);
	INSERT INTO orders VALUES (7, 'x', 'ann', 'Anns secret note'), (7, 'y', 'bob', 'Bobs secret note'),
		(7, 'z', 'nobody', 'dangling');
	CREATE TABLE log (what TEXT); INSERT INTO log VALUES ('removed'), ('kept');
	CREATE TRIGGER no_delete BEFORE DELETE ON orders BEGIN SELECT raise(abort, 'triggers fire'); END;
	CREATE VIRTUAL TABLE search USING fts5(note, content='orders', content_rowid='oid');
	CREATE TABLE setting (name TEXT); INSERT INTO setting VALUES ('whole');`

// Unusual names, keys without rows, collations, triggers and dangling references do not cause
// failures. Rows that are not chosen leave no trace.
func TestSubsetOfAnOddDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source.db")
	makeDatabase(t, source, subsetSchema)
	path, info,
		err := subsetOf(t, dir, source,
		engine.Subset{Where: map[string]string{"cus tomer": "id = 'ann' -- a comment", "log": "what = 'kept'"}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`SELECT id FROM "cus tomer"`: "Ann", "SELECT note FROM orders": "Anns secret note",
		"SELECT what FROM log": "kept", "SELECT name FROM setting": "whole",
		"SELECT name FROM sqlite_schema WHERE type = 'trigger'": "no_delete",
	} {
		if got := strings.Join(sortedColumn(t, path, query), ","); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if want := []string{"cus tomer", "log"}; info.Subset == nil || !slices.Equal(info.Subset.Start, want) {
		t.Errorf("told %+v", info.Subset)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("Bobs secret")) {
		t.Errorf("%v, or the file has a row that was not chosen", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "subset-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSubsetConditionsThatAreWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "source.db")
	makeDatabase(t, source, subsetSchema)
	for name, want := range map[string]engine.Subset{
		"no such table":   {Where: map[string]string{"orderz": "1"}},
		"no such column":  {Where: map[string]string{"orders": "nothing = 1"}},
		"no SQL":          {Where: map[string]string{"orders": "((("}},
		"over a hundred":  {Percent: 101},
		"below nothing":   {Percent: -1},
		"twice the table": {Where: map[string]string{"orders": "1", "ORDERS": "1"}},
	} {
		if _, _, err := subsetOf(t, dir, source, want); snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// If the check of a subset's foreign keys does not return the result in the manifest, the error has
// both results.
func TestForeignKeysOfASubsetAreCompared(t *testing.T) {
	t.Parallel()
	db, err := open(filepath.Join(t.TempDir(), "subset.db"), "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = checkForeignKeys(t.Context(), db, "cannot be checked")
	if err == nil || !strings.Contains(err.Error(), `returned "hold" instead of "cannot be checked"`) {
		t.Errorf("%v", err)
	}
}
