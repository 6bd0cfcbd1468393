package sqlite

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// machine holds the files that a hostile snapshot must not change: a home folder with a database in
// it.
type machine struct{ home, secrets string }

func newMachine(t testing.TB) machine {
	t.Helper()
	m := machine{home: t.TempDir()}
	m.secrets = filepath.Join(m.home, "secrets.db")
	makeDB(t, m.secrets, "CREATE TABLE secret (token TEXT); INSERT INTO secret VALUES ('the-secret-token')")
	if err := os.WriteFile(filepath.Join(m.home, "notes.txt"), []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// state returns every file of the home folder with its content.
func (m machine) state(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// attach returns an attack that writes a file and copies another database's secrets into this one.
func (m machine) attach() string {
	return fmt.Sprintf("ATTACH '%[1]s/.profile' AS x; CREATE TABLE x.\"\nid > %[1]s/owned\n\" (a); ATTACH '%[2]s' AS "+
		"y; UPDATE t SET a = (SELECT token FROM y.secret)", m.home, m.secrets)
}

// hostileDump returns a file as a dump, with the description that this package derives from it.
func hostileDump(t testing.TB, path string) engine.Dump {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return hostileBytes(t, data)
}

func hostileBytes(t testing.TB, data []byte) engine.Dump {
	t.Helper()
	d := dumpOf(data, engine.Info{Schema: &schema.Schema{}})
	path := filepath.Join(t.TempDir(), "raw.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if b, err := newBuilder(file, nil, engine.Options{}); err == nil {
		d.Info.Schema = &b.catalog.Schema
	}
	return d
}

// attack uses a dump in every way, with every degree of trust except the user's own, and returns the
// results of the loads.
func (m machine) attack(t testing.TB, d engine.Dump) (ended []error) {
	t.Helper()
	before := m.state(t)
	for _, use := range []struct {
		trust    engine.Trust
		programs bool
	}{{engine.Foreign, false}, {engine.Foreign, true}, {engine.Ours, false}} {
		d.Trust, d.WithPrograms = use.trust, use.programs
		to := filepath.Join(t.TempDir(), "to.db")
		err := loadAs(t, to, d, use.trust)
		ended = append(ended, err)
		if err == nil {
			noSecret(t, to)
		}
		o := engine.Options{Jobs: 1, TempDir: t.TempDir()}
		c, err := Engine{}.Inspect(t.Context(), d, 3, o)
		if err == nil {
			var b bytes.Buffer
			if _, err := (Engine{}).Rewrite(t.Context(), d, reversing(c), &b, o); err == nil &&
				bytes.Contains(b.Bytes(), []byte("the-secret-token")) {
				t.Error("the masked copy has the secret of another database")
			}
		}
		if after := m.state(t); !reflect.DeepEqual(after, before) {
			t.Fatalf("with trust %d, programs %t, the machine has changed:\n%q\nwas\n%q", use.trust, use.programs,
				after, before)
		}
	}
	return ended
}

func noSecret(t testing.TB, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("the-secret-token")) {
		t.Error("the loaded file has the secret of another database")
	}
}

// reversing returns a plan that masks every column named "a".
func reversing(c engine.Contents) engine.Plan {
	p := engine.Plan{Tables: map[[2]string]engine.TablePlan{}}
	for _, table := range c.Tables {
		plan := engine.TablePlan{Columns: map[string]engine.Mask{}}
		for _, column := range table.Columns {
			plan.Columns[column.Name] = nil
			if column.Name == "a" {
				plan.Columns[column.Name] = reversed
			}
		}
		p.Tables[[2]string{"", table.Name}] = plan
	}
	return p
}

// victim is a valid file that the attacks alter.
const victim = `CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t (a) VALUES ('one'), ('two');
CREATE INDEX i ON t (a); CREATE TRIGGER tr AFTER UPDATE ON t BEGIN SELECT 1; END; CREATE VIEW v AS SELECT a FROM t;`

// alter sets the SQL of schema entries, which SQLite only allows with writable_schema.
func alter(kind, text string) string {
	return fmt.Sprintf("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = %s WHERE type = '%s';",
		schema.QuoteText(schema.SQLite, text), kind)
}

// hostileSchemas are scripts that create hostile files.
func hostileSchemas(m machine) map[string]string {
	a := m.attach()
	all := map[string]string{
		"attach behind an index":  alter("index", "CREATE INDEX i ON t (a); "+a),
		"attach behind a trigger": alter("trigger", "CREATE TRIGGER tr AFTER UPDATE ON t BEGIN SELECT 1; END; "+a),
		"attach behind a view":    alter("view", "CREATE VIEW v AS SELECT 1; "+a),
		"attach behind a table":   alter("table", "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT); "+a),
		"attach alone":            alter("index", a),
		"attach behind a comment": alter("index", "CREATE INDEX i ON t (a) -- ;\n; "+a),
		"attach in a comment":     alter("index", "CREATE INDEX i ON t (a) /*/ "+a+" */; "+a),
		"attach behind a quote":   alter("index", "CREATE INDEX i ON t (a, 'it''s '';'); "+a),
		"attach in a default": alter("table",
			"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT (1)); "+a+"; --)"),
		"attach in a type":  alter("table", `CREATE TABLE t (id INTEGER PRIMARY KEY, a "TEXT); `+a+`; --")`),
		"another name":      alter("index", "CREATE INDEX j ON t (a)"),
		"another kind":      alter("index", "CREATE TRIGGER i AFTER UPDATE ON t BEGIN DELETE FROM t; END"),
		"a look-alike name": alter("index", "CREATE INDEX і ON t (a)"),
		"another database":  alter("index", "CREATE INDEX temp.i ON t (a)"),
		"a query":           alter("table", "CREATE TABLE t AS SELECT load_extension('/tmp/x') AS a, 1 AS id"),
		"two entries of a name": `PRAGMA writable_schema = ON; INSERT INTO sqlite_schema ` +
			`SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema;`,
		"two tables of a tree": `CREATE TABLE u (id INTEGER PRIMARY KEY, a TEXT); PRAGMA writable_schema = ON; ` +
			`UPDATE sqlite_schema SET rootpage = 2;`,
		"a table that is the schema": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET rootpage = 1 WHERE name = 't';`,
		"a table without pages": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET rootpage = 0 WHERE name = 't';`,
		"a table far away": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET rootpage = 4294967295 WHERE name = 't';`,
		"a table before the file": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET rootpage = -1 WHERE name = 't';`,
		"an unknown kind": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET type = 'pragma' WHERE name = 'i';`,
		"names that are numbers": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET name = 5, tbl_name = x'00' WHERE name = 'i';`,
		"NUL": `PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET sql = sql || char(0) || '; ` + strings.ReplaceAll(a, "'", "''") + `' WHERE name = 'i';`,
		"its own sequence": `CREATE TABLE s (id INTEGER PRIMARY KEY AUTOINCREMENT); PRAGMA writable_schema = ON; ` +
			`UPDATE sqlite_schema SET sql = 'CREATE VIEW sqlite_sequence AS SELECT load_extension(1)', type = 'view' ` +
			`WHERE name = 'sqlite_sequence';`,
		"statistics": `ANALYZE; PRAGMA writable_schema = ON; UPDATE sqlite_schema ` +
			`SET sql = 'CREATE TABLE sqlite_stat1(tbl,idx,stat); ` + strings.ReplaceAll(a, "'", "''") + `' ` +
			`WHERE name = 'sqlite_stat1';`,
		"a deep expression": alter("table",
			"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT CHECK ("+strings.Repeat("(", 5000)+"1"+strings.Repeat(")",
				5000)+"))"),
		"many columns": alter("table",
			"CREATE TABLE t (id INTEGER PRIMARY KEY"+strings.Repeat(", a", 100000)+")"),
		"a long statement": alter("view", "CREATE VIEW v AS SELECT '"+strings.Repeat("x", maxStatement)+"'"),
		"functions in views": `CREATE VIEW w AS SELECT load_extension('x'), readfile('` + m.secrets + `'), ` +
			`fts3_tokenizer('x', x'00');`,
		"functions in triggers": `CREATE TRIGGER w AFTER UPDATE ON t BEGIN ` +
			`SELECT load_extension('x'); SELECT writefile('` + m.home + `/x', 'y'); SELECT edit('x'); END;`,
		"pages in triggers": `CREATE TRIGGER w AFTER UPDATE ON t BEGIN UPDATE sqlite_dbpage ` +
			`SET data = zeroblob(4096) WHERE pgno = 1; END;`,
		"generated columns": alter("table",
			"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, g AS (load_extension('x')), h AS "+
				"(randomblob(1000000000)) STORED)"),
		"expressions": `CREATE INDEX ex ON t (hex(zeroblob(length(a)))); ` +
			`CREATE TABLE c (a CHECK (length(zeroblob(1000000000)) > a)); INSERT INTO c VALUES (1);`,
		"a recursive view": `CREATE VIEW r AS WITH RECURSIVE n(i) ` +
			`AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n;`,
		"foreign options": alter("table",
			"CREATE VIRTUAL TABLE t USING fts5(a, content='sqlite_schema', content_rowid='rowid'); "+a),
	}
	for _, module := range []string{"dbstat", "fts5vocab(t, row)", "sqlite_dbpage", "geopoly(a)", "rtree_i32(id, x, y)",
		"rtree(id, x, y)", "fts5(a)", "fts5(a, content='')",
		"fts5(a, content=t)", "fts3(a)", "fts4(a, content='t')", "csv(filename='" + m.secrets +
			"')", "pragma_database_list",
		"json_each", "zipfile('x')", "fts5(a, tokenize='x; " + strings.ReplaceAll(a, "'", "") + "')"} {
		name, _, _ := strings.Cut(module, "'") // the text from the first quote on can depend on the machine
		all["module "+name] = fmt.Sprintf("PRAGMA writable_schema = ON; INSERT INTO sqlite_schema VALUES "+
			"('table', 'z', "+
			"'z', 0, %s);", schema.QuoteText(schema.SQLite, "CREATE VIRTUAL TABLE z USING "+module))
	}
	return all
}

// No schema of a file can change anything on the machine.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	for name := range hostileSchemas(machine{}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			path := filepath.Join(t.TempDir(), "hostile.db")
			makeDB(t, path, victim+hostileSchemas(m)[name])
			ended := m.attack(t, hostileDump(t, path))
			if strings.HasPrefix(name, "attach") && !strings.HasPrefix(name, "attach in a type") && ended[2] == nil {
				t.Error("a snapshot of the user's own organization with two statements in an entry was loaded")
			}
		})
	}
}

// Rules and subsets never run an invalid statement from a file, even if this user made the snapshot.
func TestHostileSchemasOfMine(t *testing.T) {
	t.Parallel()
	for name := range hostileSchemas(machine{}) {
		if !strings.HasPrefix(name, "attach") && !strings.HasPrefix(name, "functions") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			path := filepath.Join(t.TempDir(), "hostile.db")
			makeDB(t, path, victim+hostileSchemas(m)[name])
			before := m.state(t)
			d, o := hostileDump(t, path), engine.Options{Jobs: 1, TempDir: t.TempDir()}
			if c, err := (Engine{}).Inspect(t.Context(), d, 3, o); err == nil {
				_, _ = Engine{}.Rewrite(t.Context(), d, reversing(c), new(bytes.Buffer), o)
			}
			o.Subset = &engine.Subset{Percent: 50}
			var b bytes.Buffer
			_, _ = Engine{}.Dump(t.Context(), URLOf(path), &b, o)
			if after := m.state(t); !reflect.DeepEqual(after, before) ||
				bytes.Contains(b.Bytes(), []byte("the-secret-token")) {
				t.Errorf("the machine has changed: %q, was %q", after, before)
			}
		})
	}
}

// A load with a wrong description of a valid file cannot change anything on the machine.
func TestHostileDescriptions(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	m := newMachine(t)
	path := filepath.Join(t.TempDir(), "from.db")
	makeDB(t, path, victim)
	bad := `x" (a); ` + m.attach() + `; --`
	for name, change := range map[string]func(s *schema.Schema){
		"table name":  func(s *schema.Schema) { s.Tables[0].Name.Name = bad },
		"column name": func(s *schema.Schema) { s.Tables[0].Columns[1].Name = bad },
		"type":        func(s *schema.Schema) { s.Tables[0].Columns[1].Type.Name = "TEXT); " + m.attach() },
		"type of words": func(s *schema.Schema) {
			s.Tables[0].Columns[1].Type.Name = "TEXT DEFAULT a REFERENCES t " +
				"UNIQUE"
		},
		"type argument": func(s *schema.Schema) { s.Tables[0].Columns[1].Type.Args = []string{"1); " + m.attach()} },
		"collation": func(s *schema.Schema) {
			s.Tables[0].Columns[1].Collation = &schema.Name{Name: "NOCASE); " + m.attach()}
		},
		"conflict": func(s *schema.Schema) {
			s.Tables[0].Columns[1].NotNull, s.Tables[0].Columns[1].NotNullConflict = true, bad
		},
		"index name":     func(s *schema.Schema) { s.Tables[0].Indexes[0].Name = bad },
		"index column":   func(s *schema.Schema) { s.Tables[0].Indexes[0].Columns[0].Name = bad },
		"constraint":     func(s *schema.Schema) { s.Tables[0].Keys[0].Name = bad },
		"key conflict":   func(s *schema.Schema) { s.Tables[0].Keys[0].OnConflict = bad },
		"key of nothing": func(s *schema.Schema) { s.Tables[0].Keys[0].Columns = nil },
		"option":         func(s *schema.Schema) { s.Tables[0].Options = map[string]string{bad: bad, strict: bad} },
		"module":         func(s *schema.Schema) { s.Tables[0].Virtual = "fts5(a); " + m.attach() },
		"search":         func(s *schema.Schema) { s.Tables[0].Virtual = fts5 },
		"search option": func(s *schema.Schema) {
			s.Tables[0].Virtual, s.Tables[0].Options = fts5, map[string]string{"tokenize": bad}
		},
		"r-tree": func(s *schema.Schema) { s.Tables[0].Virtual = rtree },
		"r-tree without columns": func(s *schema.Schema) {
			s.Tables = []schema.Table{{Name: schema.Name{Name: "x"}, Virtual: rtree}}
		},
		"function": func(s *schema.Schema) {
			s.Tables[0].Columns[1].Default = &schema.Expr{Call: "load_extension",
				Args: []schema.Expr{{Literal: &schema.Literal{Kind: "string", Value: "x"}}}}
		},
		"number": func(s *schema.Schema) {
			s.Tables[0].Columns[1].Default = &schema.Expr{Literal: &schema.Literal{Kind: "number",
				Value: "1); " + m.attach()}}
		},
		"operator": func(s *schema.Schema) {
			s.Tables[0].Checks = []schema.Check{{Expr: schema.Expr{Op: "; ATTACH", Args: make([]schema.Expr, 2)}}}
		},
		"foreign key": func(s *schema.Schema) {
			s.Tables[0].ForeignKeys = []schema.ForeignKey{{Columns: []string{"a"}, To: schema.Name{Name: bad},
				ToColumns: []string{bad}}}
		},
		"sequence": func(s *schema.Schema) {
			s.Tables[0].Columns[0].Identity = &schema.Identity{}
			s.Sequences = []schema.Sequence{{Name: schema.Name{Schema: "s", Name: bad}, Last: "9e999"}}
		},
		"missing column": func(s *schema.Schema) {
			s.Tables[0].Columns, s.Tables[0].Indexes = s.Tables[0].Columns[:1], nil
		},
		"no columns": func(s *schema.Schema) {
			s.Tables[0].Columns, s.Tables[0].Keys, s.Tables[0].Indexes = nil, nil,
				nil
		},
		"a table of ours": func(s *schema.Schema) { s.Tables[0].Name.Name = "sqlite_schema" },
		"a program": func(s *schema.Schema) {
			s.Programs = append(s.Programs, schema.Program{Kind: "index", Name: schema.Name{Name: bad}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := hostileDump(t, path)
			change(d.Info.Schema)
			m.attack(t, d)
		})
	}
}

// A load of damaged pages cannot change anything on the machine. Pages that refer to wrong pages or
// cells are refused.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	path := filepath.Join(t.TempDir(), "from.db")
	makeDB(t, path,
		`PRAGMA page_size = 512;`+victim+`WITH RECURSIVE n(i)
		AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO t (a)
		SELECT 'a text that is long enough ' || i FROM n;
		CREATE TABLE w (k TEXT PRIMARY KEY, b BLOB) WITHOUT ROWID; INSERT INTO w SELECT a, zeroblob(id * 7)
			FROM t; CREATE VIRTUAL TABLE f USING fts5(a); INSERT INTO f SELECT a FROM t;
		CREATE VIRTUAL TABLE r USING rtree(id, x, y, +l); INSERT INTO r SELECT id, id, id + 1, a FROM t;`)
	sound := hostileDump(t, path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	before := m.state(t)
	try := func(altered []byte) error {
		d := dumpOf(altered, sound.Info)
		return loadAs(t, filepath.Join(t.TempDir(), "to.db"), d, engine.Foreign)
	}
	if err := try(data); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		altered := bytes.Clone(data)
		for range 1 + random.IntN(4) {
			altered[random.IntN(len(altered))] = byte(random.IntN(256))
		}
		_ = try(altered[:len(altered)-random.IntN(2)*random.IntN(len(altered))])
	}
	for name, change := range map[string]func(page []byte, number int){
		"a child that is the page": func(page []byte,
			number int) {
			binary.BigEndian.PutUint32(page[8:], uint32(number))
		},
		"a child that is page 1": func(page []byte, _ int) { binary.BigEndian.PutUint32(page[8:], 1) },
		"a child far away":       func(page []byte, _ int) { binary.BigEndian.PutUint32(page[8:], 1<<31) },
		"many cells":             func(page []byte, _ int) { binary.BigEndian.PutUint16(page[3:], 65535) },
		"cells in the header":    func(page []byte, _ int) { binary.BigEndian.PutUint16(page[12:], 0) },
	} {
		altered, changed := bytes.Clone(data), false
		for number := 2; number <= len(data)/512; number++ {
			if page := altered[(number-1)*512 : number*512]; page[0] == 5 {
				change(page, number)
				changed = true
			}
		}
		if err := try(altered); err == nil || !changed {
			t.Errorf("%s: %v, altered %t", name, err, changed)
		}
	}
	if after := m.state(t); !reflect.DeepEqual(after, before) {
		t.Errorf("the machine has changed: %q", after)
	}
}

// FuzzHostileSchemas assembles statements from pieces of attacks, and uses the file in every way.
func FuzzHostileSchemas(f *testing.F) {
	m := newMachine(f)
	pieces := []string{
		"CREATE", "TABLE", "INDEX", "VIEW", "TRIGGER", "VIRTUAL", "UNIQUE", "TEMP", "t", "i", "tr", "v",
		`"t"`, "[i]", "'v'", "ON t", "(", ")", "a", ",", ";", "; END", "BEGIN",
		"AFTER UPDATE ON t", "SELECT 1", "AS SELECT a FROM t", "USING fts5(a)", "USING rtree(id, x, y)", "--", "\n",
		"/*",
		"*/", "'", "\"", "`", "]", "\x00", m.attach(),
		"CREATE INDEX i ON t (a)", "CREATE TRIGGER tr AFTER UPDATE ON t BEGIN SELECT 1; END",
		"CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)", "CREATE VIEW v AS SELECT 1", "load_extension('x')",
		"CHECK (a > 1)", "DEFAULT 'x'", "GENERATED ALWAYS AS (1)", "REFERENCES t", "WITHOUT ROWID", "STRICT",
		"PRIMARY KEY", "NOT", "NULL", "DEFERRABLE", "CONSTRAINT", "FOREIGN KEY (a)",
		"COLLATE NOCASE", "WHERE a > 1", "é", "\\", "x'00'", "1e5", "EXPLAIN",
	}
	f.Add(byte(0), []byte{38, 20, 37})
	f.Add(byte(1), []byte{39, 20, 37})
	f.Add(byte(2), []byte{40, 20, 37})
	f.Add(byte(0), []byte{0, 2, 9, 21, 37})
	f.Fuzz(func(t *testing.T, which byte, choice []byte) {
		var b strings.Builder
		for _, c := range choice {
			b.WriteString(pieces[int(c)%len(pieces)] + " ")
		}
		kind := []string{"index", "trigger", "table", "view"}[which%4]
		path := filepath.Join(t.TempDir(), "hostile.db")
		makeDB(t, path, victim)
		db, err := open(path, "rw", "writable_schema(on)")
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Exec("UPDATE sqlite_schema SET sql = CAST(? AS TEXT) WHERE type = ?", []byte(b.String()), kind)
		db.Close()
		if err != nil {
			t.Fatal(err)
		}
		m.attack(t, hostileDump(t, path))
	})
}

// FuzzTableDefinition parses statements that SQLite might never have parsed, such as those of a
// file that was changed by hand.
func FuzzTableDefinition(f *testing.F) {
	for _, text := range append(strings.Split(chooseFrom, ";\n"), "CREATE TABLE t (a NOT x)", "CREATE TABLE t (a NOT",
		"CREATE TABLE t (a int REFERENCES t NOT x)", "CREATE TABLE t (a, CONSTRAINT c CONSTRAINT d)") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := tableDefinition(text); err == nil && len(d.Columns) == 0 {
			t.Errorf("%q has no columns", text)
		}
	})
}
