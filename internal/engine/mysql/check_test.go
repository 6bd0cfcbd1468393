package mysql

import (
	"net/url"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// MariaDB keeps the text of a trigger verbatim. Triggers written in lower case or
// with their database's name are loaded like any other.
func TestTriggersAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		_, at := openURL(t, from)
		script(t, from, "CREATE TABLE t (a INT); create trigger lower before insert on t for each row set new.a = 1;"+
			"create trigger "+at.name+".qualified after insert on "+at.name+
			".t for each row set @a = 1; CREATE /* a comment */ TRIGGER IF NOT EXISTS `it's` BEFORE DELETE ON t "+
			"FOR EACH ROW SET @b = 2")
		d, _ := dumped(t, from)
		for _, trust := range []engine.Trust{engine.Mine, engine.Ours} {
			if err := load(t, to, as(d, trust, false), false); err != nil {
				t.Fatal(err)
			}
			script(t, to, "INSERT INTO t VALUES (5)")
			if got := sorted(t, to, "SELECT concat(a, (SELECT count(*) FROM information_schema.triggers WHERE "+
				"trigger_schema = database())) FROM t")[0]; got != "13" {
				t.Errorf("trust %d: %s", trust, got)
			}
		}
	})
}

// If a user has no permission to create accounts, programs of the user's own organization are
// loaded with the user's rights, and the user gets a warning. Other programs are refused.
func TestWithoutTheRightToMakeAccounts(t *testing.T) {
	t.Parallel()
	from, to := servertest.MariaDB(t), servertest.OwnMySQL(t, "mariadb", "")
	script(t, from, odd)
	script(t, to, "CREATE USER poor@'127.0.0.1'; CREATE USER poor@localhost; GRANT ALL ON `own`.* TO "+
		"poor@'127.0.0.1'; GRANT ALL ON `snapcli\\_%`.* TO poor@'127.0.0.1'; GRANT ALL ON `own`.* TO poor@localhost; "+
		"GRANT ALL ON `snapcli\\_%`.* TO poor@localhost")
	d, _ := dumped(t, from)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("poor")
	if err := load(t, u.String(), as(d, engine.Foreign, true), false); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("programs of others: %v", err)
	}
	var said []string
	s, err := Engine{}.Restore(t.Context(), u.String(), as(d, engine.Ours, false),
		engine.Options{Jobs: 1, Notice: func(text string) {
			said = append(said, text)
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	if len(said) != 1 || !strings.Contains(said[0], `privileges of "poor"`) {
		t.Errorf("%q", said)
	}
	if err := s.Swap(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if a, b := invoker(contents(t, from)), invoker(contents(t, to)); a != b {
		t.Errorf("the copy differs: %s", difference(a, b))
	}
	if err := load(t, u.String(), as(d, engine.Foreign, false), false); err != nil {
		t.Errorf("data of others: %v", err)
	}
	script(t, from, "CREATE PROCEDURE readsit() SELECT load_file('/etc/passwd')")
	d, _ = dumped(t, from)
	if err := load(t, u.String(), as(d, engine.Ours, false), false); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), `the procedure "readsit" of the snapshot uses LOAD_FILE`) {
		t.Errorf("a procedure that reads files: %v", err)
	}
}

// With a binary log, only privileged users may create triggers and functions. The triggers and
// functions still belong to the account of the load.
func TestBinaryLog(t *testing.T) {
	t.Parallel()
	from := servertest.MySQL(t, "mysql-8.0")
	script(t, from, odd)
	to := servertest.OwnMySQL(t, "mysql-8.0", "", "--log-bin=binlog", "--server-id=1")
	d, _ := dumped(t, from)
	if err := load(t, to, as(d, engine.Ours, false), false); err != nil {
		t.Fatal(err)
	}
	if a, b := invoker(contents(t, from)), invoker(contents(t, to)); a != b {
		t.Errorf("the copy differs: %s", difference(a, b))
	}
	for _, owner := range sorted(t, to, "SELECT definer FROM information_schema.triggers WHERE trigger_schema = "+
		"database() UNION ALL SELECT definer FROM information_schema.routines WHERE routine_schema = database()") {
		if !strings.HasPrefix(owner, "snapcli_") {
			t.Errorf("a program belongs to %s", owner)
		}
	}
}

// Programs that a load created run with rights on their own database only, regardless of the caller.
func TestProgramsStayInTheirDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to, prod := servertest.MySQL(t, server), servertest.MySQL(t, server), servertest.MySQL(t, server)
		_, p := openURL(t, prod)
		script(t, prod, "CREATE TABLE users (id INT)")
		script(t, from, "DELIMITER //\nCREATE PROCEDURE drops() SQL SECURITY INVOKER BEGIN SET @q = concat('DROP "+
			"TABLE ', '"+p.name+"', '.users'); PREPARE s FROM @q; EXECUTE s; END //\nDELIMITER ;\n"+
			"CREATE PROCEDURE readsit() SELECT load_file('/etc/hostname') AS a; CREATE PROCEDURE writes() SELECT 1 "+
			"INTO OUTFILE '/tmp/snapcli-hostile'; CREATE TABLE t (a INT); CREATE PROCEDURE looks() CREATE VIEW v "+
			"AS SELECT 1 AS a; CREATE PROCEDURE fills() INSERT INTO t VALUES (1); CREATE VIEW lists AS SELECT "+
			"table_schema AS place FROM information_schema.tables WHERE table_schema NOT LIKE '%\\_schema'")
		d, _ := dumped(t, from)
		if err := load(t, to, as(d, engine.Foreign, true), false); err != nil {
			t.Fatal(err)
		}
		db, _ := openURL(t, to)
		defer db.Close()
		for _, call := range []string{"CALL drops()", "CALL writes()", "CALL looks()"} {
			if _, err := db.Exec(call); number(err) == 0 {
				t.Errorf("%s: %v", call, err)
			}
		}
		_, here := openURL(t, to)
		if got := sorted(t, to, "SELECT DISTINCT place FROM lists"); strings.HasPrefix(server, "mariadb") &&
			strings.Join(got, ",") != here.name { // MySQL shows all views that the caller has access to
			t.Errorf("a view lists the tables of %q", got)
		}
		c := sessionOf(t, to)
		defer c.Close()
		if got := answer(t, c, "CALL readsit()")[0]; got != "NULL" {
			t.Errorf("a procedure reads files: %q", got)
		}
		if _, err := db.Exec("CALL fills()"); err != nil {
			t.Errorf("in its own database: %v", err)
		}
		if got := sorted(t, prod, "SELECT count(*) FROM users")[0]; got != "0" {
			t.Error("the table of another database is gone")
		}
	})
}

// FuzzStatements checks that every statement that passes the check has a generated header, and
// passes the check again unchanged.
func FuzzStatements(f *testing.F) {
	for _, p := range hostilePrograms() {
		f.Add(p.kind, p.SQL, p.Mode)
	}
	for _, sql := range hostileTables() {
		f.Add("TABLE", sql, "")
	}
	f.Fuzz(func(t *testing.T, kind, sql, mode string) {
		k := checker{mariadb: true, version: 101100}
		d, err := k.definition(kind, definition{Kind: kind, Name: "x", SQL: sql, Mode: mode},
			map[string]bool{"s": true})
		if err != nil {
			return
		}
		h, err := readHeader(d.SQL, modeOf(d.Mode))
		if err != nil || h.kind != kind || h.name.name != "x" || h.name.database != "" || h.on.database != "" ||
			h.definer.to > 0 {
			t.Fatalf("%q became %q: %+v, %v", sql, d.SQL, h, err)
		}
		if strings.Contains(d.SQL[:h.body], "`x`.") || h.on.name != "" && h.on.name != "s" {
			t.Fatalf("%q became %q", sql, d.SQL)
		}
		again, err := k.definition(kind, d, map[string]bool{"s": true})
		if err != nil || again.SQL != d.SQL && strings.Join(strings.Fields(again.SQL),
			"") != strings.Join(strings.Fields(d.SQL), "") {
			t.Fatalf("%q became %q and %q, %v", sql, d.SQL, again.SQL, err)
		}
	})
}

// FuzzDescribe checks that any output of SHOW CREATE TABLE is refused, or gives a description that
// creates one table of that name in the same database.
func FuzzDescribe(f *testing.F) {
	for _, sql := range append(hostileTables(),
		"CREATE TABLE `t` (\n  `a` int DEFAULT 1,\n  KEY `k` (`a`)\n) ENGINE=InnoDB PARTITION BY HASH (`a`) "+
			"PARTITIONS 2") {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		table, programs, err := describeTable(definition{Name: "t", SQL: sql}, map[string]bool{"t": true})
		if err != nil {
			return
		}
		s, err := statementsFor(&schema.Schema{Tables: []schema.Table{table}, Programs: programs}, true)
		if err != nil {
			return
		}
		if _, err := (checker{mariadb: true, version: 101100}).definition("TABLE", s.Tables[0], nil); err != nil {
			t.Fatalf("%q became %q, which is refused: %v", sql, s.Tables[0].SQL, err)
		}
	})
}
