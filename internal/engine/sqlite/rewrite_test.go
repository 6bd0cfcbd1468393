package sqlite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// rewritten masks a dump and loads the result to a path.
func rewritten(t testing.TB, d engine.Dump, p engine.Plan, to string) error {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Rewrite(t.Context(), d, p, &b, engine.Options{Jobs: 2, TempDir: t.TempDir()})
	if err != nil {
		return err
	}
	return load(t, to, dumpOf(b.Bytes(), info))
}

func reversed(v string) (string, bool) {
	runes := []rune(v)
	slices.Reverse(runes)
	return "-" + string(runes), false
}

// Masking a sample changes only the masked columns: in each table, the first text column that is not
// a key.
func TestSamplesMasked(t *testing.T) {
	t.Parallel()
	for name, path := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := dumped(t, path)
			to := filepath.Join(t.TempDir(), "masked.db")
			plan, masked := keepAll(t, d), maskable(t, path)
			for table, column := range masked {
				plan.Tables[[2]string{"", table}].Columns[column] = reversed
			}
			if err := rewritten(t, d, plan, to); err != nil {
				t.Fatal(err)
			}
			if len(masked) < 3 {
				t.Errorf("only %v are masked", masked)
			}
			for _, table := range d.Info.Tables {
				sameButMasked(t, path, to, table, masked[table.Name])
			}
		})
	}
}

// sameButMasked compares a table with its masked copy, value by value.
func sameButMasked(t *testing.T, path, copied string, table engine.Table, masked string) {
	t.Helper()
	before, after := rowsOf(t, path, table), rowsOf(t, copied, table)
	if len(before) != len(after) {
		t.Errorf("%s: %d rows, want %d", table.Name, len(after), len(before))
		return
	}
	for i := range before {
		for c, column := range table.Columns {
			want := before[i][c]
			if text, ok := want.(string); ok && column.Name == masked {
				want, _ = reversed(text)
			}
			if !reflect.DeepEqual(after[i][c], want) {
				t.Fatalf("%s.%s of row %d: %v, want %v", table.Name, column.Name, i, after[i][c], want)
			}
		}
	}
}

func rowsOf(t *testing.T, path string, table engine.Table) (all [][]any) {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names []string
	for _, c := range table.Columns {
		names = append(names, quote(c.Name))
	}
	rows, err := db.Query("SELECT " + strings.Join(names, ", ") + " FROM " + quote(table.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		values := make([]any, len(names))
		to := make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		all = append(all, values)
	}
	return all
}

// maskable returns, for each table that has one, a text column that is not part of a key.
func maskable(t *testing.T, path string) map[string]string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	g, err := graph(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i, table := range g.Tables {
		names, err := texts(t.Context(), db,
			"SELECT name FROM pragma_table_xinfo(?) WHERE pk = 0 AND hidden = 0 AND (type LIKE '%CHAR%' OR type LIKE "+
				"'TEXT')",
			table.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range g.Keys {
			if key.Child == i || key.Parent == i {
				names = slices.DeleteFunc(names, func(n string) bool {
					return slices.Contains(key.Columns, quote(n)) && key.Child == i ||
						slices.Contains(key.ParentColumns, quote(n)) &&
							key.Parent == i
				})
			}
		}
		if len(names) > 0 {
			all[table.Name] = names[0]
		}
	}
	return all
}

// samples returns every SQLite sample database.
func samples(t *testing.T) map[string]string {
	t.Helper()
	dir := servertest.Samples(t)
	all := map[string]string{"chinook": filepath.Join(dir, "chinook", "Chinook_Sqlite.sqlite")}
	for name, script := range map[string]string{"north wind ☃": "northwind-sqlite/create.sql",
		"chinook's script": "chinook/Chinook_Sqlite.sql"} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(script)))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = filepath.Join(t.TempDir(), name+".db")
		makeDB(t, all[name], "BEGIN;"+strings.TrimPrefix(string(text), "\ufeff")+";COMMIT")
	}
	return all
}

// No original value survives if an index disagrees with its table, or if a constraint ignores
// conflicts.
func TestNothingSlipsPastTheMasks(t *testing.T) {
	t.Parallel()
	const rows = "INSERT INTO c VALUES (1, 'top-secret-1'), (2, 'top-secret-2'), (3, 'top-secret-3');"
	constant := func(string) (string, bool) { return "x", false }
	for name, c := range map[string]struct {
		script string
		mask   engine.Mask
		code   snap.Code
	}{
		"an index without the row": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT UNIQUE);" + rows + orphan,
			reversed,
			snap.CodeCorrupt},
		"unique, or ignored": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT UNIQUE ON CONFLICT IGNORE);" + rows,
			constant, snap.CodeInvalid},
		"unique, or replaced": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT UNIQUE ON CONFLICT REPLACE);" + rows,
			constant, snap.CodeInvalid},
		"a unique index": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" + rows +
			"CREATE UNIQUE INDEX i ON c (v);", constant, snap.CodeInvalid},
		"indexes of every kind": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" + rows +
			"CREATE INDEX i ON c (v); CREATE INDEX j ON c (lower(v)); CREATE INDEX k ON c (id) WHERE v > 'a'; " +
			"CREATE UNIQUE INDEX l ON c (id, v);", reversed, ""},
		"a generated column": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT, g TEXT AS (v || '!') STORED); " +
			"INSERT INTO c (v) VALUES ('top-secret-1'); CREATE INDEX i ON c (g);", reversed, ""},
		"a key": {"CREATE TABLE c (id INT, v TEXT, PRIMARY KEY (v, id)) WITHOUT ROWID;" + rows,
			reversed, ""},
		"rows deleted before": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" + rows +
			"DELETE FROM c WHERE id > 1;", reversed, ""},
		"statistics": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" + rows +
			"CREATE INDEX i ON c (v); ANALYZE;", reversed, ""},
		"words in an index of texts": {"CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" + rows +
			"CREATE VIRTUAL TABLE \"f_ %\" USING\n \"FTS5\" (v, content = c, content_rowid = id); INSERT INTO \"f_ " +
			"%\" (\"f_ %\") VALUES ('rebuild');", reversed, ""},
		"a log that is still there": {"PRAGMA journal_mode = WAL; CREATE TABLE c (id INTEGER PRIMARY KEY, v TEXT);" +
			rows,
			reversed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
			makeDB(t, from, c.script)
			d := unchecked(t, from)
			plan := keepAll(t, d)
			plan.Tables[[2]string{"", "c"}].Columns["v"] = c.mask
			if err := rewritten(t, d, plan, to); snap.CodeOf(err) != c.code {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if c.code != "" {
				return
			}
			if raw, err := os.ReadFile(to); err != nil || bytes.Contains(raw, []byte("secret")) {
				t.Errorf("an original value is in the file (%v)", err)
			}
			if got, want := schemaOf(t, to), schemaOf(t, from); !reflect.DeepEqual(got, want) {
				t.Errorf("the schema is %q, was %q", got, want)
			}
		})
	}
}

// unchecked returns a dump of a database that may be damaged. A build would refuse such a database.
func unchecked(t *testing.T, path string) engine.Dump {
	t.Helper()
	var b bytes.Buffer
	info, err := (&scratch{path: path, o: engine.Options{Jobs: 1}}).dump(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info)
}

// orphan gives an index an entry without a row, as in a damaged file. It uses the tree of the same
// index from a table with one more row.
const orphan = `CREATE TABLE d (id INTEGER PRIMARY KEY, v TEXT UNIQUE); INSERT INTO d SELECT * FROM c; INSERT INTO d
	VALUES (4, 'top-secret-4');
	PRAGMA writable_schema = ON;
	UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_d_1')
		WHERE name = 'sqlite_autoindex_c_1';
	DELETE FROM sqlite_schema WHERE tbl_name = 'd'; PRAGMA writable_schema = RESET;`

func schemaOf(t *testing.T, path string) []string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all, err := texts(t.Context(), db, "SELECT type || name || coalesce(sql, '') FROM sqlite_schema ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The file that Inspect unpacked is masked and then removed. A dump without a checksum is unpacked
// again.
func TestRewriteTakesWhatInspectLeft(t *testing.T) {
	t.Parallel()
	for sum, opened := range map[string]int{"": 2, "abc": 1} {
		dir := t.TempDir()
		from := filepath.Join(dir, "from.db")
		makeDB(t, from, odd)
		d, _ := dumped(t, from)
		inner, opens := d.Open, 0
		plan := keepAll(t, d)
		d.SHA256, d.Open = sum, func() (io.ReadCloser, error) { opens++; return inner() }
		work := t.TempDir()
		o := engine.Options{Jobs: 2, TempDir: work}
		if _, err := (Engine{}).Inspect(t.Context(), d, 1, o); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		info, err := Engine{}.Rewrite(t.Context(), d, plan, &b, o)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "to.db")
		if err := load(t, to, dumpOf(b.Bytes(), info)); err != nil {
			t.Fatal(err)
		}
		if got, want := contents(t, to), contents(t, from); opens != opened || !reflect.DeepEqual(got, want) {
			t.Errorf("unpacked %d times, want %d; got %q, want %q", opens, opened, got, want)
		}
		onlyFiles(t, work)
	}
}

// Masks that break a foreign key are refused, even if an earlier check of the rules passed. A
// foreign key can omit the columns that it refers to, or write them in different case.
func TestMasksThatBreakForeignKeys(t *testing.T) {
	t.Parallel()
	for _, refers := range []string{"a", `"A" (CODE)`} {
		path := filepath.Join(t.TempDir(), "a.db")
		makeDB(t, path, `CREATE TABLE a (note TEXT, code TEXT PRIMARY KEY);
			CREATE TABLE b (id INTEGER PRIMARY KEY, code TEXT REFERENCES `+refers+`, note TEXT);
			INSERT INTO a (code) VALUES ('x'), ('y'); INSERT INTO b VALUES (1, 'x', 'n'), (2, 'gone', 'n')`)
		d, _ := dumped(t, path)
		for columns, want := range map[string]bool{"b.note": true, "a.note": true, "b.code": false, "a.code": false,
			"a.code b.code": true} {
			plan := keepAll(t, d)
			for column := range strings.FieldsSeq(columns) {
				plan.Tables[[2]string{"", column[:1]}].Columns[column[2:]] = reversed
			}
			err := rewritten(t, d, plan, filepath.Join(t.TempDir(), "to.db"))
			if want && err != nil || !want && (snap.CodeOf(err) != snap.CodeInvalid ||
				!strings.Contains(err.Error(), "break foreign keys: 1 more")) {
				t.Errorf("REFERENCES %s, %s: %v", refers, columns, err)
			}
		}
	}
}

// Real numbers stay real numbers if a mask replaces letters and digits, however large or small the
// numbers are.
func TestRealNumbers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, `CREATE TABLE a (v NUMERIC);
		INSERT INTO a VALUES (1234567.5), (-99999999.25), (0.00001), (1e21), (-1e300), (5e-324)`)
	d, _ := dumped(t, from)
	plan := keepAll(t, d)
	plan.Tables[[2]string{"", "a"}].Columns["v"] = func(v string) (string, bool) {
		return strings.Map(func(c rune) rune {
			switch {
			case c >= '0' && c <= '9':
				return '7'
			case c >= 'a' && c <= 'z':
				return 'x'
			}
			return c
		}, v), false
	}
	if err := rewritten(t, d, plan, to); err != nil {
		t.Fatal(err)
	}
	for _, row := range rowsOf(t, to, d.Info.Tables[0]) {
		if _, ok := row[0].(float64); !ok {
			t.Errorf("%T %v", row[0], row[0])
		}
	}
}

// A mask that violates a check is refused, also if another column is masked in two steps.
func TestMasksThatViolateChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, "CREATE TABLE a (code TEXT UNIQUE, v TEXT CHECK (v <> 'x')); INSERT INTO a VALUES ('b', 'c')")
	d, _ := dumped(t, from)
	plan := keepAll(t, d)
	a := plan.Tables[[2]string{"", "a"}]
	a.Columns["code"], a.Permuted = reversed, []string{"code"}
	a.Columns["v"] = func(string) (string, bool) { return "x", false }
	plan.Tables[[2]string{"", "a"}] = a
	err := rewritten(t, d, plan, filepath.Join(dir, "to.db"))
	var hint *snap.Error
	if !errors.As(err, &hint) || hint.Code != snap.CodeInvalid || !strings.Contains(hint.Detail, "CHECK") ||
		strings.Contains(hint.Hint, "hash") {
		t.Errorf("%v", err)
	}
}

// A full disk or a cancellation is not reported as an index or a definition that cannot be masked.
func TestInterruptionsOfMasking(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.db")
	makeDB(t, path, `CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT);
		WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000)
			INSERT INTO docs (body) SELECT hex(randomblob(8)) FROM c;
		CREATE VIRTUAL TABLE f USING fts5(body, content='docs', content_rowid='id');`)
	db, err := open(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	ctx, cancel := context.WithCancel(t.Context())
	if err := rewriteSchema(ctx, tx, func(_, name string, sql []byte) {
		copy(sql, "create")
		if name == "f" { // the second definition
			cancel()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
	if err := execute(t.Context(), tx, "PRAGMA max_page_count = 1"); err != nil { // no further page
		t.Fatal(err)
	}
	if err := failure(path, rebuildSearch(t.Context(), tx)); snap.CodeOf(err) != snap.CodeStorageFull {
		t.Errorf("on a full disk: %v", err)
	}
}
