package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// script runs SQL as people run the samples' scripts.
func script(t testing.TB, url, text string) {
	t.Helper()
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("mariadb", append(d.arguments(), "--database="+d.name)...)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("mariadb: %v\n%s", err, out)
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

// contents returns the whole database as the dumping program writes it: every
// row, and the definition of everything.
func contents(t testing.TB, url string) string {
	t.Helper()
	d, err := parse(url)
	if err != nil {
		t.Fatal(err)
	}
	args := append(d.arguments(), "--routines", "--triggers", "--events", "--skip-comments", "--skip-dump-date", "--order-by-primary", "--hex-blob", "--skip-extended-insert", d.name)
	out, err := exec.Command("mariadb-dump", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return definer.ReplaceAllString(string(out), "")
}

func dumped(t testing.TB, url string) (engine.Dump, []byte) {
	t.Helper()
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), url, &b, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info), b.Bytes()
}

func dumpOf(b []byte, info engine.Info) engine.Dump {
	return engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }, Size: int64(len(b)), Info: info}
}

func load(t testing.TB, url string, d engine.Dump, terminate bool) error {
	t.Helper()
	s, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), terminate)
}

// counted fails when the counted rows are not those of the database.
func counted(t testing.TB, url string, tables []engine.Table) {
	t.Helper()
	db, _ := openURL(t, url)
	for _, table := range tables {
		var n int64
		if err := db.QueryRow("SELECT count(*) FROM " + quote(table.Name)).Scan(&n); err != nil || n != table.Rows {
			t.Errorf("%s: %d rows counted in the dump, %d in the database, %v", table.Name, table.Rows, n, err)
		}
	}
	db.Close()
}

// Real input: every MySQL database of the samples, row for row, with views,
// triggers and routines.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples := servertest.Samples(t)
	for name, files := range map[string][]string{
		"chinook": {"chinook/Chinook_MySql.sql"},
		"sakila":  {"sakila-mysql/sakila-mv-schema.sql", "sakila-mysql/sakila-mv-data.sql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.MariaDB(t), servertest.MariaDB(t)
			for _, file := range files {
				text, err := os.ReadFile(filepath.Join(samples, filepath.FromSlash(file)))
				if err != nil {
					t.Fatal(err)
				}
				script(t, from, regexp.MustCompile(`(?mi)^(DROP (DATABASE|SCHEMA)|CREATE (DATABASE|SCHEMA)|USE ).*$|\bsakila\.`).ReplaceAllString(string(text), ""))
			}
			script(t, to, "CREATE TABLE old (id INT PRIMARY KEY); CREATE VIEW oldview AS SELECT * FROM old; CREATE TRIGGER oldtrigger BEFORE INSERT ON old FOR EACH ROW SET NEW.id = 1;")
			d, _ := dumped(t, from)
			if len(d.Info.Tables) < 10 {
				t.Errorf("only %d tables", len(d.Info.Tables))
			}
			counted(t, from, d.Info.Tables)
			if err := load(t, to, d, false); err != nil {
				t.Fatal(err)
			}
			if a, b := contents(t, from), contents(t, to); a != b || len(a) < 10_000 {
				t.Errorf("the copy differs:\n%s", difference(a, b))
			}
		})
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

const odd = "CREATE TABLE `a ``b`` ü` (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT, b BLOB, g INT GENERATED ALWAYS AS (length(v) * 2) STORED, j JSON, e ENUM('x','y'), d DECIMAL(10,3), ts TIMESTAMP NULL, bt BIT(3));\n" +
	"INSERT INTO `a ``b`` ü` (v, b, j, e, d, ts, bt) VALUES ('it''s (1),(2); INSERT INTO `x` VALUES (1)', x'00ff27', '{\"a\": \"(\"}', 'x', 1.5, '2024-01-01 00:00:00', b'101'), ('back\\\\', '', NULL, NULL, NULL, NULL, NULL), ('line\nend \\'', NULL, '[]', 'y', -1, NULL, 0);\n" +
	"CREATE TABLE parent (id INT PRIMARY KEY, child INT); CREATE TABLE child (id INT PRIMARY KEY, parent INT, CONSTRAINT fk FOREIGN KEY (parent) REFERENCES parent (id));\n" +
	"INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (1, 1); ALTER TABLE parent ADD CONSTRAINT fk2 FOREIGN KEY (child) REFERENCES child (id);\n" +
	"CREATE TABLE empty (a INT); CREATE VIEW v2 AS SELECT id FROM parent; CREATE VIEW v1 AS SELECT v2.id FROM v2;\n" +
	"CREATE TRIGGER tr BEFORE INSERT ON parent FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'must not fire';\n" +
	"CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1;\nCREATE PROCEDURE p() SELECT 1;\nCREATE EVENT ev ON SCHEDULE EVERY 1 DAY DO DELETE FROM empty;\nCREATE SEQUENCE seq START 100;\n"

func TestOddSchemaTwice(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, odd)
	d, _ := dumped(t, from)
	counted(t, from, d.Info.Tables)
	for range 2 { // the second replaces a database with the same constraints and triggers
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

func leftovers(t testing.TB, url string) []string {
	t.Helper()
	db, _ := openURL(t, url)
	all, err := names(context.Background(), db, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE ? AND is_free_lock(schema_name)", "snapcli%")
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	return all
}

func TestRefusalsLeaveTheOldDatabase(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.MariaDB(t)
	script(t, from, odd)
	script(t, to, "CREATE TABLE old (a INT); INSERT INTO old VALUES (1); CREATE TRIGGER keepme BEFORE INSERT ON old FOR EACH ROW SET NEW.a = 2;")
	before := contents(t, to)
	d, b := dumped(t, from)
	wrong := d
	wrong.Info.Tables = append([]engine.Table{{Name: "parent", Rows: 99}}, d.Info.Tables...)
	for name, bad := range map[string]engine.Dump{"cut": dumpOf(b[:len(b)*3/4], d.Info), "no dump": dumpOf([]byte("hello\n"), d.Info), "other rows": wrong} {
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
	d, err := parse("mysql://u:s3cret@h/x")
	if err != nil {
		t.Fatal(err)
	}
	if cmd, _ := (tool{path: "/bin/true"}).command(t.Context(), d); strings.Contains(strings.Join(cmd.Args, " "), "s3cret") {
		t.Errorf("the password is an argument: %v", cmd.Args)
	}
}

// However the stream is cut, the rows are counted the same.
func TestRowCounter(t *testing.T) {
	t.Parallel()
	const text = "CREATE TABLE `t` (\n  `a` text DEFAULT '(' COMMENT 'INSERT INTO `t` VALUES (1)'\n);\nINSERT INTO `t` VALUES (1,'a''(\\'',\"x(\"),\n(2,'\\\\',0x28),(3,NULL,'');\n" +
		"INSERT INTO `we``ird (VALUES` (`VALUES`, `b`) VALUES (1,(2));\n-- INSERT INTO `t` VALUES (9)\nINSERT INTO `t` VALUES (4,5,6);\n"
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		c := newRowCounter(io.Discard)
		for rest := text; rest != ""; {
			n := min(len(rest), 1+r.IntN(30))
			if _, err := c.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if c.rows["t"] != 4 || c.rows["we`ird (VALUES"] != 1 || len(c.rows) != 2 {
			t.Fatalf("counted %v", c.rows)
		}
	}
}

// A dump that an enemy wrote cannot make the client program run a command or
// read a file of this machine.
func TestHostileDump(t *testing.T) {
	t.Parallel()
	to := servertest.MariaDB(t)
	dir := t.TempDir()
	mark, secret := filepath.Join(dir, "mark"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("a secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"system":     "system touch " + mark + "\n",
		"shell":      "\\! touch " + mark + "\n",
		"source":     "source " + secret + "\n",
		"tee":        "tee " + mark + "\nSELECT 1;\n",
		"local file": "CREATE TABLE s (a TEXT);\nLOAD DATA LOCAL INFILE '" + secret + "' INTO TABLE s;\n",
	} {
		err := load(t, to, dumpOf([]byte(programsMark+"{}\n"+text), engine.Info{}), false)
		if _, there := os.Stat(mark); there == nil || err == nil {
			t.Errorf("%s: %v, the command ran: %v", name, err, there == nil)
		}
	}
}
