package sqlite

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"reflect"
	"testing"

	"snap/internal/engine"
)

// Every kind of SQLite file is restored unchanged, also after a masking that keeps everything:
// encodings, layouts, journals, virtual tables, and values that are not valid text.
func TestEveryKindOfFile(t *testing.T) {
	t.Parallel()
	for name, script := range kindsOfFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to, kept := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db"), filepath.Join(dir, "kept.db")
			makeDB(t, from, script)
			d, _ := dumped(t, from)
			if err := load(t, to, d); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			info, err := Engine{}.Rewrite(t.Context(), d, keepAll(t, d), &b, engine.Options{Jobs: 2, TempDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if err := load(t, kept, dumpOf(b.Bytes(), info)); err != nil {
				t.Fatal(err)
			}
			want := append(contents(t, from), settings(t, from)...)
			for _, copied := range []string{to, kept} {
				if got := append(contents(t, copied), settings(t, copied)...); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: got %q\nwant %q", filepath.Base(copied), got, want)
				}
			}
		})
	}
}

// keepAll returns a plan that keeps every column.
func keepAll(t *testing.T, d engine.Dump) engine.Plan {
	t.Helper()
	c, err := Engine{}.Inspect(t.Context(), d, 1, engine.Options{Jobs: 1, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p := engine.Plan{Tables: map[[2]string]engine.TablePlan{}}
	for _, table := range c.Tables {
		plan := engine.TablePlan{Columns: map[string]engine.Mask{}}
		for _, column := range table.Columns {
			plan.Columns[column.Name] = nil
		}
		p.Tables[[2]string{"", table.Name}] = plan
	}
	return p
}

// settings returns the settings stored in the file itself.
func settings(t *testing.T, path string) []string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []string
	for _, pragma := range []string{"encoding", "page_size", "auto_vacuum", "application_id", "user_version",
		"journal_mode"} {
		var v sql.NullString
		if err := db.QueryRow("PRAGMA " + pragma).Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, pragma+" "+v.String)
	}
	return all
}

// kindsOfFiles returns scripts that create every kind of SQLite file.
func kindsOfFiles() map[string]string {
	const some = `CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, b BLOB); INSERT INTO t ` +
		`VALUES (1, 'ünï 漢 😀', x'00ff'), (2, NULL, ''), (-9223372036854775808, '', NULL);`
	return map[string]string{
		"UTF-16le": `PRAGMA encoding = 'UTF-16le';` + some,
		"UTF-16be": `PRAGMA encoding = 'UTF-16be';` + some,
		"auto vacuum": `PRAGMA auto_vacuum = FULL;` + some + `CREATE TABLE u (a); INSERT INTO u ` +
			`VALUES (zeroblob(100000)); DROP TABLE u;`,
		"incremental": `PRAGMA auto_vacuum = INCREMENTAL;` + some + `CREATE TABLE u (a); INSERT INTO u ` +
			`VALUES (zeroblob(100000)); DROP TABLE u; PRAGMA incremental_vacuum(3);`,
		"big pages":   `PRAGMA page_size = 65536;` + some,
		"small pages": `PRAGMA page_size = 512; PRAGMA journal_mode = WAL;` + some,
		"free pages":  some + `CREATE TABLE u (a); INSERT INTO u VALUES (zeroblob(1000000)); DELETE FROM u;`,
		"invalid UTF-8": some +
			`INSERT INTO t VALUES (5, CAST(x'ff80c328' AS TEXT), 'text in a blob column'), ` +
			`(6, CAST(x'610062' AS TEXT), 7);`,
		"names": "CREATE TABLE \"caf\xe9\" (id INTEGER PRIMARY KEY, \"na\xefve\" TEXT); INSERT INTO \"caf\xe9\" " +
			"VALUES (1, 'café');",
		"affinities": `CREATE TABLE a (i INT, t TEXT, r REAL, n NUMERIC, b BLOB, d DATETIME, x); INSERT INTO a ` +
			`VALUES ('12', 12, 12, '1e3', 'x', '2024', 1.5), (9e999, x'00', -9e999, 'no number', 0.1, 7, NULL);`,
		"strict": `CREATE TABLE s (i INT, j INTEGER, r REAL, t TEXT, b BLOB, a ANY) STRICT; INSERT INTO s ` +
			`VALUES (1, 2, 0.1, 'x', x'00', '12'), (NULL, NULL, NULL, NULL, NULL, x'ff');`,
		"without rowid": `CREATE TABLE w (a TEXT, b INT, v, PRIMARY KEY (a, b)) WITHOUT ROWID; INSERT INTO w ` +
			`VALUES ('x', 1, 'y'), ('x', 2, NULL);`,
		"generated": `CREATE TABLE g (a INT, v AS (a * 2) VIRTUAL, s TEXT AS ('s' || a) STORED UNIQUE, ` +
			`CHECK (a > 0)); INSERT INTO g (a) VALUES (1), (2); CREATE INDEX gi ON g (v, a + 1) WHERE a > 1;`,
		"full text 5": `CREATE VIRTUAL TABLE f USING fts5(title, body, tokenize = 'porter'); INSERT INTO f ` +
			`VALUES ('a', 'running quickly'), ('b', 'ran');`,
		"external text": some +
			`CREATE VIRTUAL TABLE f USING fts5(v, content = 't', content_rowid = 'id'); ` +
			`INSERT INTO f (f) VALUES ('rebuild');`,
		"r-tree": `CREATE VIRTUAL TABLE r USING rtree(id, x0, x1, y0, y1); INSERT INTO r ` +
			`VALUES (1, 0, 1, 2, 3), (2, -1, 1, -1, 1);`,
		"views, triggers": some +
			`CREATE VIEW v AS SELECT id, v FROM t; CREATE TRIGGER i INSTEAD OF INSERT ON v BEGIN INSERT INTO t (id) ` +
			`VALUES (new.id); END; CREATE TRIGGER d AFTER DELETE ON t BEGIN SELECT RAISE(ABORT, 'must not fire'); END;`,
		"autoincrement": `CREATE TABLE s (id INTEGER PRIMARY KEY AUTOINCREMENT, v); INSERT INTO s (v) ` +
			`VALUES (1), (2); DELETE FROM s WHERE id = 2; UPDATE sqlite_sequence SET seq = 99;`,
		"numbers": some + `PRAGMA application_id = 252006674; PRAGMA user_version = -5; ANALYZE;`,
		"key cycles": `CREATE TABLE p (id INTEGER PRIMARY KEY, c INT REFERENCES c DEFERRABLE INITIALLY DEFERRED); ` +
			`CREATE TABLE c (id INTEGER PRIMARY KEY, p INT REFERENCES p); INSERT INTO p ` +
			`VALUES (1, 1); INSERT INTO c VALUES (1, 1);`,
	}
}
