package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// psql runs a script the way people run the samples' scripts.
func psql(t testing.TB, url string, files ...string) {
	t.Helper()
	args := []string{"-X", "-q", "-v", "ON_ERROR_STOP=1", "-o", os.DevNull, "-d", url}
	for _, f := range files {
		args = append(args, "-f", f)
	}
	if out, err := exec.Command(filepath.Join(servertest.PostgresBin(), "psql"), args...).CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}

func script(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func connectTo(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

var changing = regexp.MustCompile(`(?m)^(--.*|\\(un)?restrict .*)?\n`)

// definitionOf returns the database's definition as pg_dump writes it.
func definitionOf(t testing.TB, url string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(servertest.PostgresBin(), "pg_dump"), "--schema-only", "--no-owner",
		"--no-privileges", "-d", url).Output()
	if err != nil {
		t.Fatal(err)
	}
	return changing.ReplaceAllString(string(out), "")
}

// rows returns every row of every table, sorted, and every sequence and large
// object, as text.
func rows(t testing.TB, url string) map[string]string {
	t.Helper()
	conn := connectTo(t, url)
	all := map[string]string{}
	read := func(key, query string) {
		r, err := conn.Query(context.Background(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		lines, err := pgx.CollectRows(r, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all[key] = strings.Join(lines, "\n")
	}
	tables, err := listTables(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		id := pgx.Identifier{table.Schema, table.Name}.Sanitize()
		read(id, "SELECT x::text FROM ONLY "+id+" x ORDER BY x::text")
	}
	read("sequences",
		"SELECT schemaname||'.'||sequencename||' '||coalesce(last_value::text, '-') FROM pg_sequences ORDER BY 1")
	read("large objects",
		"SELECT m.oid::text||' '||coalesce(pageno||' '||encode(data, 'hex'), 'empty') FROM "+
			"pg_largeobject_metadata m LEFT JOIN pg_largeobject ON loid = m.oid ORDER BY m.oid, pageno")
	conn.Close(context.Background())
	return all
}

func same(t testing.TB, from, to string) {
	t.Helper()
	if a, b := definitionOf(t, from), definitionOf(t, to); a != b {
		t.Errorf("the schema differs:\n%s\n---- and\n%s", a, b)
	}
	a, b := rows(t, from), rows(t, to)
	if len(a) != len(b) {
		t.Errorf("%d tables, want %d", len(b), len(a))
	}
	for key := range a {
		if a[key] != b[key] {
			t.Errorf("%s differs", key)
		}
	}
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
	s, err := e.Restore(t.Context(), url, d, engine.Options{Jobs: 2, TempDir: t.TempDir()})
	if err != nil {
		return err
	}
	defer s.Drop(t.Context())
	return s.Swap(t.Context(), terminate)
}

// leftovers returns the scratch databases of ended loads on a server. The server must be the test's
// own, because other tests create such databases on the shared server.
func leftovers(t testing.TB, url string) []string {
	t.Helper()
	conn := connectTo(t, url)
	r, err := conn.Query(context.Background(),
		`SELECT datname FROM pg_database d WHERE datname LIKE 'snapcli\_%' AND NOT EXISTS
		(SELECT FROM pg_locks WHERE locktype = 'advisory'
			AND (classid::bigint << 32 | objid::bigint) = hashtextextended(datname, 0))`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(r, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	conn.Close(context.Background())
	return names
}

// Every PostgreSQL sample database is restored row for row, with its views, triggers, functions,
// partitions and full-text columns.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples := servertest.Samples(t)
	chinook, err := os.ReadFile(filepath.Join(samples, "chinook", "Chinook_PostgreSql.sql"))
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`(?mi)^(DROP DATABASE|CREATE DATABASE|\\c ).*$`).ReplaceAllString(string(chinook), "")
	for name, c := range map[string]struct {
		files []string
		table engine.Table
	}{
		"chinook": {[]string{script(t, own)}, engine.Table{Schema: "public", Name: "track", Rows: 3503}},
		"northwind": {[]string{filepath.Join(samples, "northwind-postgres", "northwind.sql")},
			engine.Table{Schema: "public", Name: "orders", Rows: 830}},
		"sakila": {[]string{filepath.Join(samples, "sakila-postgres", "schema.sql"),
			filepath.Join(samples, "sakila-postgres", "data-copy.sql")},
			engine.Table{Schema: "public", Name: "rental", Rows: 16044}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.Postgres(t), servertest.Postgres(t)
			psql(t, from, c.files...)
			d, _ := dumped(t, from)
			if !has(d.Info.Tables, c.table) {
				t.Errorf("the tables %v do not have %v", d.Info.Tables, c.table)
			}
			if err := load(t, to, d, false); err != nil {
				t.Fatal(err)
			}
			same(t, from, to)
		})
	}
}

// has reports whether there is a table with a name and a number of rows.
func has(all []engine.Table, want engine.Table) bool {
	return slices.ContainsFunc(all, func(t engine.Table) bool {
		return t.Schema == want.Schema && t.Name == want.Name && t.Rows == want.Rows
	})
}

const odd = `
CREATE SCHEMA "Größe ""x""";
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE "Größe ""x"""."tab le" (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, m mood, p positive,
	j jsonb, b bytea, a text[],
	g int GENERATED ALWAYS AS (p * 2) STORED, t text, ts timestamptz DEFAULT now(), r int4range,
		EXCLUDE USING gist (r WITH &&));
INSERT INTO "Größe ""x"""."tab le" (m, p, j, b, a, t)
	VALUES ('ok', 3, '{"a": [1]}', '\x00ff', '{a,"b c",NULL}', E'line\nline\ttab\\.\n\\.'),
	(NULL, NULL, NULL, NULL, NULL, ''), ('sad', 1, 'null', '', '{}', E'\\.');
CREATE TABLE part (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF part FOR VALUES FROM (10) TO (20) PARTITION BY LIST (v);
CREATE TABLE part_2a PARTITION OF part_2 FOR VALUES IN ('a');
INSERT INTO part VALUES (1, 'x'), (2, 'y'), (11, 'a');
CREATE TABLE parent (a int); CREATE TABLE child (b int) INHERITS (parent);
INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 3), (4, 5);
CREATE UNLOGGED TABLE nolog (a int); INSERT INTO nolog VALUES (1);
CREATE TABLE nothing ();
CREATE MATERIALIZED VIEW mv AS SELECT count(*) AS n FROM part;
CREATE VIEW v AS SELECT * FROM part; COMMENT ON VIEW v IS 'a comment';
CREATE FUNCTION f(x int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN x + 1; END $$;
CREATE PROCEDURE pr() LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'must not fire'; END $$;
CREATE TRIGGER tg BEFORE INSERT ON parent FOR EACH ROW EXECUTE FUNCTION tr();
CREATE SEQUENCE s START 5 INCREMENT 3; SELECT nextval('s'), nextval('s');
CREATE TABLE a1 (id int PRIMARY KEY, b int); CREATE TABLE b1 (id int PRIMARY KEY, a int REFERENCES a1);
ALTER TABLE a1 ADD FOREIGN KEY (b) REFERENCES b1 DEFERRABLE INITIALLY DEFERRED;
BEGIN; INSERT INTO a1 VALUES (1, 1); INSERT INTO b1 VALUES (1, 1); COMMIT;
ALTER TABLE a1 ENABLE ROW LEVEL SECURITY; CREATE POLICY pol ON a1 USING (id > 0);
SELECT lo_from_bytea(4711, '\xdeadbeef');
CREATE INDEX ON part (v) WHERE k > 1; CREATE STATISTICS st ON k, v FROM part_1;
CREATE PUBLICATION pub FOR TABLE a1;`

func TestOddSchema(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, odd))
	d, _ := dumped(t, from)
	for _, want := range []engine.Table{{Schema: "Größe \"x\"", Name: "tab le", Rows: 3},
		{Schema: "public", Name: "part_2a", Rows: 1}, {Schema: "public", Name: "parent", Rows: 1},
		{Schema: "public", Name: "nothing", Rows: 0}} {
		if !has(d.Info.Tables, want) {
			t.Errorf("the tables %v do not have %v", d.Info.Tables, want)
		}
	}
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	same(t, from, to)
}

// A load keeps the properties of the destination database itself.
func TestSwapKeepsOwnerRightsAndSettings(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE t (a int)"))
	d, _ := dumped(t, from)
	conn := connectTo(t, to)
	name := conn.Config().Database
	role := "role_of_" + name
	psql(t, to,
		script(t,
			fmt.Sprintf(`CREATE ROLE %[1]s; ALTER DATABASE %[2]s OWNER TO %[1]s; ALTER DATABASE %[2]s
				SET work_mem = '7MB'; ALTER DATABASE %[2]s SET search_path = a, "b c";
		ALTER DATABASE %[2]s SET temp_tablespaces = ''; ALTER ROLE %[1]s IN DATABASE %[2]s
			SET local_preload_libraries = 'a "b', c; ALTER ROLE %[1]s IN DATABASE %[2]s
			SET search_path = '', %[3]s, "$user";
		COMMENT ON DATABASE %[2]s IS 'it''s'; REVOKE CONNECT ON DATABASE %[2]s
			FROM PUBLIC; ALTER DATABASE %[2]s CONNECTION
			LIMIT 33 IS_TEMPLATE true`, role, name, strings.Repeat("long", 20))))
	conn.Close(context.Background())
	psql(t, from,
		script(t,
			fmt.Sprintf("SET allow_in_place_tablespaces = on; CREATE TABLESPACE of_%[1]s LOCATION ''; ALTER "+
				"DATABASE %[1]s "+
				"SET TABLESPACE of_%[1]s", name)))
	state := func() string {
		conn := connectTo(t, to)
		defer conn.Close(context.Background())
		var s string
		err := conn.QueryRow(context.Background(),
			`SELECT format('%s %s %s %s %s %s %s %s', pg_get_userbyid(datdba),
			(SELECT array_agg(a::text ORDER BY a::text) FROM unnest(datacl) a), datconnlimit,
			shobj_description(oid, 'pg_database'),
			datistemplate, dattablespace, (SELECT array_agg(setrole || setconfig::text ORDER BY setrole)
				FROM pg_db_role_setting WHERE setdatabase = d.oid), current_setting('search_path')) FROM pg_database d
				WHERE datname = current_database()`).Scan(&s)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := state()
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before || !strings.Contains(after, "it's") {
		t.Errorf("after the load %s\nbefore          %s", after, before)
	}
	same(t, from, to)
	whenDropped(t, to, role)
	psql(t, to,
		script(t,
			fmt.Sprintf("ALTER DATABASE %[1]s OWNER TO postgres; ALTER DATABASE %[1]s IS_TEMPLATE false; DROP ROLE "+
				"%[2]s", name,
				role)))
}

// A load is refused if the old database could be renamed but not dropped, because it would remain
// on the server.
func TestSubscriberIsNotReplaced(t *testing.T) {
	t.Parallel()
	url, _ := servertest.CrashingPostgres(t)
	psql(t, url,
		script(t,
			"CREATE SUBSCRIPTION sub CONNECTION 'host=nowhere.invalid' PUBLICATION p WITH (connect = false); ALTER "+
				"SUBSCRIPTION sub SET (slot_name = NONE)"))
	t.Cleanup(func() { psql(t, url, script(t, "DROP SUBSCRIPTION sub")) })
	d, _ := dumped(t, url)
	if err := load(t, url, d, true); snap.CodeOf(err) != snap.CodeConflict ||
		!strings.Contains(err.Error(), `subscription "sub"`) {
		t.Errorf("load into a database with a subscription: %v", err)
	}
	if left := leftovers(t, url); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Settings that a role has for its own sessions do not stop or change a build or a load, neither in
// snapcli's sessions nor in those of pg_restore.
func TestSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, `CREATE FUNCTION patient(a date) RETURNS date LANGUAGE plpgsql IMMUTABLE AS $$
			DECLARE hurry text; BEGIN SELECT name INTO hurry FROM pg_settings
				WHERE category LIKE 'Client%' AND name LIKE '%\_timeout' AND unit = 'ms' AND setting <> '0';
				IF FOUND THEN RAISE 'it has the %', hurry; END IF; RETURN a; END $$;
		CREATE TABLE t (d date CHECK (patient(d) IS NOT NULL)); INSERT INTO t VALUES ('2020-02-03');
			CREATE INDEX ON t (patient(d))`))
	conn := connectTo(t, to)
	role := "hurried_" + conn.Config().Database
	text := fmt.Sprintf("CREATE ROLE %s SUPERUSER LOGIN PASSWORD 'x';", role)
	for _, setting := range []string{"statement_timeout = '1h'", "lock_timeout = '1h'", "idle_session_timeout = '1h'",
		"idle_in_transaction_session_timeout = '1h'", "bytea_output = escape", "DateStyle = 'SQL, DMY'",
		"client_encoding = LATIN1", "search_path = ''"} {
		text += fmt.Sprintf("ALTER ROLE %s SET %s;", role, setting)
	}
	psql(t, to, script(t, text))
	conn.Close(context.Background())
	as := strings.NewReplacer("//postgres@", "//"+role+":x@")
	d, _ := dumped(t, as.Replace(from))
	if err := load(t, as.Replace(to), d, false); err != nil {
		t.Fatal(err)
	}
	same(t, from, to)
}

func TestInUse(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE t (a int)"))
	psql(t, to, script(t, "CREATE TABLE old (a int)"))
	d, _ := dumped(t, from)
	user := connectTo(t, to)
	err := load(t, to, d, false)
	if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "postgres from 127.0.0.1") {
		t.Fatalf("load into a database in use: %v", err)
	}
	var n int
	if err := user.QueryRow(context.Background(), "SELECT count(*) FROM old").Scan(&n); err != nil {
		t.Errorf("the user was disturbed: %v", err)
	}
	if err := load(t, to, d, true); err != nil {
		t.Fatal(err)
	}
	if err := user.Ping(context.Background()); err == nil {
		t.Error("the user is still connected")
	}
	same(t, from, to)
}

// A load that fails late leaves only the old database.
func TestFailedRestoreLeavesNothing(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	to, _ := servertest.CrashingPostgres(t)
	psql(t, from, script(t, odd))
	psql(t, to, script(t, "CREATE TABLE old (a int); INSERT INTO old VALUES (1)"))
	d, b := dumped(t, from)
	before := rows(t, to)
	wrong := d
	wrong.Info.Tables = append([]engine.Table{{Schema: "public", Name: "part_1", Rows: 99}}, d.Info.Tables...)
	for name, bad := range map[string]engine.Dump{
		"cut":              dumpOf(b[:len(b)*3/4], d.Info),
		"no dump":          dumpOf([]byte("hello"), d.Info),
		"other row counts": wrong,
	} {
		if err := load(t, to, bad, false); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
	if after := rows(t, to); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the old database changed")
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestEmptyDatabases checks that only a database without any object or setting counts as empty.
func TestEmptyDatabases(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	check := func(want bool, after string) {
		t.Helper()
		if info, err := (Engine{}).Check(t.Context(), url); err != nil || info.Empty != want {
			t.Errorf("empty after %q: %v, %v", after, info.Empty, err)
		}
	}
	check(true, "CREATE DATABASE")
	psql(t, url, script(t, "CREATE TEMP TABLE t (a int)"))
	check(true, "a temporary table")
	name := url[strings.LastIndex(url, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	for _, c := range [][2]string{
		{"CREATE TABLE t (a int)", "DROP TABLE t"},
		{"CREATE SCHEMA s", "DROP SCHEMA s"},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION f()"},
		{"CREATE TYPE mood AS ENUM ('sad')", "DROP TYPE mood"},
		{"SELECT lo_create(77)", "SELECT lo_unlink(77)"},
		{"CREATE FOREIGN DATA WRAPPER far", "DROP FOREIGN DATA WRAPPER far"},
		{"CREATE PUBLICATION p FOR ALL TABLES", "DROP PUBLICATION p"},
		{"ALTER DATABASE " + name + " SET work_mem = '8MB'", "ALTER DATABASE " + name + " RESET ALL"},
	} {
		psql(t, url, script(t, c[0]))
		check(false, c[0])
		psql(t, url, script(t, c[1]))
		check(true, c[1])
	}
}

func TestCheckAndErrors(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	psql(t, url, script(t, "CREATE TABLE t (a int); CREATE ROLE weak LOGIN; CREATE TABLE hidden (a int)"))
	info, err := Engine{}.Check(t.Context(), url)
	if err != nil || !info.Exists || info.Size == 0 || major(info.ServerVersion) < 10 || len(info.Tables) != 2 ||
		info.Properties["encoding"] != "UTF8" {
		t.Errorf("%+v, %v", info, err)
	}
	none := strings.Replace(url, "/test_", "/nope_", 1)
	if info, err := (Engine{}).Check(t.Context(), none); err != nil || info.Exists || info.ServerVersion == "" {
		t.Errorf("a missing database: %+v, %v", info, err)
	}
	dump := func(url string) error {
		_, err := Engine{}.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1})
		return err
	}
	empty := Engine{Tools: []string{t.TempDir()}}
	_, noTool := empty.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1})
	for name, c := range map[string]struct {
		err  error
		code snap.Code
		text string
	}{
		"missing database": {dump(none), snap.CodeNotFound, "there is no database"},
		"no server":        {dump("postgres://u:s3cret@127.0.0.1:1/x"), snap.CodeDatabase, "cannot be reached"},
		"no right": {dump(strings.Replace(url, "postgres@", "weak@", 1)), snap.CodeDatabase,
			"permission denied"},
		"no URL":  {dump("postgres://u:s3cret@h:port/x"), snap.CodeUsage, "URL is invalid"},
		"no tool": {noTool, snap.CodeNoTool, "pg_dump is not in"},
	} {
		if snap.CodeOf(c.err) != c.code || !strings.Contains(c.err.Error(), c.text) ||
			strings.Contains(c.err.Error(), "s3cret") {
			t.Errorf("%s: %s: %v", name, snap.CodeOf(c.err), c.err)
		}
	}
	psql(t, url, script(t, "DROP ROLE weak"))
}

// The password goes through the environment, never into an argument.
func TestPasswordIsNoArgument(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"postgres://u:s3cret@h/db?sslmode=disable", "postgres://u@h/db?password=s3cret",
		"host=h user=u password=s3cret dbname=db"} {
		d, err := parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := tool{path: "/bin/true"}.command(t.Context(), d, "--x")
		if args := strings.Join(cmd.Args, " "); strings.Contains(args, "s3cret") || !strings.Contains(args, "u@h") ||
			!strings.Contains(args, "/db") {
			t.Errorf("%s: %s", raw, args)
		}
		if env := strings.Join(cmd.Env, "\n"); !strings.Contains(env, "PGPASSWORD=s3cret") {
			t.Errorf("%s: no password in the environment", raw)
		}
		if !strings.Contains(d.url(), "u:s3cret@h") {
			t.Errorf("url() = %s", d.url())
		}
	}
}

// The URL of a clone names its server, even if the configured URL takes it from a service file.
func TestURLNamesItsServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "services")
	for service, want := range map[string]string{
		"host=db.test\nport=5433\nuser=me": "postgres://me@db.test:5433/c1?service=prod",
		"host=/run/pg\nport=5433\nuser=me": "postgres://me@/c1?host=%2Frun%2Fpg&port=5433&service=prod",
	} {
		if err := os.WriteFile(file, []byte("[prod]\n"+service+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Engine{}.Named("postgres:///x?service=prod&servicefile="+file, "c1")
		if err != nil || got != want {
			t.Errorf("%q: %s, %v; want %s", service, got, err, want)
		}
	}
}

// The URL's connect_timeout also applies to PostgreSQL's programs.
func TestConnectTimeoutOfTheURL(t *testing.T) {
	t.Parallel()
	d, err := parse("postgres://u@h/db?connect_timeout=145")
	if err != nil {
		t.Fatal(err)
	}
	if d.config.ConnectTimeout != 145*time.Second ||
		!slices.Contains(d.environment(), "PGCONNECT_TIMEOUT=145") {
		t.Errorf("%v, %q", d.config.ConnectTimeout, d.environment())
	}
}

// Indexes of tables with partitions of partitions are valid after each load, whatever the load's
// concurrent connections do.
func TestIndexesOfDeepPartitions(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	const text = `CREATE TABLE event (id int, at int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
		CREATE TABLE event_old PARTITION OF event FOR VALUES FROM (MINVALUE) TO (10);
		CREATE TABLE event_mid PARTITION OF event FOR VALUES FROM (10) TO (20) PARTITION BY HASH (id);
		CREATE TABLE event_mid_0 PARTITION OF event_mid FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE event_mid_1 PARTITION OF event_mid FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE event_rest PARTITION OF event DEFAULT;
		CREATE TABLE detail (id int, at int, FOREIGN KEY (id, at) REFERENCES event);
		INSERT INTO event SELECT n, n FROM generate_series(1, 30) n; INSERT INTO detail SELECT * FROM event`
	execute(t, from, text)
	var b bytes.Buffer
	info, err := Engine{}.Dump(t.Context(), from, &b, engine.Options{Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 12 {
		d := engine.Dump{Info: info, Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b.Bytes())), nil
		}}
		s, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 2, TempDir: t.TempDir()})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := s.Swap(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if got := texts(t, to, "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"); len(got) > 0 {
			t.Errorf("round %d: invalid indexes: %v", round, got)
		}
	}
}
