package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// ways are the kinds of loads into an existing database.
var ways = map[string]engine.Into{"existing": engine.Existing, "in place": engine.InPlace}

// into loads into an existing database.
func (e Engine) into(t testing.TB, url string, d engine.Dump, o engine.Options) (notices []string, err error) {
	t.Helper()
	o.Jobs, o.TempDir = 2, t.TempDir()
	o.Notice = func(sentence string) { notices = append(notices, sentence) }
	s, err := e.Restore(t.Context(), url, d, o)
	if err != nil {
		return notices, err
	}
	defer s.Drop(t.Context())
	return notices, s.Swap(t.Context(), o.Terminate)
}

// plainOwner creates a role that owns the database and has no other right, and returns the
// database's URL for that role.
func plainOwner(t *testing.T, admin string) string {
	t.Helper()
	name := nameOf(t, admin)
	user := "plain_" + name
	psql(t, admin, script(t, fmt.Sprintf(`CREATE ROLE "%s" LOGIN; ALTER DATABASE "%s" OWNER TO "%[1]s"`, user, name)))
	t.Cleanup(func() {
		psql(t, admin, script(t, fmt.Sprintf(`ALTER DATABASE "%[2]s" OWNER TO postgres; DROP OWNED BY "%[1]s" CASCADE;
			DROP ROLE "%[1]s"`, user, name)))
	})
	return as(t, admin, user)
}

// old is a database that a load replaces.
const old = `CREATE EXTENSION citext; CREATE SCHEMA gone; CREATE TABLE gone.t (a int); CREATE TABLE part (old citext);
	CREATE VIEW v AS SELECT * FROM part; CREATE FUNCTION f(x int) RETURNS int LANGUAGE sql AS 'SELECT 1';
	CREATE TYPE mood AS ENUM ('x');
	CREATE AGGREGATE total(int) (sfunc = int4pl, stype = int);
	CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq);
	CREATE SEQUENCE s; CREATE DOMAIN positive AS int;
	CREATE TABLE ident (id int GENERATED ALWAYS AS IDENTITY, s serial, UNIQUE (id));
	CREATE STATISTICS st ON id, s FROM ident; CREATE COLLATION c FROM "C";
	CREATE TEXT SEARCH CONFIGURATION ts (COPY = simple);
	SELECT lo_from_bytea(4711, 'old'), lo_from_bytea(99, 'old'); CREATE PUBLICATION pub FOR TABLE ident;`

// A plain role that owns a database can replace its content completely, in both ways and with
// snapshots of any author. Nothing of the old content is left, except extensions.
func TestLoadIntoExisting(t *testing.T) {
	t.Parallel()
	versions := []int{servertest.PostgresVersions[0], 15, slices.Max(servertest.PostgresVersions)}
	for _, v := range versions {
		for way, into := range ways {
			t.Run(fmt.Sprint(v, " ", way), func(t *testing.T) {
				t.Parallel()
				admin := servertest.PostgresVersion(t, v)
				e, bin := with(t, v)
				to := plainOwner(t, admin)
				psql(t, to, script(t, old))
				for _, source := range []string{odd, data} {
					if source == data && v == 18 { // a description has no names of NOT NULL constraints
						continue
					}
					from := servertest.PostgresVersion(t, v)
					psql(t, from, script(t, source))
					d := e.build(t, from)
					if source != odd {
						d = foreign(d)
					}
					if notices, err := e.into(t, to, d, engine.Options{Into: into}); err != nil || len(notices) > 0 {
						t.Fatal(notices, err)
					}
					a, b := withoutExtensions(schemaBy(t, bin, from)), withoutExtensions(schemaBy(t, bin, to))
					if missing, extra := without(a, b), without(b, a); missing+extra != "" {
						t.Errorf("it lacks\n%s\n---- and has\n%s", missing, extra)
					}
					sameRows(t, from, admin)
				}
				left := linesOf(t, admin, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'snapcli%'")
				if len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// withoutExtensions returns the lines of a definition. Extensions stay in the database.
func withoutExtensions(definition string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(definition, "\n"), func(l string) bool {
		return strings.HasPrefix(l, "CREATE EXTENSION") || strings.HasPrefix(l, "COMMENT ON EXTENSION")
	}), "\n")
}

// TestIntoExistingRefuses creates each obstacle that a managed server can have, checks that a load
// is refused and changes nothing, runs the statement that the error suggests, and loads.
func TestIntoExistingRefuses(t *testing.T) {
	t.Parallel()
	const source = "CREATE SCHEMA sales; CREATE TABLE sales.t (a int); INSERT INTO sales.t VALUES (1); " +
		"CREATE TABLE t (a int)"
	const before = "CREATE TABLE t (old int); INSERT INTO t VALUES (5)"
	for name, c := range map[string]struct{ admin, source, says, hint, mend string }{
		"table of another role": {
			"CREATE EXTENSION citext; CREATE TABLE theirs (a int)", "", "the table public.theirs belongs to postgres",
			"ALTER TABLE public.theirs OWNER TO", ""},
		"untrusted extension": {"", "; CREATE EXTENSION pageinspect",
			`not allowed to create the extension "pageinspect"`,
			"CREATE EXTENSION", `CREATE EXTENSION "pageinspect"`},
		"no such extension": {"",
			"; CREATE EXTENSION citext; UPDATE pg_extension SET extname = 'nowhere' WHERE extname = 'citext'",
			`extension "nowhere" is not available`, "install the extension's package", "-"},
		"no right to create a schema": {
			"ALTER DATABASE %[1]s OWNER TO postgres; GRANT CREATE ON SCHEMA public TO %[2]s", "",
			"permission denied for database", "GRANT CREATE ON DATABASE", ""},
		"view of another role": {"CREATE SCHEMA kept; CREATE VIEW kept.v AS SELECT * FROM t", "",
			"the load would keep the view kept.v, which needs the table public.t", "drop the view kept.v first",
			"DROP VIEW kept.v"},
		"extension elsewhere": {"CREATE SCHEMA ext; CREATE EXTENSION citext SCHEMA ext", "; CREATE EXTENSION citext",
			`the extension "citext" is in the schema "ext" in the destination`, "ALTER EXTENSION", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, admin := servertest.Postgres(t), servertest.Postgres(t)
			to := plainOwner(t, admin)
			psql(t, from, script(t, source+c.source))
			psql(t, to, script(t, before))
			if strings.Contains(c.admin, "%") {
				c.admin = fmt.Sprintf(c.admin, nameOf(t, to), "plain_"+nameOf(t, to))
			}
			psql(t, admin, script(t, c.admin))
			d, _ := dumped(t, from)
			was := rows(t, admin)
			_, err := Engine{}.into(t, to, d, engine.Options{Into: engine.Existing})
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(hintOf(err), c.hint) {
				t.Fatalf("%v; %s", err, hintOf(err))
			}
			if now := rows(t, admin); fmt.Sprint(now) != fmt.Sprint(was) {
				t.Errorf("the database changed from %v to %v", was, now)
			}
			if c.mend == "" { // the hint has the statement to run
				_, c.mend, _ = strings.Cut(hintOf(err), "run: ")
				c.mend, _, _ = strings.Cut(c.mend, "; nothing")
			}
			if c.mend == "-" {
				return
			}
			psql(t, admin, script(t, c.mend))
			if _, err := (Engine{}).into(t, to, d, engine.Options{Into: engine.Existing}); err != nil {
				t.Errorf("after %q: %v; %s", c.mend, err, hintOf(err))
			}
		})
	}
}

func hintOf(err error) string {
	var failed *snap.Error
	if errors.As(err, &failed) {
		return failed.Hint
	}
	return ""
}

// TestPlainRole checks that the errors name the statement that helps, for a role without CREATEDB
// and for a database that the role is not allowed to drop.
func TestPlainRole(t *testing.T) {
	t.Parallel()
	admin := servertest.Postgres(t)
	to := plainOwner(t, admin)
	try := func(says, hint string) {
		t.Helper()
		err := Engine{}.RequireReplaceable(t.Context(), to)
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(hintOf(err), hint) {
			t.Fatalf("%v; %s", err, hintOf(err))
		}
	}
	user := "plain_" + nameOf(t, to)
	try("is not allowed to create databases", `ALTER ROLE `+user+` CREATEDB; or load with --into-existing`)
	psql(t, admin, script(t, fmt.Sprintf("ALTER ROLE %s CREATEDB; ALTER DATABASE %s OWNER TO postgres", user,
		nameOf(t, to))))
	try("belongs to postgres", fmt.Sprintf("ALTER DATABASE %s OWNER TO %s; or load with --into-existing", nameOf(t, to),
		user))
	psql(t, admin, script(t, fmt.Sprintf("ALTER DATABASE %s OWNER TO %s", nameOf(t, to), user)))
	if err := (Engine{}).RequireReplaceable(t.Context(), to); err != nil {
		t.Error(err)
	}
}

// TestMissingRoles builds a snapshot of a database whose objects belong to one role and whose
// policy names another, and loads it where neither role exists: the destination decides the owners,
// and the error about the policy names the statement that helps.
func TestMissingRoles(t *testing.T) {
	t.Parallel()
	from, admin := servertest.Postgres(t), servertest.Postgres(t)
	role := "reader_" + nameOf(t, from)
	psql(t, from, script(t, fmt.Sprintf(`CREATE ROLE %[1]s; CREATE ROLE %[1]s_owner; CREATE TABLE t (a int);
		ALTER TABLE t OWNER TO %[1]s_owner; CREATE POLICY p ON t TO %[1]s; GRANT SELECT ON t TO %[1]s`, role)))
	d, _ := dumped(t, from)
	psql(t, from, script(t, fmt.Sprintf("DROP TABLE t; DROP ROLE %[1]s, %[1]s_owner", role)))
	to := plainOwner(t, admin)
	_, err := Engine{}.into(t, to, d, engine.Options{Into: engine.Existing})
	if err == nil || !strings.Contains(err.Error(), "does not exist") ||
		!strings.HasSuffix(hintOf(err), `CREATE ROLE "`+role+`"`) {
		t.Fatalf("%v; %s", err, hintOf(err))
	}
	psql(t, admin, script(t, "CREATE ROLE "+role))
	t.Cleanup(func() { psql(t, admin, script(t, "DROP OWNED BY "+role+"; DROP ROLE "+role)) })
	if _, err := (Engine{}).into(t, to, d, engine.Options{Into: engine.Existing}); err != nil {
		t.Fatal(err)
	}
	owner := linesOf(t, admin, "SELECT tableowner FROM pg_tables WHERE tablename = 't'")
	if owner[0] != "plain_"+nameOf(t, to) {
		t.Errorf("the table belongs to %v", owner)
	}
}

// TestLockedByOthers loads while another session holds a lock on a table that is replaced.
func TestLockedByOthers(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]string{"at the end": "", "at the start": "CREATE EXTENSION citext;"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, admin := servertest.Postgres(t), servertest.Postgres(t)
			to := plainOwner(t, admin)
			psql(t, from, script(t, setup+"CREATE TABLE t (a int)"))
			psql(t, to, script(t, setup+"CREATE TABLE t (old int)"))
			d, _ := dumped(t, from)
			other := connectTo(t, to)
			if _, err := other.Exec(t.Context(), "BEGIN; INSERT INTO t VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			e := Engine{LockTimeout: 100 * time.Millisecond}
			_, err := e.into(t, to, d, engine.Options{Into: engine.Existing})
			if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "holds a lock on public.t") ||
				!strings.Contains(hintOf(err), fmt.Sprintf("pg_terminate_backend(%d)", other.PgConn().PID())) {
				t.Fatalf("%v; %s", err, hintOf(err))
			}
			if _, err := other.Exec(t.Context(), "INSERT INTO t (old) VALUES (2)"); err != nil {
				t.Error(err)
			}
			if _, err := e.into(t, to, d, engine.Options{Into: engine.Existing, Terminate: true}); err != nil {
				t.Fatal(err)
			}
			got := linesOf(t, to, "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0")
			if got[0] != "a" {
				t.Errorf("it has %v", got)
			}
		})
	}
}

// TestChosenSchemasIntoExisting loads a snapshot of one schema, and checks that the load keeps the
// content of the other schemas, even if the source has extensions in them.
func TestChosenSchemasIntoExisting(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	psql(t, from, script(t, `CREATE SCHEMA sales; CREATE TABLE sales.t (a int); CREATE TABLE t (a int, b int);
		CREATE EXTENSION citext; CREATE SCHEMA ext; CREATE EXTENSION hstore SCHEMA ext;
		COMMENT ON SCHEMA ext IS 'source'; CREATE DOMAIN positive AS int CHECK (value > 0);
		CREATE STATISTICS st ON a, b FROM t; CREATE OPERATOR === (leftarg = int, rightarg = int, function = int4eq)`))
	for name, one := range map[string]struct {
		choice  engine.Choice
		kept    string
		content []string
	}{
		"one": {engine.Choice{Schemas: []string{"sales"}}, "keeps the content of ext, other, public",
			[]string{"ext.kept", "other.kept", "public.old", "sales.t"}},
		"one and a table": {engine.Choice{Schemas: []string{"sales"}, Tables: []string{"public.t"}},
			"keeps the content of ext, other", []string{"ext.kept", "other.kept", "public.t", "sales.t"}},
	} {
		d := chosen(t, from, engine.Options{Jobs: 1, Choice: one.choice})
		for way, into := range ways {
			for _, d := range []engine.Dump{d, foreign(d)} {
				to := plainOwner(t, servertest.Postgres(t))
				psql(t, to, script(t, `CREATE SCHEMA sales; CREATE TABLE sales.old (a int); CREATE TABLE old (a int);
					CREATE SCHEMA other; CREATE TABLE other.kept (a int);
					CREATE SCHEMA ext; COMMENT ON SCHEMA ext IS 'kept'; CREATE TABLE ext.kept (a int)`))
				notices, err := Engine{}.into(t, to, d, engine.Options{Into: into})
				if err != nil || len(notices) != 1 || !strings.Contains(notices[0], one.kept) {
					t.Errorf("%s, %s: %q, %v", name, way, notices, err)
				}
				tables := linesOf(t, to, "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN "+
					"('ext', 'other', 'public', 'sales') ORDER BY 1")
				if !slices.Equal(tables, one.content) {
					t.Errorf("%s, %s: the database has %q", name, way, tables)
				}
				comment := linesOf(t, to, "SELECT obj_description('ext'::regnamespace)")
				if comment[0] != "kept" {
					t.Errorf("%s, %s: the comment is %q", name, way, comment)
				}
			}
		}
	}
}
