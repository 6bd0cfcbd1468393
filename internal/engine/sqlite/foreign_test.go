package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// loadAs restores and swaps with a degree of trust.
func loadAs(t testing.TB, path string, d engine.Dump, trust engine.Trust) error {
	t.Helper()
	d.Trust = trust
	s, err := Engine{}.Restore(t.Context(), URLOf(path), d, engine.Options{Jobs: 2, TempDir: t.TempDir()})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), false)
}

// rowsOfDescribed returns every row of the described tables with its rowid and the kinds of its
// values.
func rowsOfDescribed(t testing.TB, path string, s *schema.Schema) []string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []string
	for _, table := range s.Tables {
		parts := []string{"''"}
		if name := freeRowid(definition{Table: table}); table.Options[withoutRowid] == "" && name == "rowid" {
			parts = append(parts, "'#' || rowid")
		}
		for _, c := range table.Columns {
			if !c.Computed {
				parts = append(parts, fmt.Sprintf("typeof(%[1]s) || quote(%[1]s)", quote(c.Name)))
			}
		}
		got, err := texts(t.Context(), db, "SELECT "+strings.Join(parts,
			" || ' ' || ")+" FROM "+quote(table.Name.Name)+" ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "table "+table.Name.Name), got...)
	}
	return all
}

// Every kind of file can be loaded as data: with the same rows and types, the same settings, as
// many tables, the same sequences, and no programs.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	kinds := kindsOfFiles()
	kinds["described"] = describedTables +
		`INSERT INTO plain (a, "e f") VALUES ('one word', 'b'), ('two', NULL); INSERT INTO ext (ext) VALUES ('rebuild');
		INSERT INTO f VALUES ('a title', 'a body'); INSERT INTO tree VALUES (5, 1.5, 2.5, 'five'), (-6, 0, 0, NULL);`
	kinds["big tree"] = `CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1, +a, +b); WITH RECURSIVE n(i)
		AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
		INSERT INTO r SELECT i, i % 50, i % 50 + 1.25, i % 77, i % 77 + 2, 'label ' || i, i * 2 FROM n;`
	kinds["added columns"] = `CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 2), (3, NULL);
		ALTER TABLE t ADD COLUMN c DEFAULT 'x'; INSERT INTO t VALUES (4, 5, 6);
		ALTER TABLE t ADD COLUMN d REAL NOT NULL DEFAULT -7; ALTER TABLE t ADD COLUMN e; INSERT INTO t
			VALUES (7, 8, 9, 10, 11);
		ALTER TABLE t ADD COLUMN f INT DEFAULT 0xFF; ALTER TABLE t ADD COLUMN g INT DEFAULT -0x10;`
	kinds["rowids"] = `CREATE TABLE t (rowid, oid, v); INSERT INTO t (_rowid_, v) VALUES (5, 'a'), (-3, 'b'); ` +
		`CREATE TABLE u (rowid, oid, _rowid_); INSERT INTO u VALUES (1, 2, 3);`
	kinds["no stored values"] = `CREATE TABLE t (a);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) INSERT INTO t SELECT i FROM n;
		PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = 'CREATE TABLE t (rowid AS (1) STORED, oid AS (2), _rowid_ AS (3), b DEFAULT 7)';
		PRAGMA writable_schema = RESET;`
	for name, script := range kinds {
		if name == "names" {
			continue // its names are not UTF-8: see TestForeignNames
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
			makeDB(t, from, script)
			d, _ := dumped(t, from)
			if err := loadAs(t, to, d, engine.Foreign); err != nil {
				t.Fatal(err)
			}
			want := append(rowsOfDescribed(t, from, d.Info.Schema), settings(t, from)...)
			got := append(rowsOfDescribed(t, to, d.Info.Schema), settings(t, to)...)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			described := descriptionOf(t, to)
			if len(described.Programs) > 0 || len(described.Tables) != len(d.Info.Schema.Tables) ||
				!reflect.DeepEqual(described.Sequences, d.Info.Schema.Sequences) {
				t.Errorf("the loaded file is described as %+v", described)
			}
			soundFile(t, to)
		})
	}
}

// soundFile checks a file with SQLite.
func soundFile(t testing.TB, path string) {
	t.Helper()
	db, err := open(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if said, err := texts(t.Context(), db, "PRAGMA integrity_check"); err != nil || said[0] != "ok" {
		t.Errorf("integrity_check of %s: %q, %v", path, said, err)
	}
}

// Names that are not UTF-8 are restored in a form that people can read.
func TestForeignNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, kindsOfFiles()["names"])
	d, _ := dumped(t, from)
	if err := loadAs(t, to, d, engine.Foreign); err != nil {
		t.Fatal(err)
	}
	db, err := open(to, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := queryTexts(t, db, `SELECT "na\xEFve" FROM "caf\xE9"`); len(got) != 1 || got[0] != "café" {
		t.Errorf("got %q", got)
	}
}

// Generated databases can be loaded as data.
func TestGeneratedForeignDatabases(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "sqlite-foreign-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
		generate(r, from)
		d, _ := dumped(t, from)
		d.Trust = engine.Foreign
		loadGenerated(r, to, d, engine.Options{Jobs: 2, TempDir: dir})
		if got, want := rowsOfDescribed(t, to, d.Info.Schema),
			rowsOfDescribed(t, from, d.Info.Schema); !reflect.DeepEqual(got, want) {
			r.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

// With programs, the entries that the description lists are loaded too.
func TestForeignPrograms(t *testing.T) {
	t.Parallel()
	const script = `CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g AS (a || '!'), h INT
		AS (id * 2) STORED UNIQUE, CHECK (abs(random()) >= 0 OR printf('%s', a) = ''));
		INSERT INTO t (a) VALUES ('x'), ('y'); CREATE INDEX e ON t (lower(a)); CREATE INDEX p ON t (a) WHERE id > 3;
		CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER tr AFTER DELETE ON t BEGIN SELECT 1; END;`
	dir := t.TempDir()
	from, with, without := filepath.Join(dir, "from.db"), filepath.Join(dir, "with.db"),
		filepath.Join(dir, "without.db")
	makeDB(t, from, script)
	d, _ := dumped(t, from)
	if err := loadAs(t, without, d, engine.Foreign); err != nil {
		t.Fatal(err)
	}
	d.WithPrograms = true
	if err := loadAs(t, with, d, engine.Foreign); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, with), contents(t, from); !reflect.DeepEqual(got, want) {
		t.Errorf("with programs:\n%q\nwant\n%q", got, want)
	}
	db, err := open(without, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := queryTexts(t, db, "SELECT name FROM sqlite_schema"); !reflect.DeepEqual(got, []string{"t"}) {
		t.Errorf("without programs there is %q", got)
	}
}

// A full-text table of a view, which an older version described, is left out.
func TestForeignSearchOfAView(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, "CREATE TABLE t (a); INSERT INTO t VALUES ('x'); CREATE VIEW v AS SELECT a FROM t; "+
		"CREATE VIRTUAL TABLE f USING fts5(a, content=v)")
	d, _ := dumped(t, from)
	d.Info.Schema.Tables = append(d.Info.Schema.Tables, schema.Table{Name: schema.Name{Name: "f"}, Virtual: fts5,
		Columns: []schema.Column{{Name: "a"}}, Options: map[string]string{"content": "v"}})
	if err := loadAs(t, to, d, engine.Foreign); err != nil {
		t.Fatal(err)
	}
	if described := descriptionOf(t, to); len(described.Tables) != 1 {
		t.Errorf("loaded %+v", described.Tables)
	}
}

// A load that leaves out a default refuses rows that need it, and does not give them NULL.
func TestForeignRowsWithoutTheirDefault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, "CREATE TABLE t (a); INSERT INTO t VALUES (1); "+
		"ALTER TABLE t ADD COLUMN b DEFAULT 0xFFFFFFFFFFFFFFFF")
	d, _ := dumped(t, from)
	if err := loadAs(t, to, d, engine.Foreign); snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("got %v", err)
	}
	d.WithPrograms = true
	if err := loadAs(t, to, d, engine.Foreign); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A check that computes much longer values than the rows stops the load.
func TestForeignChecksOfLongValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, "CREATE TABLE t (a CHECK (length(a"+strings.Repeat(" || a", 8)+") > 0)); "+
		"INSERT INTO t VALUES (hex(zeroblob(4000000)))")
	d, _ := dumped(t, from)
	if err := loadAs(t, filepath.Join(dir, "to.db"), d, engine.Foreign); snap.CodeOf(err) != snap.CodeCorrupt {
		t.Errorf("got %v", err)
	}
}

// A foreign dump without a description is refused with a hint.
func TestForeignWithoutDescription(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, "CREATE TABLE t (a)")
	d, _ := dumped(t, from)
	d.Info.Schema = nil
	err := loadAs(t, filepath.Join(dir, "to.db"), d, engine.Foreign)
	var e *snap.Error
	if !errors.As(err, &e) || e.Code != snap.CodeInvalid || !strings.Contains(e.Hint, "rebuild it") {
		t.Errorf("got %v", err)
	}
}

// A snapshot of the user's own organization is loaded completely, after the check of its statements.
func TestOursIsComplete(t *testing.T) {
	t.Parallel()
	for name, script := range kindsOfFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
			makeDB(t, from, script)
			d, _ := dumped(t, from)
			if err := loadAs(t, to, d, engine.Ours); err != nil {
				t.Fatal(err)
			}
			if got, want := contents(t, to), contents(t, from); !reflect.DeepEqual(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}
