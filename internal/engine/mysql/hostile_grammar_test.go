package mysql

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// siege is a separate server, with a database that no load may reach.
type siege struct {
	server   string
	data     string // the folder of the server's data
	root     *sql.Conn
	to, prod string
	before   string
	tried    int
	loaded   int
}

func newSiege(t *testing.T, server string) *siege {
	t.Helper()
	data := t.TempDir()
	url := servertest.OwnMySQL(t, server, data)
	script(t, url, "CREATE DATABASE prod; CREATE DATABASE loaded; CREATE USER other@localhost; "+
		"CREATE TABLE prod.users (id INT PRIMARY KEY, password TEXT); INSERT INTO prod.users VALUES (1, 's3cret'); "+
		"CREATE PROCEDURE prod.p() DELETE FROM prod.users; SET GLOBAL event_scheduler = ON")
	_, place := openURL(t, url)
	s := &siege{server: server, data: data, to: place.named("loaded").url(), prod: place.named("prod").url()}
	s.root = sessionOf(t, s.prod)
	t.Cleanup(func() { s.root.Close() })
	s.before = s.state(t)
	return s
}

// state returns everything on the server outside of the loaded database.
func (s *siege) state(t *testing.T) string {
	t.Helper()
	var all []string
	for _, query := range []string{
		`SELECT schema_name, default_collation_name FROM information_schema.schemata WHERE schema_name <> 'loaded'
			ORDER BY 1`,
		"SELECT * FROM users", "SHOW CREATE TABLE users", "SHOW CREATE PROCEDURE p",
		`SELECT table_schema, table_name FROM information_schema.tables
			WHERE table_schema IN ('mysql', 'sys', 'prod', 'own') ORDER BY 1, 2`,
		`SELECT * FROM mysql.user WHERE user NOT LIKE 'snapcli\_%' ORDER BY user, host`,
		`SELECT * FROM mysql.db WHERE user NOT LIKE 'snapcli\_%' ORDER BY user, host, db`,
		`SELECT user, db FROM mysql.db WHERE user LIKE 'snapcli\_%' AND db <> 'loaded' AND db NOT LIKE 'snapcli%'`,
		`SELECT grantee, privilege_type FROM information_schema.user_privileges WHERE grantee LIKE '''snapcli\_%'
			AND privilege_type <> 'USAGE'`,
		"SELECT host, db, user, table_name FROM mysql.tables_priv ORDER BY 1, 2, 3, 4",
		"SELECT host, db, user, routine_name FROM mysql.procs_priv WHERE db <> 'loaded' ORDER BY 1, 2, 3, 4",
		"SELECT event_schema, event_name FROM information_schema.events WHERE event_schema <> 'loaded'",
		`SELECT trigger_schema, trigger_name FROM information_schema.triggers
			WHERE trigger_schema NOT IN ('loaded', 'sys')`,
		"SELECT * FROM mysql.func", "SELECT * FROM mysql.plugin", "SELECT * FROM mysql.servers",
	} {
		all = append(all, answer(t, s.root, query)...)
	}
	for _, line := range answer(t, s.root, "SHOW GLOBAL VARIABLES") {
		if !strings.HasPrefix(line, "gtid_") && !strings.HasPrefix(line, "timestamp") {
			all = append(all, line)
		}
	}
	return strings.Join(append(all, s.files(t)...), "\n")
}

// files returns the names of the server's files other than its databases and logs.
func (s *siege) files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(s.data + "/*/*")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(os.TempDir(), filepath.Base(s.owned())+"*"))
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, found...)
	return slices.DeleteFunc(all, func(path string) bool {
		name := filepath.Base(path)
		return strings.HasPrefix(name, "snapcli_") || strings.HasPrefix(name, "undo") || strings.HasPrefix(name, "ib")
	})
}

// owned returns the path of a file that the attacks try to create.
func (s *siege) owned() string {
	return filepath.Join(os.TempDir(), "hostile-"+strings.ReplaceAll(strings.Trim(s.data, "/"), "/", "-"))
}

// drawing generates a random dump whose parts are mostly valid.
type drawing struct {
	*rapid.T
	s       *siege
	hostile int // how many more parts of the description may be invalid
}

func (d *drawing) one(usual ...string) string {
	if d.hostile > 0 && rapid.IntRange(0, 15).Draw(d.T, "here") == 0 {
		d.hostile--
		return d.of(nasty...)
	}
	return d.of(usual...)
}

func (d *drawing) of(all ...string) string { return rapid.SampledFrom(all).Draw(d.T, "text") }

func (d *drawing) maybe(do func()) {
	if rapid.Bool().Draw(d.T, "maybe") {
		do()
	}
}

// nasty are strings that a hostile description may have anywhere.
var nasty = []string{
	"", "a", "s", "prod", "prod`.`users", "a`; DROP DATABASE prod; --", "a'; DROP DATABASE prod; --",
	`\'; DROP USER other; --`, "a\x00b", strings.Repeat("x", 65),
	"#mysql50#../prod/users", "#sql-1", "a ", "é", "a\u202eb", "\xff", "\xbf'", `\`, "/*", "*/",
	"/*! DROP DATABASE prod */", "--", "#", "\n", "DELIMITER //",
	"int) SELECT 1", "text", "varchar", "json", "serial", "1", "-1", "1) SELECT 1", "99999999999999999999", "utf8mb4",
	"gbk", "binary", "utf8mb4_bin", "utf8mb4 COLLATE x",
	"engine", "InnoDB", "MyISAM", "FEDERATED", "CONNECT", "MEMORY", "ARCHIVE", "CSV", "data directory", "/tmp",
	"connection", "union", "row_format", "DYNAMIC", "tablespace",
	"load_file", "sleep", "benchmark", "lower", "now", "=", "AND", "||", ":=", "IS NULL", "string", "number", "bytes",
	"bits", "null", "CASCADE", "CASCADE) SELECT", "btree", "fulltext", "spatial",
	"ngram", "range", "list", "hash", "key", "maxvalue", "table", "generated column", "system versioning",
}

func (d *drawing) typ() schema.Type {
	switch rapid.IntRange(0, 6).Draw(d.T, "type") {
	case 0:
		return schema.Type{Name: d.one("enum", "set"), Labels: []string{d.any(), d.one("label")}}
	case 1:
		return schema.Type{Name: d.one("decimal"), Args: []string{d.one("10"), d.one("2")}, Unsigned: true}
	case 2:
		return schema.Type{Name: d.one("point", "geometry"), Schema: d.one("")}
	case 3:
		return schema.Type{Name: d.one("varchar"), Args: []string{d.one("200")}}
	}
	return schema.Type{Name: d.one("int", "text", "bigint", "datetime", "json", "blob")}
}

// any draws a string that a database may have anywhere, or an invalid string.
func (d *drawing) any() string {
	text := d.of(nasty...)
	if d.hostile == 0 {
		text = strings.Trim(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), ""), " ")
	}
	return text
}

func (d *drawing) expr(depth int, columns ...string) schema.Expr {
	arg := func() schema.Expr { return d.expr(depth-1, columns...) }
	switch form := rapid.IntRange(0, 5).Draw(d.T, "form"); {
	case depth > 0 && form == 0:
		return schema.Expr{Op: d.one("=", "AND", "<", "LIKE"), Args: []schema.Expr{arg(), arg()}}
	case depth > 0 && form == 1:
		return schema.Expr{Call: d.one("lower", "length"), Args: []schema.Expr{arg()}}
	case depth > 0 && form == 2:
		return schema.Expr{Cast: &schema.Type{Name: d.one("signed", "char")}, Args: []schema.Expr{arg()}}
	case form == 3 && len(columns) > 0:
		return schema.Expr{Column: d.one(columns...)}
	case form == 4:
		return schema.Expr{Literal: &schema.Literal{Kind: d.one("number"), Value: d.one("1", "2")}}
	}
	return schema.Expr{Literal: &schema.Literal{Kind: d.one("string"), Value: d.any()}}
}

func (d *drawing) condition(columns ...string) schema.Expr {
	return schema.Expr{Op: d.one("=", "<", "LIKE"), Args: []schema.Expr{d.expr(2, columns...), d.expr(1, columns...)}}
}

func (d *drawing) keys() []schema.KeyColumn { return []schema.KeyColumn{{Name: d.one("id")}} }

func (d *drawing) table(name string) schema.Table {
	t := schema.Table{Name: schema.Name{Schema: d.one(""), Name: d.one(name)}, Comment: d.any(),
		Options: map[string]string{d.one("engine"): d.one("InnoDB", "InnoDB", "MyISAM")}}
	t.Columns = []schema.Column{{Name: d.one("id"), Type: schema.Type{Name: "int"}, NotNull: true},
		{Name: d.one("a"), Type: d.typ(), Comment: d.any()}}
	c := &t.Columns[1]
	d.maybe(func() { e := d.expr(0); c.Default = &e })
	d.maybe(func() { e := d.condition("a"); c.Check = &e })
	d.maybe(func() {
		c.Type = schema.Type{Name: d.one("varchar"), Args: []string{d.one("200")}}
		c.Charset, c.Collation = d.one("utf8mb4"), &schema.Name{Name: d.one("utf8mb4_bin")}
	})
	if c.Type.Name == "point" {
		c.SRID = d.one("", "0")
	}
	d.maybe(func() { t.Keys = []schema.Key{{Primary: true, Columns: d.keys(), Comment: d.one("c")}} })
	d.maybe(func() { t.Checks = []schema.Check{{Name: d.one("k" + name), Expr: d.condition("id", "a")}} })
	d.maybe(func() {
		t.Indexes = []schema.Index{{Name: d.one("i"), Method: d.one("", "btree"), Parser: d.one(""),
			Columns: d.keys(),
			Unique:  true}}
	})
	d.maybe(func() {
		t.ForeignKeys = []schema.ForeignKey{{Name: d.one("f" + name), Columns: []string{d.one("id")},
			OnDelete: d.one("CASCADE"),
			To:       schema.Name{Schema: d.one(""), Name: d.one("s")}, ToColumns: []string{d.one("id")}}}
	})
	if rapid.IntRange(0, 4).Draw(d.T, "divided") == 0 {
		t.Partitions = &schema.Partitions{Method: d.one("range"), Columns: d.keys(), Parts: []schema.Part{{
			Name: d.one("p"), Comment: d.any(), Bound: schema.Bound{To: []schema.Expr{{Column: d.one("maxvalue")}}}}}}
	}
	return t
}

func (d *drawing) description() schema.Schema {
	var s schema.Schema
	s.Tables = append(s.Tables, d.table("s"))
	d.maybe(func() { s.Tables = append(s.Tables, d.table("u")) })
	if strings.HasPrefix(d.s.server, "mariadb") {
		d.maybe(func() {
			s.Sequences = []schema.Sequence{{Name: schema.Name{Name: d.one("q")}, Start: d.one("1"),
				Increment: d.one("1"), Cache: d.one("5"), Type: d.one("", "bigint")}}
		})
	}
	return s
}

// broken changes a string at up to two positions.
func (d *drawing) broken(text string, pieces ...string) string {
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(d.T, "changes") {
		at := rapid.IntRange(0, len(text)).Draw(d.T, "at")
		end := min(len(text), at+rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(d.T, "cut"))
		text = text[:at] + d.of(pieces...) + text[end:]
	}
	return text
}

var sqlPieces = []string{
	"(", ")", "'", `"`, "`", ";", "\\", "\x00", "\n", "/*", "*/", "/*!", "/*!99999 ", "/*M! ", "--", "-- ",
	"#", "//", "\nDELIMITER //\n", "prod.", "`prod`.", "prod/**/.", "; DROP DATABASE prod; -- ",
	" AS ", " BEGIN ", " END", "; ", " DEFINER=root@localhost ", " SQL SECURITY INVOKER ", " OR REPLACE ", "\xbf",
	"\u200b", "é", "@", "DO ", ":=", " IF NOT EXISTS ", "N'", "_gbk", "0x",
}

var tablePieces = append(slices.Clone(sqlPieces), " SELECT password AS a FROM prod.users", " LIKE prod.users",
	" UNION=(prod.users)", " DATA DIRECTORY='/tmp'", " ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='/etc/passwd'",
	" ENGINE=MERGE", " ENGINE=FEDERATED CONNECTION='mysql://root@127.0.0.1/prod/users'",
	", FOREIGN KEY (id) REFERENCES prod.users (id)", " DEFAULT (load_file('/etc/passwd'))",
	" AS (load_file('/etc/passwd'))",
	" TABLESPACE x", " ENCRYPTION='Y'", " WITH SYSTEM VERSIONING", " INDEX DIRECTORY='/tmp'")

// action draws a statement that would reach beyond its database.
func (d *drawing) action() string {
	text := d.of("DELETE FROM prod.users", "INSERT INTO prod.users VALUES (2, 'x')", "DROP DATABASE prod",
		"CREATE TABLE prod.owned (a INT)", "CALL prod.p()", "CREATE USER owned",
		"ALTER USER other@localhost IDENTIFIED BY 'owned'", "GRANT ALL ON *.* TO other@localhost",
		"SET GLOBAL general_log = 1", "SET PERSIST general_log = 1",
		"INSERT INTO mysql.func VALUES ('x', 0, 'x', 'function')",
		"SELECT 1 INTO OUTFILE '"+d.s.owned()+"'", "INSERT INTO s (id, a) SELECT id + 100, password FROM prod.users",
		"UPDATE s SET a = (SELECT password FROM prod.users)", "SET @a = load_file('/etc/passwd')",
		"UPDATE s SET a = load_file('/etc/passwd')",
		"CREATE EVENT prod.owned ON SCHEDULE EVERY 1 SECOND DO DELETE FROM prod.users", "CREATE DATABASE owned",
		"FLUSH TABLES", "INSTALL SONAME 'x'", "SET @a = 1", "DELETE FROM s", "UPDATE users SET password = 'owned'")
	switch rapid.IntRange(0, 5).Draw(d.T, "way") {
	case 0:
		text = strings.ReplaceAll(text, "prod.", d.of("`prod`.", "prod . ", "prod/**/.", "PROD.",
			"/*!prod.*/", "`prod`/*x*/."))
	case 1:
		text = "BEGIN " + text + "; SET @b = 1; END"
	case 2:
		text = "IF 1 THEN " + text + "; END IF"
	case 3:
		text = "BEGIN SET @q = '" + strings.ReplaceAll(text, "'", "''") + "'; PREPARE q FROM @q; EXECUTE q; END"
	case 4:
		text = "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; " + text + "; " + text + "; END"
	}
	return text
}

// program draws one program and adds it to a structure and to the announced programs.
func (d *drawing) program(s *structure, announced *schema.Schema) {
	name := d.of("x", "x", "x", "`x`", "prod.x", "`prod`.`x`", "prod/**/.x", "/*! prod. */x", "X", "`x `", "y")
	p := definition{Name: "x", Mode: d.of("", "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "PIPES_AS_CONCAT",
		"'; DROP DATABASE prod; -- "),
		Charset: d.of("utf8mb4", "gbk", "sjis", "latin1", ""), Collation: d.of("utf8mb4_bin", "gbk_chinese_ci", "x'"),
		TimeZone: d.of("SYSTEM", "+00:00", "', GLOBAL general_log = '1")}
	if rapid.IntRange(0, 3).Draw(d.T, "plain") > 0 {
		p.Mode, p.Charset, p.Collation, p.TimeZone = "", "utf8mb4", "utf8mb4_bin", "+00:00"
	}
	head := "CREATE " + d.of("", "", "", "DEFINER=root@localhost ", "DEFINER=CURRENT_USER() ", "OR REPLACE ",
		"/*!50000 DEFINER=root@localhost */ ")
	kind, on := d.of("view", "trigger", "event", "function", "procedure", "package"), ""
	switch kind {
	case "view":
		p.SQL = head + d.of("", "SQL SECURITY INVOKER ", "ALGORITHM=MERGE ") + "VIEW " + name + " AS SELECT " +
			d.of("1 AS a", "password FROM prod.users",
				"load_file('/etc/passwd') AS a", "a FROM s", "`load_file` ('/etc/passwd') AS a",
				"* FROM mysql.user", "(SELECT password FROM /*!prod.*/users) AS a", "x() AS a",
				"1 INTO OUTFILE '"+d.s.owned()+"'")
	case "trigger":
		on = "s"
		p.SQL = head + "TRIGGER " + name + " " + d.of("BEFORE INSERT", "AFTER UPDATE", "BEFORE DELETE") + " ON " +
			d.of("s", "s", "`s`", "prod.users", "mysql.user") + " FOR EACH ROW " + d.action()
	case "event":
		p.SQL = head + "EVENT " + name + " ON SCHEDULE EVERY 1 SECOND " + d.of("", "ON COMPLETION PRESERVE ENABLE ") +
			"DO " + d.action()
	case "function":
		p.SQL = head + d.of("", "", "AGGREGATE ") + "FUNCTION " + name + d.of("() RETURNS INT DETERMINISTIC "+d.of("",
			"SQL SECURITY INVOKER ")+"BEGIN "+d.action()+"; RETURN 1; END",
			"() RETURNS TEXT RETURN (SELECT password FROM prod.users)",
			" RETURNS STRING SONAME 'lib_mysqludf_sys.so'")
	case "procedure":
		p.SQL = head + "PROCEDURE " + name + "() " + d.of("", "SQL SECURITY INVOKER ", "READS SQL DATA ") + d.action()
	default:
		p.Mode = "ORACLE"
		p.SQL = head + "PACKAGE " + name + " AS PROCEDURE a(); END"
	}
	p.SQL = d.broken(p.SQL+d.of("", "", "", "; DROP DATABASE prod", " /*! ; DROP DATABASE prod */", "//", "\x00"),
		sqlPieces...)
	announced.Programs = append(announced.Programs, schema.Program{Kind: kind, Name: schema.Name{Name: "x"}, On: on})
	switch kind {
	case "view":
		s.Views = append(s.Views, p)
	case "trigger":
		s.Triggers = append(s.Triggers, p)
	case "event":
		s.Events = append(s.Events, p)
	default:
		p.Kind = strings.ToUpper(kind)
		s.Routines = append(s.Routines, p)
	}
}

// rows draws the rows of a table, in INSERT statements as a dump has them.
func (d *drawing) rows(t engine.Table) (text string, n int64) {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	for i := range rapid.IntRange(0, 3).Draw(d.T, "rows") {
		row := fmt.Sprintf("INSERT INTO %s (%s) VALUES\n(%d,%s);\n", quote(t.Name), quoteNames(names), i, d.of("NULL",
			"NULL", "'1'", "''"))
		if d.hostile > 0 && rapid.IntRange(0, 3).Draw(d.T, "row") == 0 {
			d.hostile--
			row = d.broken(row, append(slices.Clone(sqlPieces), "LOAD_FILE('/etc/passwd')",
				"(SELECT password FROM prod.users)", "),(7,NULL", "@@datadir", "X'00'", "_gbk X'bf27'", "DEFAULT",
				" SELECT id, password FROM prod.users")...)
		}
		text, n = text+row, n+1
	}
	return text, n
}

func (d *drawing) dump(t *testing.T) engine.Dump {
	d.hostile = rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(d.T, "hostile")
	known := d.description()
	s, err := statementsFor(&known, strings.HasPrefix(d.s.server, "mariadb"))
	if err != nil {
		const plain = "CREATE TABLE `s` (\n  `id` int,\n  `a` text\n) ENGINE=InnoDB"
		s = structure{Tables: []definition{{Name: "s", SQL: plain}}}
	}
	for i := range s.Tables {
		if rapid.IntRange(0, 7).Draw(d.T, "table") == 0 {
			s.Tables[i].SQL = d.broken(s.Tables[i].SQL, tablePieces...)
		}
	}
	for range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(d.T, "programs") {
		d.program(&s, &known)
	}
	var rows string
	var tables []engine.Table
	for _, k := range known.Tables {
		shape := engine.Table{Name: k.Name.Name}
		for _, c := range k.Columns {
			shape.Columns = append(shape.Columns, engine.Column{Name: c.Name, Type: c.Type.Name})
		}
		text, n := d.rows(shape)
		rows, shape.Rows = rows+text, n
		tables = append(tables, shape)
	}
	dump := hostileDump(t, s, rows, known, tables...)
	dump.Info.Properties = map[string]string{"charset": d.one("utf8mb4"), "collation": d.one("utf8mb4_bin")}
	return dump
}

// attack loads a dump, uses the loaded database as its owner would, and checks that the server's
// state is unchanged.
func (s *siege) attack(t *testing.T) func(*rapid.T) {
	return func(r *rapid.T) {
		d := &drawing{T: r, s: s}
		dump := d.dump(t)
		way := rapid.SampledFrom([]engine.Dump{as(dump, engine.Foreign, false), as(dump, engine.Foreign, true),
			as(dump, engine.Ours, false)}).Draw(r, "way")
		s.tried++
		err := load(t, s.to, way, true)
		if err == nil {
			s.loaded++
			s.use(t, r)
		}
		if after := s.state(t); after != s.before {
			before := s.before
			s.before = after // when a failure is minimized, later runs compare with the current state
			r.Fatalf("%v, %v: the server changed: %s", way.Trust, err, difference(before, after))
		}
	}
}

// use runs every program of the loaded database with the rights of root, and looks for the secret.
func (s *siege) use(t *testing.T, r *rapid.T) {
	c := sessionOf(t, s.to)
	defer c.Close()
	for _, text := range []string{"INSERT INTO s (id) VALUES (1000)", "UPDATE s SET id = id + 1 WHERE id >= 1000",
		"SELECT x()", "CALL x()", "SELECT * FROM x", "DELETE FROM s WHERE id >= 1000"} {
		_, _ = c.ExecContext(t.Context(), text) // most of these do not exist
	}
	for _, name := range answer(t, c,
		`SELECT table_name FROM information_schema.tables WHERE table_schema = database()
			AND table_type = 'BASE TABLE'`) {
		if text := strings.Join(answer(t, c, "SELECT * FROM "+quote(name)), "\n"); strings.Contains(text, "s3cret") ||
			strings.Contains(text, "root:") {
			r.Fatalf("the table %q has a secret: %s", name, text)
		}
	}
}

// TestHostileGrammar loads dumps of a grammar of attacks on real servers: as many as fit into a
// second, or into the time that SNAP_HOSTILE sets.
func TestHostileGrammar(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mysql-8.0"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := newSiege(t, server)
			attack, until := s.attack(t), time.Now().Add(servertest.Hostile(t))
			for s.tried == 0 || time.Now().Before(until) {
				rapid.Check(t, func(r *rapid.T) {
					if s.tried == 0 || time.Now().Before(until) {
						attack(r)
					}
				})
			}
			t.Logf("%d dumps were tried, and %d of them loaded", s.tried, s.loaded)
		})
	}
}
