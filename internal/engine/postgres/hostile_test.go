package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// victim is a server for one test, with another database and a role that an attack could reach.
type victim struct {
	url   string
	plain string // URL of a user who may create databases and nothing else
	files string // a folder that the server can write to
}

func newVictim(t *testing.T) victim {
	t.Helper()
	url, _ := servertest.CrashingPostgres(t)
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	psql(t, url,
		script(t,
			"CREATE ROLE plain LOGIN CREATEDB PASSWORD 'plain'; CREATE DATABASE prod OWNER plain; CREATE DATABASE "+
				"dev OWNER "+
				"plain"))
	v := victim{url: url, plain: strings.Replace(strings.Replace(url, "postgres@", "plain:plain@", 1), "/test", "/dev",
		1), files: dir}
	psql(t, strings.Replace(url, "/test", "/prod", 1),
		script(t, "CREATE TABLE users (a text); INSERT INTO users VALUES ('secret')"))
	return v
}

// state returns everything that an attack must not change: files, other databases, roles,
// memberships and settings.
func (v victim) state(t *testing.T) string {
	t.Helper()
	conns := v.connect(t)
	defer conns[0].Close(t.Context())
	defer conns[1].Close(t.Context()) // so that an attack could rename the database
	return v.stateIn(t, conns)
}

// connect opens connections to the databases postgres and prod of the server.
func (v victim) connect(t *testing.T) (conns [2]*pgx.Conn) {
	t.Helper()
	for i, name := range []string{"/postgres", "/prod"} {
		conns[i] = connectTo(t, strings.Replace(v.url, "/test", name, 1))
	}
	return conns
}

// stateIn is like state, with existing connections.
func (v victim) stateIn(t *testing.T, conns [2]*pgx.Conn) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(v.files, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, query := range []string{
		`SELECT rolname || ' ' || a::text FROM pg_authid a WHERE rolname NOT LIKE 'snapcli\_%'
		UNION ALL SELECT rolname::text FROM pg_authid WHERE rolname LIKE 'snapcli\_%' AND (rolsuper
			OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls OR rolcanlogin)
		UNION ALL SELECT datname || ' ' || pg_get_userbyid(datdba) || CASE WHEN datname IN ('dev',
			'test') THEN '' ELSE coalesce(datacl::text, '') END FROM pg_database WHERE datname NOT LIKE 'snapcli\_%'
		UNION ALL SELECT setdatabase || ' ' || setrole ||
			setconfig::text FROM pg_db_role_setting WHERE setdatabase = 0 OR setdatabase IN (SELECT oid
				FROM pg_database WHERE datname IN ('prod', 'test', 'postgres', 'template1'))
		UNION ALL SELECT pg_get_userbyid(member) || ' in ' ||
			pg_get_userbyid(roleid) FROM pg_auth_members WHERE pg_get_userbyid(roleid) NOT LIKE 'snapcli\_%'
				OR pg_get_userbyid(member) LIKE 'snapcli\_%'
		UNION ALL SELECT name || '=' || coalesce(setting, '') FROM pg_file_settings UNION ALL SELECT name || '=' ||
			coalesce(setting, '') FROM pg_settings
		UNION ALL SELECT spcname::text FROM pg_tablespace UNION ALL SELECT relname::text FROM pg_class
			WHERE oid >= 16384 UNION ALL SELECT proname::text FROM pg_proc WHERE oid >= 16384 ORDER BY 1`,
		`SELECT a FROM users UNION ALL SELECT relname::text FROM pg_class WHERE oid >= 16384
			UNION ALL SELECT proname::text FROM pg_proc WHERE oid >= 16384 ORDER BY 1`,
	} {
		rows, err := conns[i].Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, all...)
	}
	return strings.Join(found, "\n")
}

// way is one way to load a dump.
type way struct {
	trust        engine.Trust
	withPrograms bool
}

// everyWay lists the degrees of trust that a hostile dump can have.
var everyWay = []way{{engine.Foreign, true}, {engine.Ours, false}, {engine.Foreign, false}}

// attack loads a dump in each of the given ways, as the user of each URL, and returns the errors of
// the loads. Nothing else may change.
func (v victim) attack(t *testing.T, what string, d engine.Dump, urls []string, ways ...way) (failed error) {
	t.Helper()
	before := v.state(t)
	for _, url := range urls {
		for _, how := range ways {
			d.Trust, d.WithPrograms = how.trust, how.withPrograms
			err := load(t, url, d, true)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%v as %s: %w", how, url, err))
			}
			if after := v.state(t); after != before {
				t.Fatalf("%s (%v, %v) changed the server:\n%s\nbefore\n%s", what, how, err, without(after, before),
					without(before, after))
			}
		}
	}
	return failed
}

// without returns the lines that only the first string has.
func without(text, other string) string {
	has := strings.Split(other, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(text, "\n"),
		func(line string) bool { return slices.Contains(has, line) }), "\n")
}

// Programs of every kind try to reach beyond their database. Each is in the dump as a hostile
// database would contain it.
func TestHostilePrograms(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	tries := ""
	for i, evil := range []string{
		"COPY (SELECT 1) TO PROGRAM 'cat >" + v.files + "/program'", "COPY (SELECT 1) TO '" + v.files +
			"/copy'", "ALTER ROLE plain PASSWORD 'owned'", "ALTER ROLE postgres RENAME TO owned",
		"CREATE ROLE evil SUPERUSER",
		"RESET ROLE", "SET ROLE postgres",
		"SET SESSION AUTHORIZATION DEFAULT", "RESET SESSION AUTHORIZATION", "ALTER SYSTEM SET work_mem = '1GB'",
		"ALTER DATABASE prod SET work_mem = '1GB'", "ALTER DATABASE prod RENAME TO gone", "CREATE EXTENSION dblink",
		"CREATE EXTENSION file_fdw",
		"SELECT lo_export(1, '" + v.files + "/lo')", "SELECT pg_read_file('/etc/passwd')",
		"SELECT set_config('role', 'postgres', false)", "SELECT set_config('session_authorization', 'postgres', false)",
		"GRANT pg_execute_server_program TO PUBLIC", "GRANT postgres TO plain",
		"ALTER ROLE plain SET session_preload_libraries = 'x'", "LOAD '/tmp/x.so'",
		"CREATE TABLESPACE evil LOCATION '" +
			v.files + "'", "COPY (SELECT 1) TO PROGRAM 'cat >" + v.files + "/program'", // again, in another role
	} {
		tries += fmt.Sprintf("BEGIN EXECUTE %s; EXCEPTION WHEN OTHERS THEN NULL; END; /* %d */\n", quoteText(evil), i)
	}
	base := `CREATE FUNCTION work(x int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN x; END $$;
		CREATE FUNCTION calm(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN public.work(x); END $$;
		CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2);
		CREATE FUNCTION trg() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;`
	evil := `CREATE FUNCTION public.work(x int) RETURNS int LANGUAGE plpgsql %s AS $body$ BEGIN IF ` +
		`current_database() LIKE 'snapcli%%' OR current_database() IN ('dev', 'test') THEN ` + strings.ReplaceAll(tries,
		"%", "%%") + ` END IF; RETURN x; END $body$;`
	var real engine.Dump
	for name, text := range map[string]string{
		"index": "CREATE INDEX ON t (calm(a));", "predicate": "CREATE INDEX ON t (a) WHERE calm(a) > 0;",
		"check": "ALTER TABLE t ADD CHECK (calm(a) > 0);", "default": "ALTER TABLE t ADD b int DEFAULT calm(1);",
		"generated":         "ALTER TABLE t ADD b int GENERATED ALWAYS AS (calm(a)) STORED;",
		"materialized view": "CREATE MATERIALIZED VIEW m AS SELECT calm(a) FROM t;",
		"domain":            "CREATE DOMAIN d AS int CHECK (calm(value) > 0); ALTER TABLE t ADD b d DEFAULT 1;",
		"view":              "CREATE VIEW v AS SELECT calm(a) FROM t;",
		"rule":              "CREATE RULE r AS ON INSERT TO t DO ALSO SELECT calm(1);",
		"policy": "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON t USING " +
			"(calm(a) > 0);",
		"trigger": "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION trg(); ALTER TABLE t ENABLE " +
			"ALWAYS TRIGGER tr;",
		"event trigger": "CREATE FUNCTION ev() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM calm(1); " +
			"END $$; CREATE EVENT TRIGGER ev ON ddl_command_end EXECUTE FUNCTION ev();",
		"cast": "CREATE TYPE mood AS ENUM ('1'); CREATE FUNCTION tomood(x int) RETURNS mood LANGUAGE sql AS $$ " +
			"SELECT calm(1)::text::mood $$; CREATE CAST (int AS mood) WITH FUNCTION tomood(int) AS IMPLICIT;",
		"aggregate": "CREATE AGGREGATE agg(int) (SFUNC = int4pl, STYPE = int);",
		"partition": "CREATE TABLE parts (a int) PARTITION BY RANGE (calm(a)); CREATE TABLE parts_1 PARTITION OF " +
			"parts FOR VALUES FROM (0) TO (10);", "statistics": "CREATE STATISTICS st ON (calm(a)), a FROM t;",
		"operator": "CREATE FUNCTION opf(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT " +
			"public.calm($1) > 0 $$; CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = opf); " +
			"ALTER TABLE t ADD CHECK (a ### a);",
	} {
		definer := map[bool]string{true: "SECURITY DEFINER", false: ""}[len(name)%2 == 0]
		psql(t, v.url,
			script(t,
				"DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC;"+base+text))
		d, raw := dumped(t, v.url)
		calm := []byte("CREATE FUNCTION public.work(x integer) RETURNS integer\n    LANGUAGE plpgsql\n    AS $$ " +
			"BEGIN RETURN x; END $$;")
		hostile := fmt.Sprintf(evil, definer)
		changed := changeContents(t, raw, func(i int, e [][]byte) {
			e[definitionField] = bytes.Replace(e[definitionField], calm, []byte(hostile), 1)
		})
		err := v.attack(t, name, dumpOf(changed, d.Info), []string{v.url}, way{engine.Ours, false})
		if slices.Contains([]string{"index", "domain", "partition"}, name) {
			err = errors.Join(err,
				v.attack(t, name, dumpOf(changed, d.Info), []string{v.plain, v.url}, way{engine.Foreign, false}),
				v.attack(t, name, dumpOf(changed, d.Info), []string{v.url}, way{engine.Foreign, true}))
			_ = v.attack(t, name, dumpOf(changed, d.Info), []string{v.plain}, way{engine.Foreign, true}) // is refused
		}
		if err != nil {
			t.Errorf("%s: not loaded: %v", name, err)
		}
		if name == "index" {
			real = dumpOf(changed, d.Info)
		}
	}
	// When the dump is loaded as the user's own snapshot, the attack succeeds, which proves that
	// the attack is real.
	if err := load(t, v.url, real, true); len(linesOf(t, v.url,
		"SELECT datname::text FROM pg_database WHERE datname = 'gone'")) == 0 {
		t.Errorf("the attack does nothing to those who load it as their own: %v", err)
	}
}

// The test adds statements to definitions, names, rows and settings in the table of contents. In
// every way, the snapshot loads or fails, and no added statement runs.
func TestHostileContentsOnAServer(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	psql(t, v.url,
		script(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO PUBLIC;"+odd))
	d, raw := dumped(t, v.url)
	random := rand.New(rand.NewPCG(1, 2))
	attacks := []string{
		"; COPY (SELECT 1) TO PROGRAM 'cat >" + v.files + "/program';", "; DROP DATABASE prod;",
		"; ALTER ROLE plain PASSWORD 'owned';", "\n\\! touch " + v.files +
			"/psql\n", "; SET ROLE postgres; CREATE ROLE evil SUPERUSER;", "\n; DROP DATABASE prod; --",
		"\r\nDROP DATABASE prod;\r\n",
		"'; DROP DATABASE prod; --",
		`"; DROP DATABASE prod; --`, "$$; DROP DATABASE prod; --", "*/ DROP DATABASE prod; /*",
		"\x00; DROP DATABASE prod;", "; ALTER SYSTEM SET work_mem = '1GB';", "; CREATE TABLE prod.public.x (a int);",
		"; ALTER DATABASE prod OWNER TO postgres;",
	}
	for range 5 {
		what := attacks[random.IntN(len(attacks))]
		field, share := random.IntN(10), random.IntN(8)
		changed := changeContents(t, raw, func(i int, e [][]byte) {
			if at := textFields[field%len(textFields)]; (i+share)%4 == 0 && e[at] != nil {
				e[at] = append(slices.Clone(e[at]), what...)
			}
		})
		_ = v.attack(t, fmt.Sprintf("field %d with %q", field, what), dumpOf(changed, d.Info), []string{v.plain, v.url},
			everyWay...)
	}
}

// Descriptions that lie about the rows, or about themselves, are refused.
func TestHostileDescriptionsOnAServer(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	to, _ := servertest.CrashingPostgres(t)
	psql(t, from,
		script(t,
			"CREATE TYPE mood AS ENUM ('a'); CREATE TABLE t (a int PRIMARY KEY, m mood); CREATE TABLE u (b text); "+
				"INSERT "+
				"INTO t VALUES (1, 'a')"))
	d, _ := dumped(t, from)
	for name, change := range map[string]func(s *schema.Schema){
		"a column is missing": func(s *schema.Schema) { s.Tables[0].Columns = s.Tables[0].Columns[:1] },
		"another type":        func(s *schema.Schema) { s.Tables[0].Columns[1].Type = schema.Type{Name: "regclass"} },
		"unknown type":        func(s *schema.Schema) { s.Enums = nil },
		"twice":               func(s *schema.Schema) { s.Tables = append(s.Tables, s.Tables[0]) },
		"catalog": func(s *schema.Schema) {
			s.Namespaces = append(s.Namespaces,
				schema.Namespace{Name: "pg_evil"})
		},
		"catalog's table": func(s *schema.Schema) {
			s.Tables[1].Name = schema.Name{Schema: "pg_catalog",
				Name: "pg_authid"}
		}, "NUL": func(s *schema.Schema) { s.Tables[0].Columns[0].Name = "a\x00b" },
		"long":       func(s *schema.Schema) { s.Tables[1].Name.Name = strings.Repeat("u", 64) },
		"look-alike": func(s *schema.Schema) { s.Tables[0].Columns[0].Name = "\u0430" },
		"extension": func(s *schema.Schema) {
			s.Extensions = []schema.Extension{{Name: "file_fdw", Schema: "public"}}
		}, "in itself": func(s *schema.Schema) { s.Tables[0].Inherits = []schema.Name{s.Tables[0].Name} },
		"function": func(s *schema.Schema) { s.Tables[1].Columns[0].Default = &schema.Expr{Call: "pg_read_file"} },
	} {
		bad := d
		bad.Info.Schema = describeAgain(t, from)
		change(bad.Info.Schema)
		if err := load(t, to, foreign(bad), false); snap.CodeOf(err) != snap.CodeCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func describeAgain(t *testing.T, url string) *schema.Schema {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(t.Context())
	s, err := describeSchema(t.Context(), conn.PgConn())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The positions of strings in an entry of a dump's table of contents.
const (
	descField       = 3
	definitionField = 4
)

var textFields = []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 4}

// changeContents changes the strings of the entries of a dump of version 1.14, 1.15 or 1.16. A
// missing string is nil.
func changeContents(t *testing.T, dump []byte, change func(i int, texts [][]byte)) []byte {
	t.Helper()
	if string(dump[:5]) != "PGDMP" || dump[6] < 14 || dump[6] > 16 {
		t.Fatalf("a dump of the version %d", dump[6])
	}
	in, version := bytes.NewReader(dump), dump[6]
	var out bytes.Buffer
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := in.Read(b); err != nil && n > 0 {
			t.Fatal(err)
		}
		return b
	}
	integer := func() int {
		b := read(5)
		n := int(binary.LittleEndian.Uint32(b[1:]))
		if b[0] != 0 {
			n = -n
		}
		return n
	}
	text := func() []byte {
		if n := integer(); n >= 0 {
			return read(n)
		}
		return nil
	}
	putInt := func(n int) {
		sign := byte(0)
		if n < 0 {
			sign, n = 1, -n
		}
		out.Write(binary.LittleEndian.AppendUint32([]byte{sign}, uint32(n)))
	}
	putText := func(b []byte) {
		if b == nil {
			putInt(-1)
			return
		}
		putInt(len(b))
		out.Write(b)
	}
	out.Write(read(11))
	if version >= 15 {
		out.Write(read(1))
	} else {
		putInt(integer())
	}
	for range 7 {
		putInt(integer())
	}
	for range 3 {
		putText(text())
	}
	count := integer()
	putInt(count)
	for i := range count {
		putInt(integer()) // its number
		putInt(integer()) // whether it has data
		texts := [][]byte{text(), text(), text(), text()}
		section := integer()
		for range 6 { // definition, drop, copy, namespace, tablespace, access method
			texts = append(texts, text())
		}
		kind := 0
		if version >= 16 {
			kind = integer()
		}
		texts = append(texts, text()) // owner
		change(i, texts)
		for _, b := range texts[:4] {
			putText(b)
		}
		putInt(section)
		for _, b := range texts[4:10] {
			putText(b)
		}
		if version >= 16 {
			putInt(kind)
		}
		putText(texts[10])
		putText(text()) // whether it has oids
		for {
			dependency := text()
			putText(dependency)
			if dependency == nil {
				break
			}
		}
		out.Write(read(9))
	}
	out.Write(dump[len(dump)-in.Len():])
	return out.Bytes()
}

// planted creates functions, an operator and a cast. If the search path includes the schema
// public, they match calls better than PostgreSQL's own functions do.
const planted = `CREATE FUNCTION called() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION
	'a function of the database was called'; END $$;
	CREATE TYPE mood AS ENUM ('happy', 'sad');
	CREATE FUNCTION concat_ws(text, text) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION concat_ws(text, mood) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION substr(text, bigint, int) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION quote_ident(name) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION format(text, name, name) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION format(text, text, text) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE FUNCTION same(mood, mood) RETURNS boolean LANGUAGE sql AS $$ SELECT public.called() IS NULL $$;
	CREATE OPERATOR = (LEFTARG = mood, RIGHTARG = mood, FUNCTION = same);
	CREATE FUNCTION word(mood) RETURNS text LANGUAGE sql AS $$ SELECT public.called() $$;
	CREATE CAST (mood AS text) WITH FUNCTION word(mood);
	CREATE TABLE parent (m mood PRIMARY KEY, n int UNIQUE); INSERT INTO parent VALUES ('happy', 1), ('sad', 2);
	CREATE TABLE child (id int PRIMARY KEY, m mood REFERENCES parent, n int REFERENCES parent (n)); INSERT INTO child
		VALUES (1, 'happy', 2), (2, 'sad', 1);
	CREATE TABLE unkeyed (m mood, t text); INSERT INTO unkeyed VALUES ('sad', 'x');`

// Functions that somebody planted in a database are not called when a superuser builds a
// snapshot or a subset of it.
func TestPlantedFunctionsAreNotCalled(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	psql(t, from, script(t, planted))
	for _, s := range []*engine.Subset{nil, {Percent: 99}, {Where: map[string]string{"child": "id = 1"}, Percent: 99}} {
		var b bytes.Buffer
		info, err := Engine{}.Dump(t.Context(), from, &b, engine.Options{Jobs: 1, Subset: s})
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		if err := load(t, servertest.Postgres(t), dumpOf(b.Bytes(), info), false); err != nil {
			t.Errorf("load of %+v: %v", s, err)
		}
	}
	if _, err := (Engine{}).Check(t.Context(), from); err != nil {
		t.Error(err)
	}
}

// A superuser's subset is refused if planning or running its queries could call a function of an
// ordinary user. The whole database can be built, and so can a subset without the table.
func TestPlantedFunctionsAreNotPlanned(t *testing.T) {
	t.Parallel()
	url, _ := servertest.CrashingPostgres(t)
	psql(t, url, script(t, "CREATE ROLE planter; ALTER DATABASE test SET constraint_exclusion = on"))
	for name, text := range map[string]string{
		"index":      "CREATE TABLE t (a text PRIMARY KEY); CREATE INDEX ON t ((evil('x')))",
		"predicate":  "CREATE TABLE t (a text PRIMARY KEY); CREATE INDEX ON t (a) WHERE evil('x') > ''",
		"statistics": "CREATE TABLE t (a text PRIMARY KEY); CREATE STATISTICS s ON (evil('x')), a FROM t",
		"operator": "CREATE TABLE t (a text PRIMARY KEY); CREATE OPERATOR ### (RIGHTARG = text, FUNCTION = evil); " +
			"CREATE INDEX ON t ((### 'x'::text))",
		"partition key": "CREATE TABLE t (a text) PARTITION BY LIST ((a || evil('x'))); CREATE TABLE t1 PARTITION OF " +
			"t DEFAULT",
		"nothing": "CREATE TABLE t (a text PRIMARY KEY CHECK (evil('x') = 'x')); CREATE TABLE q (a text CHECK " +
			"(evil('x') = 'x')) PARTITION BY LIST (a); CREATE TABLE q1 PARTITION OF q DEFAULT",
		"cast": "CREATE TYPE mood AS ENUM ('happy'); CREATE FUNCTION word(mood) RETURNS text LANGUAGE sql AS $$ " +
			"SELECT public.evil('happy') $$; CREATE CAST (mood AS text) WITH FUNCTION word(mood) AS IMPLICIT; CREATE " +
			"TABLE p (a text PRIMARY KEY); CREATE TABLE t (m mood REFERENCES p); SET ROLE planter; INSERT INTO p " +
			"VALUES ('happy'); INSERT INTO t VALUES ('happy')",
	} {
		psql(t, url, script(t, "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO "+
			"PUBLIC; SET SESSION AUTHORIZATION planter; CREATE FUNCTION "+
			"evil(x text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF current_user <> 'planter' THEN RAISE "+
			"EXCEPTION 'a function of the database was called'; END IF; RETURN x; END $$; "+text+"; CREATE TABLE "+
			"other (id int PRIMARY KEY)"))
		_, err := subsetOf(t, url, engine.Subset{Percent: 10})
		if name != "nothing" && (snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), "of planter")) ||
			name == "nothing" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, o := range []engine.Options{{}, {Subset: &engine.Subset{Percent: 10},
			Choice: engine.Choice{Exclude: []string{"t"}}}} {
			if name == "cast" && o.Subset != nil {
				continue
			}
			if _, err := (Engine{}).Dump(t.Context(), url, io.Discard, o); err != nil {
				t.Errorf("%s, %+v: %v", name, o, err)
			}
		}
	}
}

// If somebody replaces a table or a sequence with a view while a superuser builds a snapshot, the
// build begins again or fails, without running the view's functions.
func TestViewsInPlaceOfTablesAreNotRead(t *testing.T) {
	t.Parallel()
	const called = "a function of the database was called"
	evil := "CREATE FUNCTION evil() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '" + called + "'; END $$;"
	for _, v := range []int{13, 15, 18} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			url := servertest.PostgresVersion(t, v)
			e, _ := with(t, v)
			psql(t, url, script(t, evil+"CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1), (2), (3); "+
				"CREATE SEQUENCE s; CREATE VIEW chosen AS SELECT 1 AS id"))
			const table = "ALTER TABLE a RENAME TO a2; CREATE VIEW a AS SELECT public.evil() AS id, 1 AS tableoid, " +
				"'(0,1)'::tid AS ctid"
			for _, c := range []struct {
				swap, back string
				subset     *engine.Subset
			}{
				{"ALTER SEQUENCE s RENAME TO s2; CREATE VIEW s AS SELECT public.evil() AS last_value, " +
					"true AS is_called", "DROP VIEW s; ALTER SEQUENCE s2 RENAME TO s", nil},
				{table, "DROP VIEW a; ALTER TABLE a2 RENAME TO a", &engine.Subset{Percent: 50}},
				{table, "DROP VIEW a; ALTER TABLE a2 RENAME TO a",
					&engine.Subset{Where: map[string]string{"a": "id IN (SELECT id FROM chosen)"}}},
			} {
				err := e.buildWhile(t, url, c.swap, c.subset)
				if err != nil && strings.Contains(err.Error(), called) {
					t.Errorf("%s: %v", c.swap, err)
				}
				psql(t, url, script(t, c.back))
				_, err = e.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1, Subset: c.subset})
				if err != nil {
					t.Errorf("a build after %s: %v", c.back, err)
				}
			}
		})
	}
}

// buildWhile builds a snapshot while another session runs statements in a transaction that it
// commits when the build waits for it.
func (e Engine) buildWhile(t *testing.T, url, statements string, s *engine.Subset) error {
	t.Helper()
	other := connectTo(t, url)
	defer other.Close(context.Background())
	if _, err := other.Exec(t.Context(), "BEGIN; "+statements); err != nil {
		t.Fatal(err)
	}
	built := make(chan error, 1)
	go func() {
		_, err := e.Dump(t.Context(), url, io.Discard, engine.Options{Jobs: 1, Subset: s})
		built <- err
	}()
	for waiting := 0; waiting == 0 && len(built) == 0; {
		if err := other.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "+
			"(SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	return <-built
}

// Reading somebody else's table of contents needs little memory, however large it is.
func TestLargeContentsAreRefused(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	number := func(n int) []byte {
		sign := byte(0)
		if n < 0 {
			sign, n = 1, -n
		}
		return binary.LittleEndian.AppendUint32([]byte{sign}, uint32(n))
	}
	text := func(s string) []byte { return append(number(len(s)), s...) }
	entry := func(definition string, dependencies int) []byte {
		b := append(number(1), number(0)...)
		for _, s := range []string{"0", "0", "f()", "FUNCTION"} {
			b = append(b, text(s)...)
		}
		b = append(b, number(2)...)
		for _, s := range []string{definition, "", "", "public", "", "", "me", "false"} {
			b = append(b, text(s)...)
		}
		b = append(b, bytes.Repeat(text(strings.Repeat("1", 20)), dependencies)...)
		return append(append(b, number(-1)...), make([]byte, 9)...)
	}
	head := append([]byte("PGDMP\x01\x0e\x00\x04\x08\x01"), bytes.Repeat(number(0), 8)...)
	head = append(head, bytes.Repeat(text(""), 3)...)
	for name, contents := range map[string][]byte{
		"many entries":      append(number(70_000), bytes.Repeat(entry("", 0), 70_000)...),
		"a long definition": append(number(1), entry(strings.Repeat("x", maxContents+1), 0)...),
		"many dependencies": append(number(1), entry("", maxContents/20+1)...),
	} {
		raw := append(slices.Clone(head), contents...)
		d := dumpOf(raw, engine.Info{Schema: &schema.Schema{}})
		d.Trust = engine.Foreign
		read := &countingReader{}
		d.Open = func() (io.ReadCloser, error) {
			read.Reader = bytes.NewReader(raw)
			return io.NopCloser(read), nil
		}
		_, inspected := Engine{}.Inspect(t.Context(), d, 1, engine.Options{})
		_, rewritten := Engine{}.Rewrite(t.Context(), d, engine.Plan{}, io.Discard, engine.Options{})
		for _, err := range []error{inspected, rewritten} {
			if !errors.Is(err, errLargeContents) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if read.n > 2*(maxContents+4<<20) {
			t.Errorf("%s: %d bytes were read", name, read.n)
		}
		d.Trust = engine.Mine
		if _, err := (Engine{}).Inspect(t.Context(), d, 1, engine.Options{}); errors.Is(err, errLargeContents) {
			t.Errorf("%s of one's own: %v", name, err)
		}
	}
}

// countingReader counts the bytes that it reads.
type countingReader struct {
	io.Reader
	n int
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}
