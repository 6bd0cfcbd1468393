package sqlite

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap/internal/schema"
)

// This schema, which the tests of descriptions use, has every kind of table that descriptions
// support.
const describedTables = `
CREATE TABLE plain (id INTEGER PRIMARY KEY, a VARCHAR(20) NOT NULL DEFAULT 'x''y', b DECIMAL(10,-5), c, ` +
	`d double precision DEFAULT -1.5E3, "e f" TEXT COLLATE nocase);
CREATE TABLE auto (id integer PRIMARY KEY ASC ON CONFLICT REPLACE AUTOINCREMENT, ` +
	`made TEXT DEFAULT CURRENT_TIMESTAMP, word DEFAULT 'hello', blob BLOB DEFAULT X'00ff', flag BOOLEAN DEFAULT TRUE);
CREATE TABLE [a "b"] ('one' INT, ` + "`two`" + ` TEXT, PRIMARY KEY (two COLLATE NOCASE DESC, one)) WITHOUT ROWID;
CREATE TABLE s (i INT PRIMARY KEY, j INTEGER NOT NULL ON CONFLICT IGNORE UNIQUE
	ON CONFLICT FAIL, r REAL, t TEXT, b BLOB, a ANY, CONSTRAINT positive CHECK (R > 0 AND t IN ('a', 'b'))) STRICT,
	WITHOUT ROWID;
CREATE TABLE notalias (id INTEGER PRIMARY KEY DESC, v INT(8));
CREATE TABLE alias (id INTEGER, v, PRIMARY KEY (id DESC), UNIQUE (V, id));
CREATE TABLE child (id INTEGER PRIMARY KEY, p INT CONSTRAINT fk REFERENCES plain ON DELETE CASCADE ON UPDATE
	SET NULL MATCH FULL DEFERRABLE INITIALLY DEFERRED, q INT,
	r INT REFERENCES auto (id) NOT DEFERRABLE, CONSTRAINT u UNIQUE (p, q), ` +
	`FOREIGN KEY (q, "r") REFERENCES "a ""b""" (one, two) ON DELETE ` +
	`SET DEFAULT CHECK (length(id) > 0)) /* a comment; */ -- another
;
CREATE TABLE odd (z DEFAULT word, a "my text (x)", b [INTEGER] PRIMARY KEY, c TEXT GENERATED);
CREATE UNIQUE INDEX "i 1" ON plain ("e f" COLLATE BINARY DESC, A);
CREATE INDEX i2 ON child (q);
CREATE VIRTUAL TABLE f USING fts5(title, "the body" UNINDEXED, ` +
	`tokenize = "porter unicode61 remove_diacritics 2 tokenchars '-_'", prefix='2 3', detail=column);
CREATE VIRTUAL TABLE ext USING fts5(a, content='plain', content_rowid='id');
CREATE VIRTUAL TABLE tree USING rtree(id, x0, x1, +label TEXT);
INSERT INTO auto (id) VALUES (7);
`

// Every described object can be recreated from its description, and is then the same for SQLite and
// for a second description.
func TestDescriptionsAreComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, describedTables)
	described := descriptionOf(t, from)
	if len(described.Programs) > 0 || len(described.Tables) != 11 || len(described.Sequences) != 1 ||
		described.Sequences[0].Last != "7" {
		t.Fatalf("described %d tables, sequences %v, programs %v", len(described.Tables), described.Sequences,
			described.Programs)
	}
	made := []string{""}
	for _, table := range described.Tables {
		text, err := createTable(table)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, text)
		for _, index := range table.Indexes {
			made = append(made, createIndex(table.Name.Name, index))
		}
	}
	makeDB(t, to, strings.Join(append(made, "INSERT INTO auto (id) VALUES (7)"), ";\n"))
	if again := descriptionOf(t, to); !reflect.DeepEqual(again, described) {
		a, _ := json.MarshalIndent(again, "", " ")
		b, _ := json.MarshalIndent(described, "", " ")
		t.Errorf("described again:\n%s\nfirst:\n%s", a, b)
	}
	if got, want := pragmas(t, to), pragmas(t, from); !reflect.DeepEqual(got, want) {
		t.Errorf("SQLite says\n%s\nof the original\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func descriptionOf(t *testing.T, path string) *schema.Schema {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	described, err := describe(t.Context(), db)
	if err == nil {
		err = described.Check(schema.SQLite)
	}
	if err != nil {
		t.Fatal(err)
	}
	return described
}

// pragmas returns SQLite's own description of the tables, their columns, indexes and foreign keys.
func pragmas(t *testing.T, path string) []string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []string
	for _, query := range []string{
		"SELECT name || type || ncol || wr || strict FROM pragma_table_list ORDER BY 1",
		`SELECT t.name || ': ' || c.name || ' ' || CASE t.name WHEN 'odd' THEN '' ` +
			`ELSE upper(c.type) END || c."notnull" || ifnull(CASE WHEN c.name <> 'z' ` +
			`THEN replace(trim(c.dflt_value, '()'), ' ', '') END, 'none') || c.pk || c.hidden ` +
			`FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c ORDER BY t.name, c.cid`,
		`SELECT t.name || ': ' || i."unique" || i.origin || i.partial || ifnull(c.name, '') || c.desc || c.coll |` +
			`| c.key FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_xinfo(i.name) AS c ` +
			`ORDER BY 1`,
		`SELECT t.name || ': ' || f."table" || f."from" || ifnull(f."to", '') || f.on_update || f.on_delete ` +
			`FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f ORDER BY 1`,
	} {
		all = append(all, queryTexts(t, db, query)...)
	}
	return all
}

func queryTexts(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	all, err := texts(t.Context(), db, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// Everything with code is listed as a program and left out.
func TestProgramsAreNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "programs.db")
	makeDB(t, path, `
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g AS (a || '!'), h INT
	AS (id * 2) STORED UNIQUE, r DEFAULT (randomblob(3)), k TEXT,
	CHECK (a NOT IN ("x")), CONSTRAINT big CHECK (zeroblob(9) > a), CHECK (g <> ''), CHECK (rowid > 0));
CREATE INDEX e ON t (lower(a)); CREATE INDEX p ON t (a) WHERE id > 3; CREATE INDEX n ON t (h);
	CREATE INDEX plain ON t (A DESC);
CREATE VIEW v AS SELECT a FROM t; CREATE TRIGGER tr AFTER INSERT ON t BEGIN DELETE FROM t; END;
CREATE VIRTUAL TABLE c USING fts5(x, content=''); CREATE VIRTUAL TABLE s USING dbstat;
	CREATE VIRTUAL TABLE w USING fts5vocab('c', 'row'); CREATE VIRTUAL TABLE ofg USING fts5(a, g, content=t);
	CREATE VIRTUAL TABLE ofv USING fts5(a, content=v);`)
	d := descriptionOf(t, path)
	var got []string
	for _, p := range d.Programs {
		got = append(got, strings.TrimSpace(p.Kind+" "+p.Name.Name+" "+p.On))
	}
	slices.Sort(got)
	want := []string{
		"check constraint big t", "check constraint unnamed t", "check constraint unnamed t",
		"check constraint unnamed t",
		"default r t",
		"expression index e t", "expression index n t", "generated column g t", "generated column h t",
		"partial index p t",
		"trigger tr t", "unique constraint unnamed t", "view v", "virtual table c", "virtual table ofg",
		"virtual table ofv", "virtual table s", "virtual table w",
	}
	if !slices.Equal(got, want) {
		t.Errorf("programs\n%q\nwant\n%q", got, want)
	}
	if len(d.Tables) != 1 || len(d.Tables[0].Checks) != 0 || len(d.Tables[0].Indexes) != 1 ||
		d.Tables[0].Indexes[0].Columns[0].Name != "a" {
		t.Errorf("described %+v", d.Tables)
	}
}

// An entry of a schema must be exactly one statement of its kind and name.
func TestStatementsAreChecked(t *testing.T) {
	t.Parallel()
	trigger := entry{kind: "trigger", name: "x", table: "t"}
	index := entry{kind: "index", name: "x", table: "t"}
	table := entry{kind: "table", name: "x", table: "x"}
	view := entry{kind: "view", name: "x", table: "x"}
	for text, e := range map[string]entry{
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; DELETE FROM t; END": trigger,
		`CREATE TRIGGER "x" AFTER INSERT ON t WHEN new.a = ';' BEGIN SELECT '; END; x'; END -- ;`:    trigger,
		`CREATE UNIQUE INDEX [x] ON "t" (a /* ; */)`:                                                 index,
		`CREATE TABLE 'x' (a, "b;c" DEFAULT '--')`:                                                   table,
		"CREATE VIRTUAL TABLE x USING fts5(a)":                                                       table,
		"CREATE VIEW x AS SELECT 1":                                                                  view,
	} {
		if e.sql = text; e.check() != nil {
			t.Errorf("%s is refused", text)
		}
	}
	for text, e := range map[string]entry{
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END; ATTACH 'a' AS b":           trigger,
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END/**/;":                       trigger,
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END BEGIN ATTACH 'a' AS b; END": trigger,
		"CREATE TRIGGER x AFTER INSERT ON t; ATTACH 'a' AS b; SELECT 1; END":                trigger,
		"CREATE TEMP TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END":                       trigger,
		"CREATE TRIGGER temp.x AFTER INSERT ON t BEGIN SELECT 1; END":                       trigger,
		"CREATE TRIGGER y AFTER INSERT ON t BEGIN SELECT 1; END":                            trigger,
		"CREATE TRIGGER X AFTER INSERT ON t BEGIN SELECT 1; END":                            trigger,
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1":                                 trigger,
		"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END /*":                         trigger,
		"CREATE INDEX x ON t (a); ATTACH 'a' AS b":                                          index,
		"CREATE INDEX x ON t (a) --\n; ATTACH 'a' AS b":                                     index,
		"CREATE INDEX x ON t (a) /* */;/* */ATTACH 'a' AS b":                                index,
		"CREATE INDEX x ON t (a)\x00; ATTACH 'a' AS b":                                      index,
		"CREATE INDEX x ON t ('a'';')';ATTACH 'a' AS b":                                     index,
		"CREATE INDEX x ON t ([a]);ATTACH ']' AS b":                                         index,
		"CREATE INDEX x ON t (`a```);ATTACH '`' AS b":                                       index,
		"CREATE INDEX x ON t (\"a\"\");\");ATTACH '' AS b":                                  index,
		"CREATE INDEX x ON u (a)":                                                           index,
		"CREATE INDEX main.x ON t (a)":                                                      index,
		"CREATE INDEX IF NOT EXISTS x ON t (a)":                                             index,
		"CREATE INDEX х ON t (a)":                                                           index,
		"ATTACH 'a' AS b":                                                                   index,
		"/* CREATE INDEX x ON t (a) */ ATTACH 'a' AS b":                                     index,
		"SELECT load_extension('a')":                                                        view,
		"EXPLAIN CREATE VIEW x AS SELECT 1":                                                 view,
		"CREATE VIEW x AS SELECT ?":                                                         view,
		"CREATE VIEW x AS SELECT 1;":                                                        view,
		"CREATE VIRTUAL TABLE x":                                                            table,
		"CREATE UNIQUE TABLE x (a)":                                                         table,
		"":                                                                                  table,
		"CREATE VIEW x AS SELECT '" + strings.Repeat("x", maxStatement) + "'":               view,
	} {
		if e.sql = text; e.check() == nil {
			t.Errorf("%.100q is accepted", text)
		}
	}
}
