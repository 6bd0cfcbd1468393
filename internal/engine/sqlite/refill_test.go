package sqlite

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
)

// TestRefill replaces the rows of some tables without running triggers, and changes nothing if a
// foreign key would not hold.
func TestRefill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDatabase(t, from, chooseFrom+"INSERT INTO log VALUES (2); INSERT INTO customer VALUES (3, 'c', 1); "+
		"INSERT INTO orders (customer, log) VALUES (3, 2); CREATE TABLE more (a)")
	makeDatabase(t, to,
		chooseFrom+"CREATE TRIGGER failing BEFORE INSERT ON customer BEGIN SELECT raise(ABORT, 'no'); END")
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), URLOf(from), &b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		Size: int64(b.Len()), Info: info, Trust: engine.Foreign}
	const objects = "SELECT coalesce(sql, name) FROM sqlite_schema"
	before := sortedColumn(t, to, objects)
	o := engine.Options{TempDir: dir, Jobs: 1}
	for only, want := range map[string]struct {
		code snap.Code
		says string
	}{
		"orders": {snap.CodeConflict, "foreign key orders to "},
		"more":   {snap.CodeNotFound, "no table more"},
		"words":  {snap.CodeInvalid, "virtual table words"},
		"none":   {snap.CodeUsage, "matches no table"},
	} {
		_, err := Engine{}.Refill(t.Context(), URLOf(to), d, []string{only}, o)
		if snap.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", only, err)
		}
	}
	var rest bytes.Buffer
	info, err = Engine{}.Dump(t.Context(), URLOf(from), &rest,
		engine.Options{Jobs: 1, Choice: engine.Choice{ExcludeData: []string{"customer"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Engine{}.Refill(t.Context(), URLOf(to), dumpOf(rest.Bytes(), info), []string{"customer"}, o)
	if snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("without rows: %v", err)
	}
	if n := sortedColumn(t, to, "SELECT id FROM orders"); !slices.Equal(n, []string{"1", "2"}) {
		t.Errorf("orders has %v", n)
	}
	tables, err := Engine{}.Refill(t.Context(), URLOf(to), d, []string{"orders", "cust*", "log"}, o)
	if err != nil || len(tables) != 3 {
		t.Fatal(tables, err)
	}
	for _, query := range []string{"SELECT id || coalesce(log, 'x') || customer FROM orders", "SELECT a FROM log",
		"SELECT id || name FROM customer"} {
		if got, want := sortedColumn(t, to, query), sortedColumn(t, from, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	if after := sortedColumn(t, to, objects); !slices.Equal(after, before) {
		t.Errorf("the definitions are %v, want %v", after, before)
	}
	for i := range d.Info.Schema.Tables { // which SQLite does not have
		d.Info.Schema.Tables[i].PartitionOf = &schema.PartitionOf{Table: schema.Name{Name: "log"}}
	}
	if tables, err := (Engine{}).Refill(t.Context(), URLOf(to), d, []string{"log"}, o); err != nil || len(tables) != 1 {
		t.Errorf("filled %v, want only log; %v", tables, err)
	}
}

// refilled replaces the rows of one table of a database with those of another database.
func refilled(t *testing.T, from, to, only string) error {
	t.Helper()
	d, _ := dumped(t, from)
	_, err := Engine{}.Refill(t.Context(), URLOf(to), d, []string{only}, engine.Options{TempDir: t.TempDir(), Jobs: 1})
	return err
}

// A load of some tables keeps the row numbers, which other tables may refer to.
func TestRefillKeepsRowids(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
	const schema = `CREATE TABLE t1 (a); CREATE TABLE t2 (a TEXT PRIMARY KEY); CREATE TABLE t3 (rowid, _rowid_, a);
		CREATE TABLE t4 (a INTEGER PRIMARY KEY, b); CREATE TABLE t5 (a PRIMARY KEY) WITHOUT ROWID;
		CREATE TABLE t6 (rowid, oid, _rowid_, a); CREATE TABLE t7 (a INTEGER PRIMARY KEY DESC);`
	makeDatabase(t, from, schema+`INSERT INTO t1 (rowid, a) VALUES (7, 'x'), (-2, 'y');
		INSERT INTO t2 (rowid, a) VALUES (7, 'x'); INSERT INTO t3 (oid, rowid, a) VALUES (7, 1, 'x');
		INSERT INTO t4 VALUES (7, 'x'); INSERT INTO t5 VALUES ('x'); INSERT INTO t6 VALUES (1, 2, 3, 'x');
		INSERT INTO t7 (rowid, a) VALUES (7, 3)`)
	makeDatabase(t, to, schema+"INSERT INTO t1 VALUES ('z')")
	if err := refilled(t, from, to, "t*"); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"SELECT rowid || a FROM t1", "SELECT rowid || a FROM t2",
		"SELECT oid || rowid || a FROM t3", "SELECT a || b FROM t4", "SELECT a FROM t5", "SELECT oid || a FROM t6",
		"SELECT rowid || a FROM t7"} {
		if got, want := sortedColumn(t, to, query), sortedColumn(t, from, query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

// Full-text indexes that triggers keep up to date contain the words of the new rows.
func TestRefillRebuildsSearch(t *testing.T) {
	t.Parallel()
	const triggers = `
		CREATE TRIGGER ins AFTER INSERT ON docs BEGIN
			INSERT INTO f (rowid, body) VALUES (NEW.id, NEW.body); END;
		CREATE TRIGGER del AFTER DELETE ON docs BEGIN
			INSERT INTO f (f, rowid, body) VALUES ('delete', OLD.id, OLD.body); END;
		CREATE TRIGGER upd AFTER UPDATE ON docs BEGIN
			INSERT INTO f (f, rowid, body) VALUES ('delete', OLD.id, OLD.body);
			INSERT INTO f (rowid, body) VALUES (NEW.id, NEW.body); END;`
	for name, search := range map[string]string{
		"a table": "CREATE VIRTUAL TABLE f USING fts5(body, content='docs', content_rowid='id');" + triggers,
		"spelled otherwise": `CREATE VIRTUAL TABLE "F" USING FTS5 (body, Content = [DOCS], content_rowid = "id");` +
			triggers,
		"without triggers": "CREATE VIRTUAL TABLE f USING fts5(body, content=docs, content_rowid=id); " +
			"INSERT INTO f (f) VALUES ('rebuild');",
		"a view": "CREATE VIEW v AS SELECT id, body FROM docs; " +
			"CREATE VIRTUAL TABLE f USING fts5(body, content='v', content_rowid='id');" + triggers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
			// An index of another table is not touched, so it does not matter that it cannot be rebuilt.
			schema := "CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT);" + search +
				"CREATE VIRTUAL TABLE other USING fts5(docs, content='');"
			makeDatabase(t, from, schema+"INSERT INTO docs VALUES (1, 'new words'), (3, 'more');")
			makeDatabase(t, to, schema+"INSERT INTO docs VALUES (1, 'old words'), (2, 'outdated');")
			if err := refilled(t, from, to, "docs"); err != nil {
				t.Fatal(err)
			}
			for word, want := range map[string][]string{"old": nil, "outdated": nil, "new": {"1"}, "more": {"3"}} {
				got := sortedColumn(t, to, "SELECT rowid FROM f WHERE f MATCH '"+word+"'")
				if !slices.Equal(got, want) {
					t.Errorf("%s is in %v, want %v", word, got, want)
				}
			}
			makeDatabase(t, to, "INSERT INTO f (f, rank) VALUES ('integrity-check', 1)")
		})
	}
}

// A table is refused if its triggers keep a virtual table up to date that cannot be rebuilt.
func TestRefillRefusesStaleVirtualTables(t *testing.T) {
	t.Parallel()
	const isNamed = "virtual table f "
	for name, c := range map[string]struct{ search, want string }{
		"an r-tree": {"CREATE VIRTUAL TABLE f USING rtree(id, x0, x1); CREATE TRIGGER ins AFTER INSERT ON docs BEGIN " +
			"INSERT OR REPLACE INTO F VALUES (NEW.id, 1, 2); END;", isNamed},
		"its own content": {"CREATE VIRTUAL TABLE f USING fts5(body); CREATE TRIGGER upd AFTER UPDATE ON docs BEGIN " +
			"UPDATE OR IGNORE \"f\" SET body = NEW.body WHERE rowid = NEW.id; END;", isNamed},
		"no content": {"CREATE VIRTUAL TABLE f USING fts5(body, content='', contentless_delete=1); " +
			"CREATE TRIGGER del AFTER DELETE ON docs BEGIN DELETE FROM [f] WHERE rowid = OLD.id; END;", isNamed},
		"an index that fails": {"CREATE VIRTUAL TABLE f USING fts5(body, missing, content='docs');", isNamed},
		"an unknown module": {"PRAGMA writable_schema = on; INSERT INTO sqlite_schema VALUES ('table', 'f', 'f', 0, " +
			"'CREATE VIRTUAL TABLE f USING fts4(body, content=\"docs\")'); PRAGMA writable_schema = off;", isNamed},
		"only read": {"CREATE VIRTUAL TABLE f USING rtree(id, x0, x1); CREATE TRIGGER ins BEFORE INSERT ON docs " +
			"BEGIN SELECT raise(ABORT, 'no') FROM f WHERE id = NEW.id; END;", ""},
		"another table": {"CREATE VIRTUAL TABLE f USING rtree(id, x0, x1); CREATE TABLE b (id); CREATE TRIGGER ins " +
			"AFTER INSERT ON b BEGIN INSERT INTO f VALUES (NEW.id, 1, 2); END;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := filepath.Join(t.TempDir(), "from.db"), filepath.Join(t.TempDir(), "to.db")
			const docs = "CREATE TABLE docs (id INTEGER PRIMARY KEY, body TEXT);"
			makeDatabase(t, from, docs+"INSERT INTO docs VALUES (2, 'b')")
			makeDatabase(t, to, docs+"INSERT INTO docs VALUES (1, 'a');"+c.search)
			rows := []string{"2"}
			err := refilled(t, from, to, "docs")
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" {
				rows = []string{"1"}
				if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
			}
			if got := sortedColumn(t, to, "SELECT id FROM docs"); !slices.Equal(got, rows) {
				t.Errorf("docs has %v, want %v", got, rows)
			}
		})
	}
}
