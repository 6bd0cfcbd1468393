package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// script runs SQL the way people run the samples' scripts.
func script(t testing.TB, url, text string) {
	t.Helper()
	db, _ := openURL(t, url)
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	defer c.Close()
	for _, statement := range statements(text) {
		if _, err := c.ExecContext(context.Background(), statement); err != nil && number(err) != erEmptyQuery {
			t.Fatalf("%.300s: %v", statement, err)
		}
	}
}

// onEach runs a test on every available kind of server.
func onEach(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	for _, server := range servertest.MySQLServers() {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

func openURL(t testing.TB, url string) (*sql.DB, database) {
	t.Helper()
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	db, err := d.open(d.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, d
}

// contents returns the whole database as the server shows it: every definition, the exact rows of
// every table, and the number of rows of every view.
func contents(t testing.TB, url string) string {
	t.Helper()
	db, d := openURL(t, url)
	defer db.Close()
	c, err := session(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return contentsOf(t, c, d.name)
}

// contentsOf is like contents, for the database of a session.
func contentsOf(t testing.TB, c *sql.Conn, database string) string {
	t.Helper()
	var all strings.Builder
	kinds := map[string]string{}
	for _, line := range answer(t, c,
		"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()") {
		at := strings.LastIndexByte(line, '|')
		kinds[line[:at]] = line[at+1:]
	}
	for _, part := range []struct{ kind, query string }{
		{"TABLE", "SELECT table_name FROM information_schema.tables WHERE table_schema = ? ORDER BY 1"},
		{"TRIGGER", "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = ? ORDER BY 1"},
		{"FUNCTION",
			"SELECT routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type = " +
				"'FUNCTION' ORDER BY 1"},
		{"PROCEDURE",
			"SELECT routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type = " +
				"'PROCEDURE' ORDER BY 1"},
		{"PACKAGE",
			"SELECT routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type = " +
				"'PACKAGE' ORDER BY 1"},
		{"PACKAGE BODY",
			"SELECT routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type = " +
				"'PACKAGE BODY' ORDER BY 1"},
		{"EVENT", "SELECT event_name FROM information_schema.events WHERE event_schema = ? ORDER BY 1"},
	} {
		list, err := queryStrings(context.Background(), c, part.query, database)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			for _, line := range answer(t, c, "SHOW CREATE "+part.kind+" "+quote(n)) {
				all.WriteString(unlike.ReplaceAllString(strings.ReplaceAll(line, quote(database)+".", ""), "$2") + "\n")
			}
			if part.kind != "TABLE" {
				continue
			}
			what, past := exactly(t, c, n), ""
			switch kinds[n] {
			case "VIEW": // it can have values in any order, as of group_concat
				what = "count(*)"
			case "SYSTEM VERSIONED":
				what, past = what+", row_start, row_end", " FOR SYSTEM_TIME ALL"
			}
			rows := answer(t, c, "SELECT "+what+" FROM "+quote(n)+past)
			slices.Sort(rows)
			all.WriteString(strings.Join(rows, "\n") + "\n")
		}
	}
	return all.String()
}

// unlike matches the permitted differences between a database and its copy: the creator and the
// time of creation, the client's character set, and a character set that the collation implies.
// MySQL shows such a character set only if the definition named it.
var unlike = regexp.MustCompile("\\|latin1\\b|\\|utf8mb4\\b|DEFINER=`[^`]*`@`[^`]*` ?|(?m:\\|\\d{4}-\\d\\d-\\d\\d " +
	"\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?$)|STARTS '[^']*'| CHARACTER SET \\w+( COLLATE)")

// exactly returns expressions for a table's columns that lose no digit and no byte.
func exactly(t testing.TB, c *sql.Conn, table string) string {
	t.Helper()
	list := answer(t, c,
		"SELECT concat(CASE WHEN data_type = 'float' THEN concat('CAST(`', replace(column_name, '`', '``'), '` AS "+
			"DOUBLE)') WHEN data_type IN ('bit', 'binary', 'varbinary') OR data_type LIKE '%blob' OR data_type IN "+
			"('geometry', 'point') THEN concat('hex(`', replace(column_name, '`', '``'), '`)') ELSE concat('`', "+
			"replace(column_name, '`', '``'), '`') END) FROM information_schema.columns WHERE table_schema = "+
			"database() AND "+
			"table_name = '"+strings.ReplaceAll(table, "'", "''")+"' ORDER BY ordinal_position")
	return strings.Join(list, ", ")
}

// answer returns the rows of a query, with bars between the values.
func answer(t testing.TB, c *sql.Conn, query string) []string {
	t.Helper()
	rows, err := c.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var all []string
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var line strings.Builder
		for i, v := range values {
			if i > 0 {
				line.WriteByte('|')
			}
			if v.Valid {
				line.WriteString(v.String)
			} else {
				line.WriteString("NULL")
			}
		}
		all = append(all, line.String())
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func dumped(t testing.TB, url string) (engine.Dump, []byte) {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &b, engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info), b.Bytes()
}

func dumpOf(b []byte, info engine.Info) engine.Dump {
	return engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		Size: int64(len(b)), Info: info}
}

func load(t testing.TB, url string, d engine.Dump, terminate bool) error {
	t.Helper()
	return loadBy(t, Engine{}, url, d, terminate)
}

func loadBy(t testing.TB, e Engine, url string, d engine.Dump, terminate bool) error {
	t.Helper()
	s, err := e.Restore(t.Context(), url, d, engine.Options{Jobs: 2})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), terminate)
}

// counted fails the test if the numbers of rows differ from those in the database.
func counted(t testing.TB, url string, tables []engine.Table) {
	t.Helper()
	db, _ := openURL(t, url)
	for _, table := range tables {
		var n int64
		var kind string
		if err := db.QueryRow("SELECT table_type FROM information_schema.tables WHERE table_schema = database() AND "+
			"table_name = ?", table.Name).Scan(&kind); err != nil {
			t.Fatal(err)
		}
		past := map[string]string{"SYSTEM VERSIONED": " FOR SYSTEM_TIME ALL"}[kind]
		if err := db.QueryRow("SELECT count(*) FROM " + quote(table.Name) + past).Scan(&n); err != nil ||
			n != table.Rows {
			t.Errorf("%s: %d rows counted in the dump, %d in the database, %v", table.Name, table.Rows, n, err)
		}
	}
	db.Close()
}

// Every MySQL sample database is restored row for row, with views, triggers and routines.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples := servertest.Samples(t)
	texts := map[string]string{}
	for name, files := range map[string][]string{
		"chinook": {"chinook/Chinook_MySql.sql"},
		"sakila":  {"sakila-mysql/sakila-mv-schema.sql", "sakila-mysql/sakila-mv-data.sql"},
	} {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(samples, filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			texts[name] += ofAnyDatabase.ReplaceAllString(string(text), "") + "\n"
		}
	}
	onEach(t, func(t *testing.T, server string) { testSamples(t, server, texts) })
}

// ofAnyDatabase matches the parts of a script that tie it to the database that it names.
var ofAnyDatabase = regexp.MustCompile(`(?mi)^(DROP (DATABASE|SCHEMA)|CREATE (DATABASE|SCHEMA)|USE ).*$|\bsakila\.`)

func testSamples(t *testing.T, server string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, text)
			script(t, to,
				"CREATE TABLE old (id INT PRIMARY KEY); CREATE VIEW oldview AS SELECT * FROM old; CREATE TRIGGER "+
					"oldtrigger "+
					"BEFORE INSERT ON old FOR EACH ROW SET NEW.id = 1;")
			d, _ := dumped(t, from)
			if len(d.Info.Tables) < 10 {
				t.Errorf("only %d tables", len(d.Info.Tables))
			}
			counted(t, from, d.Info.Tables)
			if err := load(t, to, d, false); err != nil {
				t.Fatal(err)
			}
			analyzed(t, from, to)
			a, b := contents(t, from), contents(t, to)
			if a != b || len(a) < 10_000 {
				t.Errorf("the copy differs:\n%s", difference(a, b))
			}
			sanitized(t, name, d, to, b)
		})
	}
}

// analyzed updates the planner's statistics, because some views take minutes without them.
func analyzed(t *testing.T, urls ...string) {
	t.Helper()
	for _, url := range urls {
		for _, table := range sorted(t, url,
			"SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_type = "+
				"'BASE TABLE'") {
			script(t, url, "ANALYZE TABLE "+quote(table))
		}
	}
}

// sanitized masks only the customers' email addresses, and loads the result over the copy, which
// still has the original contents.
func sanitized(t *testing.T, sample string, d engine.Dump, to, before string) {
	t.Helper()
	table, column := map[string]string{"sakila": "customer", "chinook": "Customer"}[sample],
		map[string]string{"sakila": "email", "chinook": "Email"}[sample]
	var b bytes.Buffer
	mask := func(v string) (string, bool) { return fmt.Sprintf("masked %d@example.com", len(v)), false }
	info, err := Engine{}.Rewrite(t.Context(), d,
		planFor(d.Info.Tables, map[string]engine.Mask{table + "." + column: mask}), &b, engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, dumpOf(b.Bytes(), info), false); err != nil {
		t.Fatal(err)
	}
	analyzed(t, to)
	after := contents(t, to)
	x, y, changed := strings.Split(before, "\n"), strings.Split(after, "\n"), 0
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			continue
		}
		if changed++; !strings.Contains(y[i], "|masked ") {
			t.Fatalf("another row changed: %s", difference(before, after))
		}
	}
	if len(x) != len(y) || changed < 50 || strings.Contains(after, "@sakilacustomer.org") {
		t.Errorf("%d rows are masked, %d and %d lines", changed, len(x), len(y))
	}
}

func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %.300s\n     and: %.300s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

const odd = "CREATE TABLE `a ``b`` ü` (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT, b BLOB, g INT GENERATED ALWAYS AS " +
	"(length(v) * 2) STORED, j JSON, e ENUM('x','y'), d DECIMAL(10,3), ts TIMESTAMP NULL, bt BIT(3));\n" +
	"INSERT INTO `a ``b`` ü` (v, b, j, e, d, ts, bt) VALUES ('it''s (1),(2); INSERT INTO `x` VALUES (1)', x'00ff27', " +
	"'{\"a\": \"(\"}', 'x', 1.5, '2024-01-01 00:00:00', b'101'), ('back\\\\', '', NULL, NULL, NULL, NULL, NULL), " +
	"('line\nend \\'', NULL, '[]', 'y', -1, NULL, 0);\n" +
	"CREATE TABLE parent (id INT PRIMARY KEY, child INT); CREATE TABLE child (id INT PRIMARY KEY, parent INT, " +
	"CONSTRAINT fk FOREIGN KEY (parent) REFERENCES parent (id));\n" +
	"INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (1, 1); ALTER TABLE parent ADD CONSTRAINT fk2 " +
	"FOREIGN KEY (child) REFERENCES child (id);\n" +
	"CREATE TABLE `empty` (a INT); CREATE VIEW v2 AS SELECT id FROM parent; CREATE VIEW v1 AS SELECT v2.id FROM v2;\n" +
	"CREATE TRIGGER tr BEFORE INSERT ON parent FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'must not " +
	"fire';\n" +
	"CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1;\nCREATE PROCEDURE p() SELECT 1;\nCREATE EVENT " +
	"ev ON SCHEDULE EVERY 1 DAY DO DELETE FROM `empty`;\n"

// oddFor returns the part of odd that a server supports: MySQL has no sequences.
func oddFor(server string) string {
	if strings.HasPrefix(server, "mysql") {
		return odd
	}
	return odd +
		"CREATE SEQUENCE seq START 100; DO nextval(seq); CREATE TABLE numbered (id BIGINT DEFAULT (nextval(seq)) " +
		"PRIMARY KEY, v INT);\nINSERT INTO numbered (v) VALUES (1), (2);"
}

func TestOddSchemaTwice(t *testing.T) {
	t.Parallel()
	onEach(t, testOddSchemaTwice)
}

func testOddSchemaTwice(t *testing.T, server string) {
	from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
	script(t, from, oddFor(server))
	d, _ := dumped(t, from)
	counted(t, from, d.Info.Tables)
	for range 2 { // the second load replaces a database with the same constraints and triggers
		if err := load(t, to, d, false); err != nil {
			t.Fatal(err)
		}
		if a, b := contents(t, from), contents(t, to); a != b {
			t.Errorf("the copy differs: %s", difference(a, b))
		}
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// killing is held while a shared server has databases of a killed load, which [leftovers] would
// find.
var killing sync.Mutex

// leftovers returns the databases of ended loads on a server. A database whose lock is free can
// belong to a load of another test that is about to drop it, because its session was closed. So
// only databases that stay for half a minute count.
func leftovers(t testing.TB, url string) (left []string) {
	t.Helper()
	killing.Lock()
	defer killing.Unlock()
	db, _ := openURL(t, url)
	defer db.Close()
	for begun := time.Now(); ; {
		seen, err := queryStrings(context.Background(), db,
			"SELECT schema_name FROM information_schema.schemata WHERE schema_name REGEXP ? AND "+
				"is_free_lock(right(schema_name, 16))", loadDatabasePattern)
		if err != nil {
			t.Fatal(err)
		}
		if left == nil {
			left = seen
		}
		left = slices.DeleteFunc(left, func(name string) bool { return !slices.Contains(seen, name) })
		if len(left) == 0 || time.Since(begun) > 30*time.Second {
			return left
		}
	}
}

func TestRefusalsLeaveTheOldDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, testRefusals)
}

func testRefusals(t *testing.T, server string) {
	from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
	script(t, from, odd)
	script(t, to,
		"CREATE TABLE old (a INT PRIMARY KEY); INSERT INTO old VALUES (1); CREATE TRIGGER keepme BEFORE INSERT ON "+
			"old FOR "+
			"EACH ROW SET NEW.a = 2;")
	before := contents(t, to)
	d, b := dumped(t, from)
	place, err := parse(to)
	if err != nil {
		t.Fatal(err)
	}
	other := servertest.MySQL(t, server)
	script(t, other, "CREATE TABLE theirs (a INT, FOREIGN KEY (a) REFERENCES "+quote(place.name)+".old (a))")
	if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeConflict ||
		!strings.Contains(err.Error(), ".theirs refers") {
		t.Errorf("tables that another database refers to: %v", err)
	}
	script(t, other, "DROP TABLE theirs")
	wrong := d
	wrong.Info.Tables = append([]engine.Table{{Name: "parent", Rows: 99}}, d.Info.Tables...)
	for name, bad := range map[string]engine.Dump{"cut": dumpOf(b[:len(b)*3/4], d.Info),
		"no dump": dumpOf([]byte("hello\n"), d.Info), "other rows": wrong} {
		if err := load(t, to, bad, false); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	user, _ := openURL(t, to)
	if err := user.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeConflict {
		t.Errorf("a database in use: %v", err)
	}
	if after := contents(t, to); after != before || !strings.Contains(after, "keepme") {
		t.Errorf("the old database changed: %s", difference(before, after))
	}
	if err := load(t, to, d, true); err != nil {
		t.Errorf("with terminate: %v", err)
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	url := servertest.MariaDB(t)
	dump := func(url string) error {
		_, err := Engine{}.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1})
		return err
	}
	for name, c := range map[string]struct {
		err  error
		code snap.Code
	}{
		"missing database": {dump(url + "_none"), snap.CodeNotFound},
		"no server":        {dump("mysql://u:s3cret@127.0.0.1:1/x"), snap.CodeDatabase},
		"wrong password":   {dump(strings.Replace(url, "root@", "root:s3cret@", 1)), snap.CodeDatabase},
		"no URL":           {dump("mysql://h"), snap.CodeUsage},
	} {
		if snap.CodeOf(c.err) != c.code || strings.Contains(c.err.Error(), "s3cret") {
			t.Errorf("%s: %s: %v", name, snap.CodeOf(c.err), c.err)
		}
	}
	if info, err := (Engine{}).Check(t.Context(), url+"_none"); err != nil || info.Exists || info.ServerVersion == "" {
		t.Errorf("a missing database: %+v, %v", info, err)
	}
}

// A dump from an attacker creates only the objects that it lists: it cannot run another statement,
// or read a file of this machine.
func TestHostileDump(t *testing.T) {
	t.Parallel()
	to := servertest.MariaDB(t)
	script(t, to, "CREATE TABLE old (a INT)")
	before := contents(t, to)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := parse(to)
	if err != nil {
		t.Fatal(err)
	}
	drop := "DROP TABLE " + quote(d.name) + ".old"
	const table = `{"name":"s","sql":"CREATE TABLE s (a TEXT)"}`
	for name, text := range map[string]string{
		"no structure":      "{}\nDROP TABLE old;\n",
		"another statement": `{"tables":[{"name":"s","sql":"` + drop + `"}]}` + "\n",
		"two statements":    `{"tables":[{"name":"s","sql":"CREATE TABLE s (a TEXT); ` + drop + `"}]}` + "\n",
		"a routine": `{"tables":[` + table + `],"routines":[{"kind":"` + drop + `","name":"r",` +
			`"sql":"` + drop + `"}]}` + "\n",
		"a mode": `{"tables":[` + table + `],"views":[{"name":"v","sql":"CREATE VIEW v AS ` +
			`SELECT 1","mode":"'; ` + drop + `; --"}]}` + "\n",
		"after the rows":     `{"tables":[` + table + "]}\nINSERT INTO `s` (`a`) VALUES\n('x'); " + drop + ");\n",
		"a local file":       `{"tables":[` + table + "]}\nLOAD DATA LOCAL INFILE '" + secret + "' INTO TABLE s;\n",
		"rows of another":    `{"tables":[` + table + "]}\nINSERT INTO `old` (`a`) VALUES\n(1);\n",
		"a database's table": `{"tables":[` + table + "]}\nINSERT INTO `mysql`.`user` (`a`) VALUES\n(1);\n",
		"cut":                `{"tables":[` + table + "]}\nINSERT INTO `s` (`a`) VALUES\n('x'),\n",
	} {
		err := load(t, to, dumpOf([]byte(head+text), engine.Info{}), false)
		if err == nil || contents(t, to) != before {
			t.Errorf("%s: %v, %s", name, err, contents(t, to))
		}
	}
}
