package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
	"snap/internal/subset/subsettest"
)

// foreign returns the dump marked as coming from somebody else.
func foreign(d engine.Dump) engine.Dump {
	d.Trust = engine.Foreign
	return d
}

// data creates a database without programs, so that all of it is described.
const data = `
CREATE SCHEMA "Größe ""x"""; COMMENT ON SCHEMA "Größe ""x""" IS 'it''s \ "x"'; CREATE EXTENSION citext;
	CREATE EXTENSION hstore SCHEMA "Größe ""x"""; CREATE EXTENSION pg_trgm;
CREATE TYPE mood AS ENUM ('sad', 'it''s', ''); CREATE DOMAIN positive AS int DEFAULT 3 NOT NULL CONSTRAINT pos CHECK
	(value > 0); CREATE DOMAIN more AS positive CHECK (value < 1000);
CREATE SEQUENCE q AS smallint START 5 INCREMENT -2 MINVALUE -100 MAXVALUE 10 CYCLE; SELECT nextval('q');
	COMMENT ON SEQUENCE q IS 'q';
CREATE TABLE "Größe ""x"""."tab le" (id bigint GENERATED ALWAYS AS IDENTITY (START 100 INCREMENT 5) PRIMARY KEY,
	s serial, m mood DEFAULT 'sad', p positive, o more, j jsonb DEFAULT '{}', b bytea DEFAULT '\x00ff',
	a text[] DEFAULT ARRAY['x', 'y'], t varchar(20) COLLATE "C" DEFAULT 'it''s \ x', ts timestamptz(3) DEFAULT now(),
		n numeric(12,3) CHECK (n > 0 AND n <= 1e6), c citext, h "Größe ""x""".hstore, i interval,
		u uuid DEFAULT gen_random_uuid(),
	CONSTRAINT "ch ""k" CHECK (t <> '' AND (m <> 'sad' OR length(t) < 10)), UNIQUE (s, t) INCLUDE (n) DEFERRABLE);
INSERT INTO "Größe ""x"""."tab le" (m, p, o, a, t, n, c, h)
	VALUES ('it''s', 3, 4, '{a,"b c",NULL}', E'l\n\t\\.', 2.5, 'CaSe', 'a=>1'),
	(NULL, 1, 1, NULL, NULL, NULL, NULL, NULL);
CREATE INDEX "i x" ON "Größe ""x"""."tab le" USING gin (t gin_trgm_ops);
	CREATE INDEX ON "Größe ""x"""."tab le" (t text_pattern_ops DESC NULLS LAST, n NULLS FIRST) INCLUDE (m);
	CREATE INDEX ON "Größe ""x"""."tab le" USING hash (m); CREATE INDEX ON "Größe ""x"""."tab le" USING brin (ts);
COMMENT ON COLUMN "Größe ""x"""."tab le".t IS E'a\nb'; COMMENT ON CONSTRAINT "ch ""k" ON "Größe ""x"""."tab le" IS 'c';
	COMMENT ON INDEX "Größe ""x"""."i x" IS 'i';
CREATE TABLE part (k int, v text, w date, PRIMARY KEY (k, v)) PARTITION BY RANGE (k);
	CREATE TABLE part_1 PARTITION OF part FOR VALUES FROM (MINVALUE) TO (10); CREATE TABLE part_2 PARTITION OF part FOR
	VALUES FROM (10) TO (20) PARTITION BY LIST (v);
CREATE TABLE part_2a PARTITION OF part_2 FOR VALUES IN ('a', 'it''s');
	CREATE TABLE part_2d PARTITION OF part_2 DEFAULT; CREATE INDEX part_w ON part (w); INSERT INTO part
	VALUES (1, 'x'), (11, 'a'), (12, 'z');
CREATE TABLE hsh (k int, m mood) PARTITION BY HASH (k); CREATE TABLE hsh_0 PARTITION OF hsh FOR VALUES
	WITH (MODULUS 2, REMAINDER 0); CREATE TABLE hsh_1 PARTITION OF hsh FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	INSERT INTO hsh SELECT n, CASE n % 3 WHEN 0 THEN 'sad' ELSE 'it''s' END::mood FROM generate_series(1, 50) n;
CREATE TABLE exp (a timestamp) PARTITION BY RANGE (date_trunc('month', a)); CREATE TABLE exp_1 PARTITION OF exp FOR
	VALUES FROM ('2020-01-01') TO ('2021-01-01'); INSERT INTO exp VALUES ('2020-05-05');
CREATE TABLE parent (a int CHECK (a > 0) NO INHERIT, b text DEFAULT 'p' CHECK (b <> 'q'));
	CREATE TABLE child (c int) INHERITS (parent); ALTER TABLE ONLY child ALTER b SET DEFAULT 'c', ALTER a
	SET NOT NULL; INSERT INTO parent VALUES (1); INSERT INTO child VALUES (2, 'y', 3);
CREATE DOMAIN code AS text COLLATE "C"; CREATE TABLE kinds (c bpchar, ca bpchar[], f bit(3) DEFAULT B'101', k code);
	INSERT INTO kinds VALUES ('ab', '{cd}', B'011', 'x');
CREATE UNLOGGED TABLE nolog (a int) WITH (fillfactor = 70); INSERT INTO nolog VALUES (1); CREATE TABLE nothing ();
	INSERT INTO nothing DEFAULT VALUES;
CREATE TABLE a1 (id int PRIMARY KEY, b int); CREATE TABLE b1 (id int PRIMARY KEY, a int REFERENCES a1 ON DELETE
	SET NULL ON UPDATE CASCADE); ALTER TABLE a1 ADD FOREIGN KEY (b) REFERENCES b1 DEFERRABLE INITIALLY DEFERRED;
BEGIN; INSERT INTO a1 VALUES (1, 1); INSERT INTO b1 VALUES (1, 1); COMMIT; ALTER TABLE a1 REPLICA IDENTITY FULL;
	ALTER TABLE b1 ADD CONSTRAINT nv CHECK (a > 0) NOT VALID;
	ALTER TABLE b1 ADD CONSTRAINT later FOREIGN KEY (id) REFERENCES a1 NOT VALID; CREATE UNIQUE INDEX bu ON b1 (a);
	ALTER TABLE b1 CLUSTER ON bu;
SELECT lo_from_bytea(4711, decode(repeat('00ff', 50000), 'hex')), lo_from_bytea(4712, '');`

// A database without programs is restored exactly, with every row, although its definition is
// generated from the description alone.
func TestForeignSnapshotOfData(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	to, _ := servertest.CrashingPostgres(t)
	psql(t, from, script(t, data))
	d, _ := dumped(t, from)
	if len(d.Info.Schema.Programs) != 0 {
		t.Errorf("programs: %+v", d.Info.Schema.Programs)
	}
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	same(t, from, to)
	noRoles(t, to)
}

// Expressions are described in every form that the server writes, whatever the settings of the source.
func TestDescriptionOfADatabaseWithSettings(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, `CREATE TABLE t (d date DEFAULT '2020-02-01', i interval DEFAULT '-1 day 2 hours',
		f float8 DEFAULT 0.1::float8 / 3, "E" text CHECK (position('@' in "E") > 1)) PARTITION BY RANGE (d);
		CREATE TABLE t_1 PARTITION OF t FOR VALUES FROM ('2020-02-01') TO ('2020-05-06');
		INSERT INTO t VALUES ('2020-05-05');`))
	database := "ALTER DATABASE " + connectTo(t, from).Config().Database
	for _, setting := range []string{"datestyle = 'SQL, DMY'", "intervalstyle = sql_standard",
		"quote_all_identifiers = on"} {
		psql(t, from, script(t, database+" SET "+setting))
	}
	d, _ := dumped(t, from)
	psql(t, from, script(t, database+" RESET ALL"))
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	same(t, from, to)
}

// A server can have too few locks to lock all tables of a snapshot at once.
func TestForeignSnapshotOfManyTables(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	to, restart := servertest.CrashingPostgres(t)
	psql(t, to, script(t, "ALTER SYSTEM SET max_locks_per_transaction = 10"))
	psql(t, to, script(t, "ALTER SYSTEM SET max_connections = 20"))
	restart()
	psql(t, from, script(t, `DO $$ BEGIN FOR n IN 1..1000 LOOP
		EXECUTE format('CREATE TABLE t%s (a serial PRIMARY KEY)', n); END LOOP; END $$`))
	d, _ := dumped(t, from)
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	noRoles(t, to)
}

// noRoles checks that no role of a load is left on a server. The server must be the test's own,
// because on the shared server, loads of other tests leave roles that own the loaded objects.
func noRoles(t *testing.T, url string) {
	t.Helper()
	if roles := linesOf(t, url,
		"SELECT rolname FROM pg_roles r WHERE rolname LIKE 'snapcli\\_%' AND NOT EXISTS (SELECT FROM pg_locks WHERE "+
			"locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = "+
			"hashtextextended(rolname, 0))"); len(roles) > 0 {
		t.Errorf("left behind: %v", roles)
	}
}

func linesOf(t testing.TB, url, query string) []string {
	t.Helper()
	conn := connectTo(t, url)
	defer conn.Close(context.Background())
	r, err := conn.Query(context.Background(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(r, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// sameStored compares the rows of every table, in the columns that the loaded table
// has.
func sameStored(t testing.TB, from, to string) {
	t.Helper()
	tables := func(url string) []engine.Table {
		conn := connectTo(t, url)
		defer conn.Close(context.Background())
		all, err := listTables(context.Background(), conn)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	loaded := tables(to)
	for _, table := range tables(from) {
		at := slices.IndexFunc(loaded, func(l engine.Table) bool {
			return l.Schema == table.Schema &&
				l.Name == table.Name
		})
		if at < 0 {
			t.Errorf("%s.%s is missing", table.Schema, table.Name)
			continue
		}
		var columns []string
		for _, c := range loaded[at].Columns {
			columns = append(columns, pgx.Identifier{c.Name}.Sanitize()+"::text")
		}
		query := fmt.Sprintf("SELECT ROW(%s)::text FROM ONLY %s ORDER BY 1", strings.Join(columns, ", "),
			pgx.Identifier{table.Schema, table.Name}.Sanitize())
		if a, b := linesOf(t, from, query), linesOf(t, to, query); !slices.Equal(a, b) {
			t.Errorf("the rows of %s.%s differ: it has %d, want %d", table.Schema, table.Name, len(b), len(a))
		}
	}
}

// Programs of every kind are left out, and all rows are loaded.
func TestForeignSnapshotWithPrograms(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, preamble+strings.Join(features, ";\n")+odd2))
	d, _ := dumped(t, from)
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	sameStored(t, from, to)
	left := linesOf(t, to,
		"SELECT proname::text FROM pg_proc p WHERE pronamespace NOT IN ('pg_catalog'::regnamespace, "+
			"'information_schema'::regnamespace) AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND "+
			"deptype = "+
			"'e') UNION ALL SELECT relname FROM pg_class WHERE relkind IN ('v', 'm', 'f') AND relnamespace = "+
			"'public'::regnamespace UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal UNION ALL SELECT "+
			"polname "+
			"FROM pg_policy")
	if len(left) != 0 {
		t.Errorf("loaded: %v", left)
	}
}

// odd2 has columns with types that descriptions do not support.
const odd2 = `; CREATE TABLE own.odd (a own.pair PRIMARY KEY, b own.floats, c own.pairs, d regclass, e int2vector, ` +
	`f own.pair[] DEFAULT '{}', g own.floats CHECK (lower(g) > 1));
INSERT INTO own.odd VALUES ('(1,x)', '[1,2)', ARRAY[ROW(1, 'a')::own.pair], 'pg_class', '1 2', '{}', '[2,3)'); ` +
	`CREATE INDEX ON own.odd USING gist (b)`

// Any graph of tables loads as data with the same rows.
func TestGeneratedGraphsLoadAsData(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		model := rapid.Custom(func(r *rapid.T) subsettest.Model {
			m, _ := subsettest.Generate(r)
			return m
		}).Example(i)
		from, to := servertest.Postgres(t), servertest.Postgres(t)
		psql(t, from, script(t, "SET session_replication_role = replica;"+model.SQL(false)))
		d, _ := dumped(t, from)
		if err := load(t, to, foreign(d), false); err != nil {
			t.Fatal(err)
		}
		same(t, from, to)
	}
}

// Rows partitioned by an enum are loaded into the partitions of the new enum.
func TestForeignRowsDividedByAnEnum(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from,
		script(t, `CREATE TYPE mood AS ENUM ('a', 'b', 'c', 'd'); CREATE TABLE hsh (m mood) PARTITION BY HASH (m);
		CREATE TABLE hsh_0 PARTITION OF hsh FOR VALUES WITH (MODULUS 2, REMAINDER 0);
			CREATE TABLE hsh_1 PARTITION OF hsh FOR VALUES WITH (MODULUS 2, REMAINDER 1); INSERT INTO hsh
			VALUES ('a'), ('b'), ('c'), ('d')`))
	d, _ := dumped(t, from)
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"a", "b", "c", "d"} {
		if found := linesOf(t, to, "SELECT m::text FROM hsh WHERE m = '"+m+"'"); len(found) != 1 {
			t.Errorf("%s is not found by its partition: %v", m, found)
		}
	}
}

// ownType creates a type with an operator class of its own, which is its default.
const ownType = `CREATE TYPE own;
	CREATE FUNCTION own_in(cstring) RETURNS own LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
	CREATE FUNCTION own_out(own) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
	CREATE TYPE own (INPUT = own_in, OUTPUT = own_out, LIKE = int4);
	CREATE FUNCTION own_cmp(own, own) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'btint4cmp';
	CREATE FUNCTION own_eq(own, own) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4eq';
	CREATE FUNCTION own_lt(own, own) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4lt';
	CREATE FUNCTION own_gt(own, own) RETURNS bool LANGUAGE internal IMMUTABLE STRICT AS 'int4gt';
	CREATE OPERATOR = (LEFTARG = own, RIGHTARG = own, FUNCTION = own_eq, COMMUTATOR = =);
	CREATE OPERATOR < (LEFTARG = own, RIGHTARG = own, FUNCTION = own_lt, COMMUTATOR = >);
	CREATE OPERATOR > (LEFTARG = own, RIGHTARG = own, FUNCTION = own_gt, COMMUTATOR = <);
	CREATE OPERATOR CLASS own_ops DEFAULT FOR TYPE own USING btree
		AS OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 own_cmp(own, own);`

// A key or a foreign key whose operators belong to the database is left out and listed, and all rows
// are loaded.
func TestForeignKeysOfOwnTypes(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, ownType+`CREATE TABLE a (id own PRIMARY KEY, u own UNIQUE, n int UNIQUE);
		CREATE TABLE b (id own PRIMARY KEY, a own REFERENCES a, u own REFERENCES a (u), n int REFERENCES a (n));
		INSERT INTO a VALUES ('1', '2', 3); INSERT INTO b VALUES ('1', '1', '2', 3)`))
	d, _ := dumped(t, from)
	if len(d.Info.Warnings) > 0 {
		t.Errorf("warnings: %q", d.Info.Warnings)
	}
	var left []string
	for _, p := range d.Info.Schema.Programs {
		if p.Kind == "key" || p.Kind == "foreign key" {
			left = append(left, p.Name.Name)
		}
	}
	slices.Sort(left)
	if want := []string{"a_pkey", "a_u_key", "b_a_fkey", "b_pkey", "b_u_fkey"}; !slices.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
	if err := load(t, to, foreign(d), false); err != nil {
		t.Fatal(err)
	}
	sameStored(t, from, to)
	if keys := linesOf(t, to, "SELECT conname::text FROM pg_constraint WHERE contype IN ('p', 'u', 'f') AND "+
		"connamespace = 'public'::regnamespace ORDER BY 1"); !slices.Equal(keys, []string{"a_n_key", "b_n_fkey"}) {
		t.Errorf("keys: %v", keys)
	}
}

// A snapshot without a description is refused, with a hint.
func TestForeignSnapshotWithoutDescription(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	d, _ := dumped(t, url)
	d.Info.Schema = nil
	err := load(t, url, foreign(d), false)
	if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "older version") {
		t.Error(err)
	}
}
