package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

// makeDB creates a database at path by running SQL.
func makeDB(t testing.TB, path, text string) {
	t.Helper()
	db, err := open(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA synchronous = OFF;" + text); err != nil {
		t.Fatal(err)
	}
}

// contents returns the schema and every row of every table as text.
func contents(t testing.TB, path string) []string {
	t.Helper()
	db, err := open(path, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []string
	query := func(q string) {
		rows, err := db.Query(q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		defer rows.Close()
		columns, _ := rows.Columns()
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(any)
			}
			if err := rows.Scan(values...); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s:", q)
			for _, v := range values {
				fmt.Fprintf(&b, " %T %v", *v.(*any), *v.(*any))
			}
			all = append(all, b.String())
		}
	}
	query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")
	list, err := tables(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range list {
		query("SELECT * FROM " + quote(table.Name))
	}
	slices.Sort(all)
	return all
}

// dumped returns the dump of a database.
func dumped(t testing.TB, path string) (engine.Dump, []byte) {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), URLOf(path), &b, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info), b.Bytes()
}

func dumpOf(b []byte, info engine.Info) engine.Dump {
	return engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		Size: int64(len(b)), Info: info}
}

// load restores and swaps.
func load(t testing.TB, path string, d engine.Dump) error {
	t.Helper()
	s, err := Engine{}.Restore(t.Context(), URLOf(path), d, engine.Options{Jobs: 1})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), false)
}

// Every SQLite sample database is restored row for row.
func TestSamples(t *testing.T) {
	t.Parallel()
	for name, path := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, _ := dumped(t, path)
			to := filepath.Join(t.TempDir(), "copy of ü?#%.db")
			if err := load(t, to, d); err != nil {
				t.Fatal(err)
			}
			want, got := contents(t, path), contents(t, to)
			if len(want) < 1000 || !reflect.DeepEqual(got, want) {
				t.Errorf("%d lines of content, want %d, equal %v", len(got), len(want), reflect.DeepEqual(got, want))
			}
			info, err := Engine{}.Check(t.Context(), URLOf(to))
			tables := slices.Clone(d.Info.Tables)
			for i := range tables {
				tables[i].Bytes = 0 // a check does not measure them
			}
			if err != nil || !reflect.DeepEqual(info.Tables, tables) || !info.Exists {
				t.Errorf("Check: %+v, %v", info, err)
			}
		})
	}
}

const odd = `
CREATE TABLE "a ""b"" ü" (x, y GENERATED ALWAYS AS (x || '!') STORED, z DEFAULT 1);
INSERT INTO "a ""b"" ü" (rowid, x) VALUES (5, 'five'), (9, NULL), (700, x'00ff');
CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO w VALUES ('k', 1.5), ('l', 9223372036854775807);
CREATE TABLE seq (id INTEGER PRIMARY KEY AUTOINCREMENT, v);
INSERT INTO seq (v) VALUES (1), (2); DELETE FROM seq;
CREATE TABLE s (a INT) STRICT;
CREATE VIRTUAL TABLE f USING fts5(body);
INSERT INTO f VALUES ('the quick brown fox');
CREATE VIEW v AS SELECT count(*) AS n FROM w;
CREATE INDEX i ON w(v) WHERE v > 1;
CREATE TRIGGER t AFTER INSERT ON w BEGIN INSERT INTO seq (v) VALUES (new.v); END;
PRAGMA user_version = 42; PRAGMA application_id = 7;`

func TestOddSchema(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
	makeDB(t, from, odd)
	d, _ := dumped(t, from)
	if err := load(t, to, d); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	db, err := open(to, "ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version, last, rowid int64
	if err := db.QueryRow(`SELECT user_version, (SELECT seq FROM sqlite_sequence), `+
		`(SELECT max(rowid) FROM "a ""b"" ü") FROM pragma_user_version`).Scan(&version, &last,
		&rowid); err != nil || version != 42 || last != 2 || rowid != 700 {
		t.Errorf("user_version %d, sequence %d, rowid %d, %v", version, last, rowid, err)
	}
}

// A dump shows one moment and does not block writers.
func TestDumpDoesNotBlockWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, `PRAGMA journal_mode = WAL; CREATE TABLE a (n INT, pad); CREATE TABLE b (n INT);
		WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) INSERT INTO a
			SELECT n, randomblob(300) FROM c;
		INSERT INTO b SELECT n FROM a;`)
	writer, err := open(from, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	var b bytes.Buffer
	wrote := 0
	w := writerFunc(func(p []byte) (int, error) {
		if b.Len()%(64<<10) == 0 {
			if _, err := writer.Exec("BEGIN; INSERT INTO a (n) VALUES (1); " +
				"INSERT INTO b VALUES (1); COMMIT"); err != nil {
				return 0, err
			}
			wrote++
		}
		return b.Write(p)
	})
	info, err := Engine{}.Dump(t.Context(), URLOf(from), w, engine.Options{Jobs: 1})
	if err != nil || wrote < 5 {
		t.Fatalf("%v; %d writes", err, wrote)
	}
	if n := len(info.Tables); n != 2 || info.Tables[0].Rows != 5000 || info.Tables[1].Rows != 5000 {
		t.Errorf("%d tables: %v", n, info.Tables)
	}
	if err := load(t, filepath.Join(dir, "to.db"), dumpOf(b.Bytes(), info)); err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// A dump does not contain the deleted rows on free pages, and Scrub removes all deleted rows.
func TestNothingDeletedRemains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	makeDB(t, from, `PRAGMA secure_delete = OFF; CREATE TABLE a (v);
		WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000) INSERT INTO a
			SELECT 'top-secret-' || n FROM c;
		DELETE FROM a; INSERT INTO a VALUES ('kept');`)
	d, b := dumped(t, from)
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	before, after := bytes.Count(raw, []byte("top-secret-")), bytes.Count(b, []byte("top-secret-"))
	if before < 100 || after*5 > before {
		t.Errorf("%d secrets in the file, %d in the dump", before, after)
	}
	trunk := int(binary.BigEndian.Uint32(b[32:])) // the first page of the free list
	if trunk == 0 || bytes.Contains(b[(trunk-1)*4096:trunk*4096], []byte("top-secret-")) {
		t.Errorf("page %d, which lists the free pages, has secrets", trunk)
	}
	s, err := Engine{}.Restore(t.Context(), URLOf(filepath.Join(dir, "to.db")), d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	if err := s.Run(t.Context(), "UPDATE a SET v = 'masked'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, err := Path(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = os.ReadFile(path); err != nil || bytes.Contains(raw, []byte("top-secret-")) ||
		bytes.Contains(raw, []byte("kept")) {
		t.Errorf("secrets remain after Scrub (%v)", err)
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"DELETE", "WAL"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db")
			makeDB(t, from, "CREATE TABLE t (a); INSERT INTO t VALUES ('new')")
			makeDB(t, to, "PRAGMA journal_mode = "+mode+"; CREATE TABLE t (a); INSERT INTO t VALUES ('old')")
			d, _ := dumped(t, from)
			user, err := open(to, "rw")
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close()
			tx, err := user.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec("INSERT INTO t VALUES ('more')"); err != nil {
				t.Fatal(err)
			}
			if err := load(t, to, d); snap.CodeOf(err) != snap.CodeConflict {
				t.Fatalf("load into a database in use: %v", err)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			user.Close()
			if got := strings.Join(contents(t, to), "\n"); !strings.Contains(got, "old") ||
				!strings.Contains(got, "more") {
				t.Errorf("after the refusal: %s", got)
			}
			if err := load(t, to, d); err != nil {
				t.Fatal(err)
			}
			if got, want := contents(t, to), contents(t, from); !reflect.DeepEqual(got, want) {
				t.Errorf("got %q", got)
			}
			onlyFiles(t, dir, "from.db", "to.db")
		})
	}
}

// onlyFiles fails the test if dir has other files than these. Empty logs and their
// indexes, which a read-only connection leaves behind, are allowed.
func onlyFiles(t testing.TB, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, _ := e.Info()
		if !slices.Contains(names, strings.TrimSuffix(e.Name(), "-shm")) && (info == nil || info.Size() > 0) {
			t.Errorf("%s is left behind", e.Name())
		}
	}
}

// The write-ahead log of a killed program belongs to the old database and must not be applied to the
// new one.
func TestOldLogIsNotAppliedToTheNewFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	live, to, from := filepath.Join(dir, "live.db"), filepath.Join(dir, "to.db"), filepath.Join(dir, "from.db")
	db, err := open(live, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a); INSERT INTO " +
		"t VALUES ('old')"); err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{"", "-wal"} { // the files as they were at the time of the kill
		b, err := os.ReadFile(live + side)
		if err != nil || side == "-wal" && len(b) == 0 {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		if err := os.WriteFile(to+side, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	makeDB(t, from, "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES ('new')")
	d, _ := dumped(t, from)
	if err := load(t, to, d); err != nil {
		t.Fatal(err)
	}
	if got, want := contents(t, to), contents(t, from); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, junk := filepath.Join(dir, "good.db"), filepath.Join(dir, "junk.db")
	makeDB(t, good, "CREATE TABLE t (a); INSERT INTO t VALUES (1)")
	d, b := dumped(t, good)
	if err := os.WriteFile(junk, []byte(strings.Repeat("this is no database ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	dump := func(url string) error {
		_, err := Engine{}.Dump(context.Background(), url, io.Discard, engine.Options{Jobs: 1})
		return err
	}
	inspect := func(d engine.Dump) error {
		_, err := Engine{}.Inspect(context.Background(), d, 1, engine.Options{Jobs: 1, TempDir: dir})
		return err
	}
	rewrite := func(d engine.Dump) error {
		plan := engine.Plan{Tables: map[[2]string]engine.TablePlan{{"",
			"t"}: {Columns: map[string]engine.Mask{"a": nil}}}}
		_, err := Engine{}.Rewrite(context.Background(), d, plan, io.Discard, engine.Options{Jobs: 1, TempDir: dir})
		return err
	}
	cut, noDatabase := dumpOf(b[:len(b)/2], d.Info), dumpOf([]byte(strings.Repeat("x", 5000)), d.Info)
	wrongRows := d
	wrongRows.Info.Tables = []engine.Table{{Name: "t", Rows: 2}}
	for name, c := range map[string]struct {
		err  error
		code snap.Code
	}{
		"dump of a missing file":      {dump("sqlite://" + dir + "/none.db"), snap.CodeNotFound},
		"dump of a folder":            {dump("sqlite://" + dir), snap.CodeUsage},
		"dump of junk":                {dump("sqlite://" + junk), snap.CodeDatabase},
		"dump of nothing":             {dump("sqlite:"), snap.CodeUsage},
		"load into a missing folder":  {load(t, filepath.Join(dir, "no", "such", "x.db"), d), snap.CodeNotFound},
		"load over another file":      {load(t, junk, d), snap.CodeDatabase},
		"load of a cut dump":          {load(t, good, cut), snap.CodeCorrupt},
		"load of junk":                {load(t, good, noDatabase), snap.CodeCorrupt},
		"load with another row count": {load(t, good, wrongRows), snap.CodeCorrupt},
		"inspection of junk":          {inspect(noDatabase), snap.CodeCorrupt},
		"masking of a cut dump":       {rewrite(cut), snap.CodeCorrupt},
		"masking of junk":             {rewrite(noDatabase), snap.CodeCorrupt},
		"masking other rows":          {rewrite(wrongRows), snap.CodeCorrupt},
		"masking what is whole":       {rewrite(d), ""},
	} {
		if got := snap.CodeOf(c.err); got != c.code {
			t.Errorf("%s: %s (%v), want %s", name, got, c.err, c.code)
		}
	}
	if got := contents(t, good); len(got) != 2 {
		t.Errorf("the database changed: %q", got)
	}
	onlyFiles(t, dir, "good.db", "junk.db")
}

func TestPath(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{"sqlite:///a/b.db": "/a/b.db", "sqlite:/a/b": "/a/b",
		"sqlite:///a/b%20c": "/a/b c", "sqlite:///a/b c?mode=ro": "/a/b c"} {
		if got, err := Path(raw); err != nil || got != want {
			t.Errorf("Path(%q) = %q, %v", raw, got, err)
		}
	}
	if got, err := Path(URLOf("/tmp/ä b?#%.db")); err != nil || got != "/tmp/ä b?#%.db" {
		t.Errorf("URLOf and back: %q, %v", got, err)
	}
}

// A build refuses a damaged database, because a load would refuse its snapshot.
func TestDamagedSourceIsNotBuilt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "source.db")
	makeDB(t, path, checkedSchema)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	refused := 0
	for round := range 40 {
		wrong := slices.Clone(text)
		for range r.IntN(3) {
			wrong[100+r.IntN(len(wrong)-100)] ^= byte(1 << r.IntN(8))
		}
		if err := os.WriteFile(path, wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		var dump bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), "sqlite://"+path, &dump, engine.Options{Jobs: 2})
		if err != nil {
			refused++
			continue
		}
		to := "sqlite://" + filepath.Join(t.TempDir(), "to.db")
		s, err := Engine{}.Restore(t.Context(), to, engine.Dump{Info: info, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(dump.Bytes())), nil
		}}, engine.Options{Jobs: 2, TempDir: t.TempDir()})
		if err != nil {
			t.Fatalf("round %d: built, but not loaded: %v", round, err)
		}
		_ = s.Drop(t.Context())
	}
	if refused == 0 || refused == 40 {
		t.Errorf("%d of 40 were refused", refused)
	}
}
