package mysql

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// as returns a dump with another degree of trust.
func as(d engine.Dump, trust engine.Trust, programs bool) engine.Dump {
	d.Trust, d.WithPrograms = trust, programs
	return d
}

// A dump from somebody else is loaded as data: every row of every table, and no program. With
// programs, or from the user's own organization, it is loaded completely, and its programs belong to
// an account that can only use their database.
func TestForeignDumps(t *testing.T) {
	t.Parallel()
	onEach(t, testForeignDumps)
}

func testForeignDumps(t *testing.T, server string) {
	from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
	mariadb := strings.HasPrefix(server, "mariadb")
	script(t, from, oddFor(server)+";"+everything[:strings.Index(everything, "create trigger")]+
		"create trigger lower before insert on t for each row set new.d = 1;"+
		"CREATE SQL SECURITY INVOKER VIEW v3 AS SELECT * FROM parent; CREATE FUNCTION mine() RETURNS INT "+
		"DETERMINISTIC SQL SECURITY INVOKER RETURN 1;"+
		"INSERT INTO parts4 VALUES (1), (2); INSERT INTO owners VALUES (5); INSERT INTO t1 (id, v, j, tx, d) VALUES "+
		"(5, 'aä''\\\\', '{\"a\": 1}', 'x\\ny', 1);")
	if mariadb {
		script(t, from, "CREATE TABLE ve (a INT) WITH SYSTEM VERSIONING; INSERT INTO ve VALUES (1), (2); UPDATE ve "+
			"SET a = 3 WHERE a = 1; DELETE FROM ve WHERE a = 2")
	}
	d, b := dumped(t, from)
	d.Info.Schema = throughJSON(t, d.Info.Schema)
	if err := load(t, to, as(d, engine.Foreign, false), false); err != nil {
		t.Fatal(err)
	}
	sameData(t, from, to, d.Info.Schema)
	for _, query := range []string{
		"SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = database()",
		"SELECT count(*) FROM information_schema.views WHERE table_schema = database()",
		"SELECT count(*) FROM information_schema.routines WHERE routine_schema = database()",
		"SELECT count(*) FROM information_schema.events WHERE event_schema = database()",
	} {
		if got := sorted(t, to, query)[0]; got != "0" {
			t.Errorf("%s: %s", query, got)
		}
	}
	old := as(dumpOf(b, d.Info), engine.Foreign, false)
	old.Info.Schema = nil
	if err := load(t, to, old, false); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), "no description") {
		t.Errorf("without a description: %v", err)
	}
	for _, whole := range []engine.Dump{as(d, engine.Foreign, true), as(d, engine.Ours, false),
		as(old, engine.Ours, false)} {
		if err := load(t, to, whole, false); err != nil {
			t.Fatal(err)
		}
		x, y := invoker(contents(t, from)), contents(t, to)
		if x != y {
			t.Errorf("the copy differs: %s", difference(x, y))
		}
		owners := sorted(t, to,
			`SELECT DISTINCT definer FROM (SELECT definer FROM information_schema.views WHERE table_schema = database()
			UNION ALL SELECT definer FROM information_schema.triggers WHERE trigger_schema = database()
			UNION ALL SELECT definer FROM information_schema.routines WHERE routine_schema = database() UNION ALL
				SELECT definer FROM information_schema.events WHERE event_schema = database()) d`)
		if len(owners) != 1 || !strings.HasPrefix(owners[0], "snapcli_") {
			t.Errorf("the programs belong to %q", owners)
		}
		if got := sorted(t, to, "SELECT count(*) FROM v3")[0]; got != "1" || sorted(t, to, "SELECT mine()")[0] != "1" {
			t.Errorf("the view shows %s rows", got)
		}
	}
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	_, at := openURL(t, to)
	if left := sorted(t, to, "SELECT user FROM mysql.user u WHERE user LIKE 'snapcli\\_%' AND EXISTS (SELECT 1 FROM "+
		"mysql.db d WHERE d.user = u.user AND replace(d.db, '\\\\', '') = '"+at.name+"')"); len(left) > 0 {
		t.Errorf("accounts are left: %q", left)
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Packages are replaced too, if the dump is the user's own or from the user's organization,
// although older versions of MariaDB support packages only in Oracle mode.
func TestPackagesAreReplaced(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mariadb-11.8"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, "SET sql_mode = ORACLE;\nDELIMITER $$\nCREATE PACKAGE pk AS FUNCTION f RETURN INT; END "+
				"$$\nCREATE PACKAGE BODY pk AS FUNCTION f RETURN INT AS BEGIN RETURN 1; END; END $$\nDELIMITER ;\n")
			d, _ := dumped(t, from)
			for _, trust := range []engine.Trust{engine.Ours, engine.Ours, engine.Mine, engine.Mine} {
				if err := load(t, to, as(d, trust, false), true); err != nil {
					t.Fatalf("with trust %d: %v", trust, err)
				}
				const all = "SELECT concat(routine_type, routine_name, routine_definition) FROM " +
					"information_schema.routines WHERE routine_schema = database()"
				if a, b := sorted(t, from, all), sorted(t, to, all); !slices.Equal(a, b) || len(a) != 2 {
					t.Errorf("with trust %d: %q, want %q", trust, b, a)
				}
			}
		})
	}
}

// invoker returns contents as a checked load creates them: with generated headers,
// and with all programs running with their definer's rights.
func invoker(text string) string {
	text = ofTriggers.ReplaceAllString(text, "CREATE TRIGGER `$1` BEFORE INSERT ON `$2` FOR EACH ROW")
	return strings.ReplaceAll(strings.ReplaceAll(text, "SQL SECURITY INVOKER VIEW", "SQL SECURITY DEFINER VIEW"),
		"    SQL SECURITY INVOKER\n", "")
}

var ofTriggers = regexp.MustCompile("(?i)CREATE TRIGGER `?(\\w+)`? BEFORE INSERT ON `?(\\w+)`? FOR EACH ROW")

// sameData compares the rows of two databases, in the tables and columns of a
// description.
func sameData(t *testing.T, from, to string, d *schema.Schema) {
	t.Helper()
	for _, table := range d.Tables {
		var columns []string
		for _, c := range table.Columns {
			if !c.Computed {
				columns = append(columns, "hex(CAST("+quote(c.Name)+" AS BINARY))")
			}
		}
		query := "SELECT concat_ws('|', '', " + strings.Join(columns, ", ") + ") FROM " + quote(table.Name.Name)
		if x, y := sorted(t, from, query), sorted(t, to, query); !slices.Equal(x, y) {
			t.Errorf("%s: %.300q and %.300q", table.Name.Name, x, y)
		}
	}
}

// state returns everything on a server that a foreign snapshot must not change: other databases,
// accounts, rights and settings, as a session in the database prod sees them, and the content of
// the destination.
func state(t *testing.T, root *sql.Conn, to string) string {
	t.Helper()
	all := []string{}
	for _, query := range []string{
		"SELECT schema_name FROM information_schema.schemata",
		"SELECT table_schema, table_name, table_type, coalesce(create_time, '') FROM " +
			"information_schema.tables WHERE table_schema IN ('mysql', 'sys') OR table_schema LIKE 'snapcli%'",
		"SELECT user, host FROM mysql.user", "SELECT user, host, db FROM mysql.db",
		"SELECT event_schema, event_name FROM information_schema.events", "SELECT name, dl FROM mysql.func",
	} {
		lines := answer(t, root, query)
		slices.Sort(lines)
		all = append(all, lines...)
	}
	for _, line := range answer(t, root, "SHOW GLOBAL VARIABLES") {
		if !strings.HasPrefix(line, "gtid_") && !strings.HasPrefix(line, "timestamp") {
			all = append(all, line)
		}
	}
	return strings.Join(append(all, contentsOf(t, root, "prod"), contents(t, to)), "\n")
}

// hostileDump returns a dump with the given structure and rows.
func hostileDump(t testing.TB, s structure, rows string, d schema.Schema, tables ...engine.Table) engine.Dump {
	t.Helper()
	line, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf([]byte(head+string(line)+"\n"+rows), engine.Info{Schema: &d, Tables: tables})
}

// A hostile dump changes only the database that it is loaded into, whatever its content and degree of
// trust. Most such dumps are refused.
func TestHostileDumps(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mysql-8.0"} { // the other servers parse SQL like these two
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			testHostileDumps(t, server)
		})
	}
}

func testHostileDumps(t *testing.T, server string) {
	url := servertest.OwnMySQL(t, server, "") // a separate server, because all of it is compared
	db, place := openURL(t, url)
	for _, statement := range []string{"CREATE DATABASE prod", "CREATE DATABASE loaded"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	prod := place.named("prod").url()
	script(t, prod, "CREATE TABLE users (id INT PRIMARY KEY, password TEXT); INSERT INTO users VALUES (1, 's3cret'); "+
		"CREATE VIEW v AS SELECT 1 AS a; CREATE PROCEDURE p() SELECT 1")
	to := place.named("loaded").url()
	script(t, to, "CREATE TABLE old (a INT)")
	root := sessionOf(t, prod)
	t.Cleanup(func() { root.Close() })
	before := state(t, root, to)
	restore := func(loaded trust) {
		t.Helper()
		if loaded == checked { // a load of nothing also drops the account of the programs
			if err := load(t, to, emptyDump(t), true); err != nil {
				t.Fatal(err)
			}
		}
		for _, statement := range []string{"DROP DATABASE loaded", "CREATE DATABASE loaded",
			"CREATE TABLE loaded.old (a INT)"} {
			if _, err := root.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	attack := func(name string, d engine.Dump, mayLoad bool) {
		t.Helper()
		for _, trust := range []engine.Dump{as(d, engine.Foreign, false), as(d, engine.Foreign, true),
			as(d, engine.Ours, false)} {
			err := load(t, to, trust, true)
			if err == nil && (trust.Trust == engine.Ours || trust.WithPrograms) && !mayLoad {
				t.Errorf("%s: loaded with trust %d", name, trust.Trust)
			}
			if err == nil {
				if strings.Contains(contents(t, to), "s3cret") {
					t.Errorf("%s: a secret is in the loaded database", name)
				}
				restore(trustOf(trust))
			}
		}
		if after := state(t, root, to); after != before {
			t.Fatalf("%s: the server changed: %s", name, difference(before, after))
		}
	}
	table := definition{Name: "s", SQL: "CREATE TABLE `s` (\n  `a` text\n) ENGINE=InnoDB"}
	known := schema.Schema{Tables: []schema.Table{{Name: schema.Name{Name: "s"},
		Columns: []schema.Column{{Name: "a", Type: schema.Type{Name: "text"}}}}}}
	shape := engine.Table{Name: "s", Columns: []engine.Column{{Name: "a", Type: "text"}}}
	for _, sql := range hostileTables() {
		s := structure{Tables: []definition{{Name: "s", SQL: sql}}}
		attack(sql, hostileDump(t, s, "", known, shape), false)
	}
	for _, row := range hostileRows() {
		d := hostileDump(t, structure{Tables: []definition{table}}, row, known, shape)
		attack(row, d, false)
		if err := load(t, to, as(d, engine.Foreign, false), true); err == nil {
			t.Errorf("%s: the rows are loaded", row)
		}
	}
	for _, p := range hostilePrograms() {
		s := structure{Tables: []definition{table}}
		announced := known
		announced.Programs = []schema.Program{{Kind: strings.ToLower(p.kind), Name: schema.Name{Name: p.Name},
			On: map[bool]string{true: "s"}[p.kind == "TRIGGER"]}}
		switch p.kind {
		case "VIEW":
			s.Views = []definition{p.definition}
		case "TRIGGER":
			s.Triggers = []definition{p.definition}
		case "EVENT":
			s.Events = []definition{p.definition}
		default:
			p.Kind = p.kind
			s.Routines = []definition{p.definition}
		}
		attack(p.SQL, hostileDump(t, s, "", announced, shape), p.mayLoad)
	}
	for name, d := range hostileDescriptions() {
		dump := hostileDump(t, structure{Tables: []definition{table}}, "", d, shape)
		if err := load(t, to, as(dump, engine.Foreign, false), true); err == nil {
			t.Errorf("the description %s is loaded", name)
		}
		if after := state(t, root, to); after != before {
			t.Fatalf("%s: the server changed: %s", name, difference(before, after))
		}
	}
}

func emptyDump(t testing.TB) engine.Dump { return hostileDump(t, structure{}, "", schema.Schema{}) }

func hostileTables() []string {
	return []string{
		"CREATE TABLE `prod`.`s` (a TEXT)", "CREATE TABLE prod.s (a TEXT)",
		"CREATE TABLE /* s */ `prod` . `s` (a TEXT)", "CREATE TABLE `s` (a TEXT); DROP DATABASE prod",
		"CREATE TABLE `s` (a TEXT) SELECT password AS a FROM prod.users",
		"CREATE TABLE `s` (a TEXT) AS TABLE prod.users", "CREATE TABLE `s` LIKE prod.users",
		"CREATE TABLE `s` (LIKE prod.users)",
		"CREATE TABLE `s` (a TEXT) ENGINE=MERGE UNION=(prod.users)",
		"CREATE TABLE `s` (a TEXT) ENGINE=FEDERATED CONNECTION='mysql://root@127.0.0.1/prod/users'",
		"CREATE TABLE `s` (a INT) DATA DIRECTORY='/tmp'",
		"CREATE TABLE `s` (a INT) /*!50100 DATA DIRECTORY='/tmp' */",
		"CREATE TABLE `s` (a INT, FOREIGN KEY (a) REFERENCES prod.users (id))",
		"CREATE TABLE `s` (a INT, FOREIGN KEY (a) REFERENCES prod/*!99999 , */.users (id))",
		"CREATE /*!99999 TABLE `s` (a INT) */ /*!50000 TABLE `prod`.`x` (a INT) */", "/*! DROP DATABASE prod */",
		"CREATE OR REPLACE TABLE prod.users (a INT)", "DROP TABLE prod.users", "CREATE TABLE `s2` (a TEXT)",
		"CREATE TABLE `s` (a TEXT)\x00 ENGINE=InnoDB", "CREATE TABLE `#mysql50#..` (a TEXT)",
		"CREATE TABLE `S` (a TEXT)", "CREATE TABLE `s\u200b` (a TEXT)",
		"CREATE TABLE `" + strings.Repeat("s", 65) + "` (a TEXT)",
		"CREATE TEMPORARY TABLE `s` (a TEXT)", "CREATE DEFINER=root@localhost TABLE `s` (a TEXT) ENGINE=CONNECT " +
			"TABLE_TYPE=CSV FILE_NAME='/etc/passwd'", "DELIMITER //\nCREATE TABLE `s` (a TEXT)//",
		"CREATE TABLE `s` (a TEXT", "CREATE TABLE `s` (a TEXT DEFAULT (load_file('/etc/passwd')))",
		"CREATE TABLE `s` (a TEXT DEFAULT (`load_file`('/etc/passwd')))",
	}
}

func hostileRows() []string {
	const start = "INSERT INTO `s` (`a`) VALUES\n"
	rows := []string{
		"INSERT INTO `prod`.`users` (`a`) VALUES\n('x');\n", "INSERT INTO `users` (`a`) VALUES\n('x');\n",
		"INSERT INTO `s` (`b`) VALUES\n('x');\n", "INSERT INTO `s` () VALUES\n();\n",
		"INSERT INTO `s` (`a`,`a`) VALUES\n('x','y');\n",
		"INSERT INTO `s` (`a`) SELECT password FROM prod.users;\n", "REPLACE INTO `s` (`a`) VALUES\n('x');\n",
		"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE s;\n",
	}
	for _, value := range []string{
		"LOAD_FILE('/etc/passwd')", "(SELECT password FROM prod.users)", "@@datadir", "@a", "user()", "a", "`a`",
		"DEFAULT", "1+1", "--1", "- 1", "'a' 'b'", "'a''b'", "'a'||'b'", "x'00'", "X'00'", "b'1'", "0b1", "N'x'",
		"_utf8mb4'x'", "_binary 'x' COLLATE binary",
		"_nocharset X'00'", "_latin1 X'0'", "_latin1 X'zz'", "_latin1 x'00'", "TRUE", "CURRENT_USER", "NULL/**/",
		"NULL -- ", "1#", "'x' /*! , 1 */", "'a\\'", "'a\x00b'", "'a\\qb'", "'a\\%'", "0x", "0x0", "0xZZ", "1.",
		".5", "1e", "1e+", "'x'),('y'); DROP DATABASE prod; -- ", "''; DROP DATABASE prod", "NULL,NULL", "",
		"\"x\"",
	} {
		rows = append(rows, start+"("+value+");\n")
	}
	return append(rows, start+"('x'),\n", start+"('x'); \n", start+
		"('x')\nON DUPLICATE KEY UPDATE a = load_file('x');\n", start+"('x');DROP TABLE s;\n")
}

type hostileProgram struct {
	kind string
	definition
	mayLoad bool // the load may succeed: the server stops the attack when it runs
}

func hostilePrograms() []hostileProgram {
	var all []hostileProgram
	add := func(kind string, mayLoad bool, list ...string) {
		for _, sql := range list {
			all = append(all, hostileProgram{kind, definition{Name: "x", SQL: sql}, mayLoad})
		}
	}
	add("VIEW", false, "CREATE VIEW `prod`.`x` AS SELECT 1", "CREATE OR REPLACE VIEW prod.v AS SELECT 2 AS a",
		"CREATE VIEW `x` AS SELECT * FROM prod.users", "CREATE VIEW `x` AS SELECT * FROM `prod` . `users`",
		"CREATE VIEW `x` AS SELECT * FROM prod/**/.users",
		"CREATE VIEW `x` AS SELECT * FROM /*! prod. */ users", "CREATE VIEW `x` AS SELECT * FROM mysql.user",
		"CREATE VIEW x AS SELECT 1; DROP DATABASE prod", "CREATE VIEW y AS SELECT 1",
		"CREATE /*! VIEW prod.x AS SELECT 1 */ VIEW x AS SELECT 1", "CREATE TABLE x (a INT)")
	add("VIEW", false, "CREATE VIEW x AS SELECT load_file('/etc/passwd') AS a",
		"CREATE VIEW x AS SELECT `Load_File` /**/ ('/etc/passwd') AS a",
		"CREATE VIEW x AS SELECT /*!50000 load_file*/ ('/etc/passwd') AS a")
	add("TRIGGER", false, "CREATE TRIGGER prod.x BEFORE INSERT ON prod.users FOR EACH ROW SET @a = 1",
		"CREATE TRIGGER x BEFORE INSERT ON prod.users FOR EACH ROW SET @a = 1",
		"CREATE TRIGGER x BEFORE INSERT ON s FOR EACH ROW DELETE FROM prod.users",
		"CREATE TRIGGER x BEFORE INSERT ON other FOR EACH ROW SET @a = 1",
		"CREATE TRIGGER x BEFORE INSERT ON s FOR EACH ROW SET @a = 1; DROP DATABASE prod",
		"CREATE TRIGGER x BEFORE INSERT ON s FOR EACH ROW",
		"create trigger x before insert on s for each row insert into `prod`.users values (2, 'x')",
		"CREATE TRIGGER x BEFORE INSERT ON s FOR EACH ROW not sql at all")
	add("EVENT", false, "CREATE EVENT prod.x ON SCHEDULE EVERY 1 SECOND DO DELETE FROM users",
		"CREATE EVENT x ON SCHEDULE EVERY 1 SECOND DO DELETE FROM prod.users",
		"CREATE EVENT x ON SCHEDULE EVERY 1 DAY DO SET @a = 1; DROP DATABASE prod", "CREATE USER x IDENTIFIED BY 'x'",
		"CREATE EVENT x DO DROP DATABASE prod", "CREATE EVENT x ON SCHEDULE EVERY 1 DAY DO not sql at all")
	add("FUNCTION", false, "CREATE FUNCTION x RETURNS STRING SONAME 'lib_mysqludf_sys.so'",
		"CREATE FUNCTION prod.x() RETURNS INT DETERMINISTIC RETURN 1",
		"CREATE FUNCTION x() RETURNS INT DETERMINISTIC RETURN 1; DROP DATABASE prod",
		"CREATE FUNCTION `x`/*!() RETURNS INT DETERMINISTIC RETURN 1 */; GRANT ALL ON *.* TO x",
		"SET GLOBAL general_log = 1")
	add("PROCEDURE", false, "CREATE PROCEDURE prod.x() SELECT 1", "CREATE PROCEDURE x() SELECT 1; DROP DATABASE prod",
		"CREATE PROCEDURE x() SELECT 'not closed", "CREATE PROCEDURE x() /* not closed", "DROP PROCEDURE prod.p",
		"CALL prod.p()")
	add("PROCEDURE", true, "CREATE PROCEDURE x() SQL SECURITY INVOKER DROP DATABASE prod",
		"CREATE DEFINER=root@localhost PROCEDURE x() DROP DATABASE prod",
		"CREATE PROCEDURE x() SELECT 1 INTO OUTFILE '/tmp/snapcli-hostile'")
	add("PACKAGE", false, "CREATE PACKAGE prod.x AS PROCEDURE a(); END",
		"CREATE PACKAGE x AS PROCEDURE a(); END; DROP "+
			"DATABASE prod", "CREATE PACKAGE x SQL SECURITY INVOKER AS PROCEDURE a(); END", "CREATE PACKAGE y AS END")
	add("PACKAGE BODY", false, "CREATE PACKAGE BODY prod.x AS PROCEDURE a() AS BEGIN DROP DATABASE prod; END; END",
		"CREATE PACKAGE BODY x AS PROCEDURE a() AS BEGIN NULL; END; BEGIN DROP DATABASE prod; END; DROP DATABASE prod")
	add("FUNCTION", false, "CREATE AGGREGATE FUNCTION x RETURNS STRING SONAME 'lib_mysqludf_sys.so'")
	add("SEQUENCE", false, "CREATE SEQUENCE prod.x", "CREATE SEQUENCE x; DROP DATABASE prod")
	add("SERVER", false, "CREATE SERVER x FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')")
	all = append(all, hostileProgram{"VIEW", definition{Name: "x", SQL: "CREATE VIEW x AS SELECT 1",
		Mode: "'; DROP DATABASE prod; -- "}, false})
	all = append(all, hostileProgram{"EVENT", definition{Name: "x",
		SQL: "CREATE EVENT x ON SCHEDULE EVERY 1 DAY DO SET @a = 1", TimeZone: "', GLOBAL general_log = '1"}, false})
	return all
}

func hostileDescriptions() map[string]schema.Schema {
	all := map[string]schema.Schema{}
	add := func(name string, change func(t *schema.Table)) {
		table := schema.Table{Name: schema.Name{Name: "s"}, Columns: []schema.Column{{Name: "a",
			Type: schema.Type{Name: "int"}}}, Options: map[string]string{}}
		change(&table)
		all[name] = schema.Schema{Tables: []schema.Table{table}}
	}
	add("schema", func(t *schema.Table) { t.Name.Schema = "prod" })
	add("file name", func(t *schema.Table) { t.Name.Name = "#mysql50#../prod/users" })
	add("long name", func(t *schema.Table) { t.Name.Name = strings.Repeat("x", 65) })
	add("zero", func(t *schema.Table) { t.Columns[0].Name = "a\x00" })
	add("type", func(t *schema.Table) { t.Columns[0].Type.Name = "int) SELECT 1 --" })
	add("length", func(t *schema.Table) { t.Columns[0].Type.Args = []string{"1) SELECT 1 --"} })
	add("charset", func(t *schema.Table) { t.Columns[0].Charset = "utf8mb4) SELECT 1" })
	add("collation", func(t *schema.Table) { t.Columns[0].Collation = &schema.Name{Name: "x) SELECT"} })
	add("srid", func(t *schema.Table) { t.Columns[0].SRID = "0) SELECT" })
	add("call", func(t *schema.Table) {
		t.Columns[0].Default = &schema.Expr{Call: "load_file",
			Args: []schema.Expr{{Literal: &schema.Literal{Kind: "string", Value: "/etc/passwd"}}}}
	})
	add("literal", func(t *schema.Table) {
		t.Columns[0].Default = &schema.Expr{Literal: &schema.Literal{Kind: "number", Value: "1) SELECT"}}
	})
	add("on update", func(t *schema.Table) {
		t.Columns[0].OnUpdate = &schema.Expr{Call: "abs", Args: []schema.Expr{{Column: "a"}}}
	})
	add("engine", func(t *schema.Table) { t.Options["engine"] = "FEDERATED" })
	add("option", func(t *schema.Table) { t.Options["data directory"] = "/tmp" })
	add("option's value", func(t *schema.Table) { t.Options["row_format"] = "x DATA DIRECTORY='/tmp'" })
	add("foreign key", func(t *schema.Table) {
		t.ForeignKeys = []schema.ForeignKey{{Name: "f", Columns: []string{"a"},
			To: schema.Name{Schema: "prod", Name: "users"}, ToColumns: []string{"id"}}}
	})
	add("action", func(t *schema.Table) {
		t.ForeignKeys = []schema.ForeignKey{{Name: "f", Columns: []string{"a"}, To: schema.Name{Name: "s"},
			ToColumns: []string{"a"}, OnDelete: "CASCADE) SELECT"}}
	})
	add("method", func(t *schema.Table) {
		t.Indexes = []schema.Index{{Name: "i", Method: "hash) SELECT", Columns: []schema.KeyColumn{{Name: "a"}}}}
	})
	add("parser", func(t *schema.Table) {
		t.Indexes = []schema.Index{{Name: "i", Parser: "evil", Columns: []schema.KeyColumn{{Name: "a"}}}}
	})
	add("partitions", func(t *schema.Table) { t.Partitions = &schema.Partitions{Method: "range) SELECT"} })
	add("partition's bound", func(t *schema.Table) {
		t.Partitions = &schema.Partitions{Method: "range", Columns: []schema.KeyColumn{{Name: "a"}},
			Parts: []schema.Part{{Name: "p", Bound: schema.Bound{To: []schema.Expr{{Call: "load_file"}}}}}}
	})
	add("no column", func(t *schema.Table) { t.Columns[0].Computed = true })
	all["sequence"] = schema.Schema{Sequences: []schema.Sequence{{Name: schema.Name{Name: "q"},
		Start: "1; DROP DATABASE prod"}}}
	return all
}

// FuzzLiterals checks that every accepted row is rewritten with one literal for each column, and
// that rewriting the result does not change it.
func FuzzLiterals(f *testing.F) {
	for _, row := range hostileRows() {
		f.Add([]byte(row[strings.Index(row, "\n")+1:]))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		form := rowForm{columns: []string{"a", "b"}}
		out, _, err := form.row(nil, line)
		if err != nil {
			return
		}
		again, _, err := form.row(nil, out)
		if err != nil || !bytes.Equal(out, again) {
			t.Fatalf("%q became %q and %q, %v", line, out, again, err)
		}
		if fields, err := fieldsOf(out, nil); err != nil || len(fields) != 2 {
			t.Fatalf("%q has the values %q, %v", out, fields, err)
		}
	})
}
