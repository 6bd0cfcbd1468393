package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// ours returns the dump marked as coming from the user's own organization.
func ours(d engine.Dump) engine.Dump {
	d.Trust = engine.Ours
	return d
}

// A snapshot of the user's own organization is loaded with its programs. A role without other
// rights owns them, and the user can use all of them.
func TestOurSnapshotIsLoadedByARole(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, odd+data2))
	d, _ := dumped(t, from)
	if err := load(t, to, ours(d), false); err != nil {
		t.Fatal(err)
	}
	same(t, from, to)
	owners := linesOf(t, to,
		"SELECT DISTINCT pg_get_userbyid(relowner)::text || ' ' || rolsuper || rolcanlogin || rolcreatedb || "+
			"rolcreaterole FROM pg_class JOIN pg_roles r ON r.oid = relowner WHERE relnamespace = "+
			"'public'::regnamespace")
	if len(owners) != 1 || !strings.HasPrefix(owners[0], rolePrefix) ||
		!strings.HasSuffix(owners[0], " falsefalsefalsefalse") {
		t.Errorf("the tables belong to %v", owners)
	}
	psql(t, to, script(t, "INSERT INTO a1 VALUES (7); DROP TABLE part CASCADE; SELECT f(1)"))
	again := dumpOf(nil, d.Info)
	again.Open, again.Size = d.Open, d.Size
	if err := load(t, to, foreign(again), true); err != nil {
		t.Fatal(err)
	}
	whenDropped(t, to, owners[0][:len(rolePrefix)+16])
	left := func() []string {
		return linesOf(t, to, "SELECT rolname::text FROM pg_roles WHERE rolname = '"+owners[0][:len(rolePrefix)+16]+"'")
	}
	for len(left()) > 0 { // another test's sweep may hold the role's lock
		if err := load(t, to, foreign(again), true); err != nil { // a load cleans up
			t.Fatal(err)
		}
	}
}

// data2 has objects for which pg_dump writes more than one statement.
const data2 = `; CREATE EXTENSION hstore SCHEMA "Größe ""x"""; ALTER TABLE a1 ALTER b ` +
	`SET STATISTICS 5; ALTER TABLE parent ENABLE ALWAYS TRIGGER tg; CREATE INDEX cl ON a1 (b); ` +
	`ALTER TABLE a1 CLUSTER ON cl;
CREATE TEXT SEARCH CONFIGURATION cfg (COPY = simple); CREATE AGGREGATE agg(int) (SFUNC = int4pl, STYPE = int); ` +
	`CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);
CREATE FUNCTION topair(int) RETURNS mood LANGUAGE sql AS $f$ SELECT 'ok'::mood $f$; CREATE CAST (int AS mood) ` +
	`WITH FUNCTION topair(int); CREATE RULE rl AS ON INSERT TO v DO INSTEAD (SELECT 1; SELECT 2); ` +
	`ALTER TABLE parent FORCE ROW LEVEL SECURITY;
CREATE FUNCTION defs() RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = '' AS $$ SELECT 'a;b''--/*' $$; ` +
	`COMMENT ON FUNCTION defs() IS 'x; DROP'; CREATE COLLATION coll (locale = 'C')`

// Objects that need a foreign table are left out with it, and listed.
func TestOurSnapshotWithForeignTables(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, `CREATE EXTENSION postgres_fdw; CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw;
		CREATE FOREIGN TABLE ft (a int) SERVER far; COMMENT ON COLUMN ft.a IS 'x'; CREATE VIEW v AS SELECT a FROM ft;
		CREATE VIEW w AS SELECT a FROM v; COMMENT ON VIEW w IS 'x';
		CREATE MATERIALIZED VIEW m AS SELECT a FROM ft WITH NO DATA; CREATE UNIQUE INDEX i ON m (a);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER g BEFORE INSERT ON ft FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE VIEW kept AS SELECT a FROM t`))
	d, _ := dumped(t, from)
	notices, err := Engine{}.into(t, to, ours(d), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"foreign table ft", "view v", "view w", "materialized view m", "index i",
		"trigger ft g"} {
		if !slices.ContainsFunc(notices, func(s string) bool { return strings.HasSuffix(s, ": "+left) }) {
			t.Errorf("%s is not listed in %q", left, notices)
		}
	}
	loaded := linesOf(t, to, "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace "+
		"ORDER BY 1")
	if !slices.Equal(loaded, []string{"kept", "t"}) {
		t.Errorf("loaded %v", loaded)
	}
}

// Statements are split as the server splits them.
func TestStatements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"SELECT 1;": 1, "SELECT ';';": 1,
		`SELECT E'\';';`: 1, "SELECT $a$;$b$;$a$; SELECT 2;": 2, "SELECT $$;$$;": 1,
		`SELECT "a;""b";`: 1, "/* ; /* ; */ ; */ SELECT 1; -- ;": 1,
		"CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);":  1,
		"CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; SELECT 2; END;": 1, "SELECT a$1$; b$1$;": 2, "": 0, "--": 0,
		`SELECT U&'\';`:    1,
		"SELECT 'a'\n'b';": -1,
		`\! ls`:            -1, "SELECT 'a;": -1, "SELECT $$a;": -1, "/* ;": -1, "SELECT (1;": -1,
		"SELECT 1): SELECT 2;": -1, "SELECT 1": -1, "SELECT 1;\x00": -1,
		"CREATE FUNCTION f() BEGIN ATOMIC SELECT 1 AS case; END; DROP TABLE t; SELECT 1 AS end;": -1,
		"CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; END; DROP TABLE t;":                          -1,
	} {
		all, err := statements(text)
		if err != nil && want >= 0 || err == nil && len(all) != want {
			t.Errorf("%q: %d statements, %v", text, len(all), err)
		}
	}
}

// The error for a function with CASE in its BEGIN ATOMIC body names the cause.
func TestAtomicBody(t *testing.T) {
	t.Parallel()
	e := dumpEntry{id: 1, tag: "f()", desc: "FUNCTION", namespace: "public",
		definition: "CREATE FUNCTION public.f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; END;\n"}
	if _, _, err := (&review{}).entries([]dumpEntry{e}); err == nil || !strings.Contains(err.Error(), "contains CASE") {
		t.Error(err)
	}
}

// Entries whose statements do not match their kind and name are refused.
func TestReviewRefuses(t *testing.T) {
	t.Parallel()
	good := dumpEntry{id: 1, tag: "f(integer)", desc: "FUNCTION", namespace: "public",
		definition: "CREATE FUNCTION public.f(x integer) RETURNS integer\n LANGUAGE sql AS $$ SELECT 1; DROP TABLE " +
			"t; $$;\n\n\n"}
	r := &review{}
	if ids, _, err := r.entries([]dumpEntry{good}); err != nil || !slices.Equal(ids, []int{1}) {
		t.Fatalf("%v, %v", ids, err)
	}
	change := func(desc, tag, definition string) dumpEntry {
		e := good
		e.desc, e.tag, e.definition = desc, tag, definition
		return e
	}
	broken := good
	broken.broken = true
	for name, bad := range map[string]dumpEntry{
		"two statements": change("FUNCTION", "f(integer)", good.definition+"DROP DATABASE prod;"),
		"another name":   change("FUNCTION", "g(integer)", good.definition), "line break": broken,
		"another kind": change("VIEW", "f", good.definition), "do": change("FUNCTION", "f", "DO $$ BEGIN END $$;"),
		"role":        change("SCHEMA", "s", "ALTER ROLE postgres PASSWORD 'x';"),
		"set role":    change("SEARCHPATH", "SEARCHPATH", "SET ROLE postgres;"),
		"search path": change("SEARCHPATH", "SEARCHPATH", "SELECT pg_catalog.set_config('role', 'postgres', false);"),
		"copy":        change("TABLE", "t", "COPY t TO PROGRAM 'id';"),
		"psql":        change("TABLE", "t", "CREATE TABLE public.t (a int);\n\\! id\n"),
		"c": change("FUNCTION", "f(integer)",
			"CREATE FUNCTION public.f(integer) RETURNS integer LANGUAGE c AS '/tmp/x.so', 'f';"),
		"quoted c": change("FUNCTION", "f(integer)",
			`CREATE FUNCTION public.f(integer) RETURNS integer LANGUAGE "c" AS `+
				`'x';`), "string c": change("FUNCTION", "f(integer)",
			`CREATE FUNCTION public.f(integer) RETURNS integer LANGUAGE 'C' AS 'x';`),
		"select into": change("TABLE", "t", "CREATE TABLE public.t (a) AS SELECT pg_read_file('x');"),
		"setval": change("SEQUENCE SET", "s",
			"SELECT pg_catalog.setval('public.s', pg_read_file('x')::int, true);"),
		"blob":         change("BLOB", "1", "SELECT pg_catalog.lo_create(lo_import('/etc/passwd'));"),
		"lo":           change("BLOBS", "BLOBS", "SELECT lo_import('/etc/passwd');"),
		"encoding":     change("ENCODING", "ENCODING", "SET client_encoding = 'SJIS';"),
		"strings":      change("STDSTRINGS", "STDSTRINGS", "SET standard_conforming_strings = 'off';"),
		"other schema": change("VIEW", "v", "CREATE VIEW pg_catalog.v AS SELECT 1;"),
		"three names":  change("VIEW", "v", "CREATE VIEW prod.public.v AS SELECT 1;"),
		"unknown":      change("DATABASE FILE", "x", "SELECT 1;"),
		"comment":      change("COMMENT", "TABLE t", "COMMENT ON TABLE t IS 'x'; DROP TABLE t;"),
		"extension":    change("EXTENSION", "dblink", "CREATE EXTENSION dblink; DROP TABLE t;"),
		"look alike":   change("VIEW", "v", "CREATE VIEW public.\"v\u200b\" AS SELECT 1;"),
		"rows": {id: 1, desc: "TABLE DATA", tag: "t", namespace: "public",
			copy: "COPY public.t (a) FROM PROGRAM 'id';"},
		"query":     {id: 1, desc: "TABLE DATA", tag: "t", copy: "COPY (SELECT 1) TO '/tmp/x';"},
		"more rows": {id: 1, desc: "TABLE DATA", tag: "t", copy: "COPY t FROM stdin; DROP TABLE t;"},
		"default":   change("DEFAULT", "t a", "ALTER TABLE ONLY public.t OWNER TO postgres;"),
		"base type": change("TYPE", "x", "CREATE TYPE public.x (INPUT = a, OUTPUT = b);"),
	} {
		if _, _, err := (&review{}).entries([]dumpEntry{bad}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, _, err := r.entries([]dumpEntry{good, good}); err == nil {
		t.Error("the same number twice is accepted")
	}
	superuser := change("EVENT TRIGGER", "et", "anything")
	if ids, _, err := r.entries([]dumpEntry{superuser}); err != nil || len(ids) > 0 || len(r.leftOut) != 1 {
		t.Errorf("%v, %v", ids, err)
	}
}

// SQL that has only comments is reported, because it masks nothing.
func TestSQLWithoutStatements(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE t (a text); CREATE TRIGGER x BEFORE UPDATE ON t EXECUTE FUNCTION "+
		"suppress_redundant_updates_trigger()"))
	d, _ := dumped(t, from)
	s, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop(t.Context())
	for _, text := range []string{"/* a /* b */ c */", "-- a\n;", ""} {
		if err := s.Run(t.Context(), text); !errors.Is(err, engine.ErrNoStatement) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if enabled, err := s.Ask(t.Context(), "SELECT tgenabled FROM pg_trigger"); err != nil || enabled != "O" {
		t.Errorf("the trigger is %s, %v", enabled, err)
	}
	if err := s.Run(t.Context(), "/* a */; UPDATE t SET a = 'masked';"); err != nil {
		t.Error(err)
	}
}

// A snapshot of the user's own organization is refused with one sentence if it needs more rights
// than its role has: rights to mask rows that policies hide, or to create operator classes that it
// uses.
func TestOurSnapshotThatNeedsMoreRights(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE t (a text); INSERT INTO t VALUES ('x'); ALTER TABLE t ENABLE ROW LEVEL "+
		"SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a = 'y')"))
	d, _ := dumped(t, from)
	mask := func(d engine.Dump) error {
		s, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Drop(t.Context())
		return s.Run(t.Context(), "UPDATE t SET a = 'masked'")
	}
	if err := mask(ours(d)); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), "public.t has row-level security") {
		t.Errorf("forced row security: %v", err)
	}
	if err := mask(d); err != nil { // as a superuser
		t.Errorf("forced row security of one's own: %v", err)
	}
	psql(t, from, script(t, "DROP TABLE t; CREATE TABLE t (a text); CREATE OPERATOR CLASS \"my ops\" FOR TYPE text "+
		"USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 "+
		"bttextcmp(text, text)"))
	d, _ = dumped(t, from)
	if err := load(t, to, ours(d), false); err != nil {
		t.Errorf("an operator class that nothing uses: %v", err)
	}
	psql(t, from, script(t, "CREATE INDEX i ON t (a \"my ops\")"))
	d, _ = dumped(t, from)
	if err := load(t, to, ours(d), false); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), `the index "i" of the snapshot needs the operator class "my ops"`) {
		t.Errorf("an index with an operator class: %v", err)
	}
	if err := load(t, to, foreign(d), false); err != nil {
		t.Errorf("as data: %v", err)
	}
}
