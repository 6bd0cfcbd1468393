package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
	"snap/internal/servertest"
)

// TestWithGrants builds a database with grants of every kind, and compares them after loads of all
// kinds. The error about a missing role has the statement that creates it, and a snapshot from
// elsewhere grants nothing.
func TestWithGrants(t *testing.T) {
	t.Parallel()
	from, admin := servertest.Postgres(t), servertest.Postgres(t)
	to := plainOwner(t, admin)
	role := "reads_" + nameOf(t, from)
	psql(t, from, script(t, fmt.Sprintf(`CREATE ROLE %[1]s; CREATE ROLE "%[1]s ""x"; CREATE SCHEMA s;
		CREATE TABLE s.t (a int, "b c" int);
		CREATE VIEW v AS SELECT 1 AS a; CREATE SEQUENCE q; CREATE FUNCTION f(x int, y text) RETURNS int
		LANGUAGE sql AS 'SELECT 1';
		GRANT USAGE ON SCHEMA s TO %[1]s; GRANT SELECT, UPDATE ON s.t TO %[1]s;
		GRANT INSERT ON s.t TO %[1]s WITH GRANT OPTION;
		GRANT UPDATE ("b c") ON s.t TO "%[1]s ""x"; GRANT SELECT ON v TO PUBLIC; GRANT USAGE ON SEQUENCE q TO %[1]s;
		REVOKE ALL ON FUNCTION f FROM PUBLIC; GRANT EXECUTE ON FUNCTION f TO %[1]s`, role)))
	t.Cleanup(func() {
		for _, url := range []string{from, admin} {
			psql(t, url, script(t, fmt.Sprintf(`DROP OWNED BY %[1]s, "%[1]s ""x"`, role)))
		}
		psql(t, admin, script(t, fmt.Sprintf(`DROP ROLE %[1]s, "%[1]s ""x"`, role)))
	})
	d := chosen(t, from, engine.Options{Jobs: 2, WithGrants: true})
	want := grantsIn(t, from)
	if len(want) < 8 {
		t.Fatalf("the source has %q", want)
	}
	for name, into := range map[string]engine.Into{"another": engine.NewDatabase, "existing": engine.Existing,
		"in place": engine.InPlace} {
		url := to
		if into == engine.NewDatabase {
			url = admin
		}
		for _, trusted := range []func(engine.Dump) engine.Dump{mine, ours} {
			if into != engine.NewDatabase || url == admin {
				o := engine.Options{Into: into, WithGrants: true, Terminate: true}
				if _, err := (Engine{}).into(t, url, trusted(d), o); err != nil {
					t.Fatal(name, err)
				}
			}
			if got := grantsIn(t, admin); !slices.Equal(got, want) {
				t.Errorf("%s: it has %q, want %q", name, got, want)
			}
		}
		psql(t, admin, script(t, fmt.Sprintf(`ALTER DATABASE "%s" OWNER TO "plain_%[1]s";
			DROP SCHEMA IF EXISTS s CASCADE; DROP VIEW v; DROP SEQUENCE q; DROP FUNCTION f`, nameOf(t, to))))
	}
	o := engine.Options{WithGrants: true, Into: engine.Existing}
	if _, err := (Engine{}).into(t, to, foreign(d), o); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("foreign: %v", err)
	}
	_, err := Engine{}.into(t, to, foreign(d), engine.Options{Into: engine.Existing})
	if err != nil || len(grantsIn(t, admin)) > 0 {
		t.Errorf("foreign: %v, %q", err, grantsIn(t, admin))
	}
	d.Info.Schema.Grants[0].To = `no"body`
	_, err = Engine{}.into(t, to, d, o)
	if err == nil || !strings.Contains(hintOf(err), `run: CREATE ROLE "no""body"; or`) {
		t.Errorf("%v; %s", err, hintOf(err))
	}
	without := chosen(t, from, engine.Options{Jobs: 2})
	if _, err := (Engine{}).into(t, to, without, o); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("without grants: %v", err)
	}
}

// TestGrantsOfAlteredSnapshots loads snapshots of the user's own organization whose lists of grants
// name objects that the load does not create. If a superuser ran these grants, they would give
// access to the server's passwords and files, and to other content of an existing database.
func TestGrantsOfAlteredSnapshots(t *testing.T) {
	t.Parallel()
	from, to, admin := servertest.Postgres(t), servertest.Postgres(t), servertest.Postgres(t)
	plain := plainOwner(t, admin)
	psql(t, from, script(t, `CREATE TABLE t (a int)`))
	psql(t, admin, script(t, `CREATE SCHEMA kept; CREATE EXTENSION pgcrypto SCHEMA kept;
		GRANT ALL ON SCHEMA kept TO PUBLIC`))
	psql(t, plain, script(t, `CREATE TABLE kept.secret (a int)`))
	d := ours(chosen(t, from, engine.Options{Jobs: 1}))
	grant := func(kind, where, name, arguments, right string) {
		d.Info.Schema.Grants = append(d.Info.Schema.Grants, schema.Grant{Kind: kind,
			Name: schema.Name{Schema: where, Name: name}, Arguments: arguments, Rights: []string{right}})
	}
	grant("TABLE", "public", "t", "", "SELECT")
	grant("TABLE", "pg_catalog", "pg_authid", "", "SELECT")
	grant("ROUTINE", "pg_catalog", "pg_read_file", "text", "EXECUTE")
	grant("SCHEMA", "pg_toast", "", "", "USAGE")
	grant("TABLE", "information_schema", "tables", "", "UPDATE")
	grant("TABLE", "kept", "secret", "", "SELECT")
	for _, url := range []string{to, plain} {
		o := engine.Options{WithGrants: true}
		if url == plain {
			o.Into = engine.Existing
		}
		if _, err := (Engine{}).into(t, url, d, o); err != nil {
			t.Fatal(err)
		}
		if got := linesOf(t, url, `SELECT oid::regclass::text FROM pg_class, aclexplode(relacl)
				WHERE grantee = 0 AND relname IN ('t', 'pg_authid', 'secret', 'tables')
				AND (relname <> 'tables' OR privilege_type = 'UPDATE')
			UNION ALL SELECT oid::regprocedure::text FROM pg_proc, aclexplode(proacl)
				WHERE grantee = 0 AND proname = 'pg_read_file'
			UNION ALL SELECT nspname FROM pg_namespace, aclexplode(nspacl) WHERE grantee = 0 AND nspname = 'pg_toast'
			ORDER BY 1`); !slices.Equal(got, []string{"t"}) {
			t.Errorf("everybody now has rights on %q", got)
		}
	}
}

func mine(d engine.Dump) engine.Dump { return d }

// grantsIn returns the rights on objects, except the rights of owners.
func grantsIn(t *testing.T, url string) []string {
	t.Helper()
	return linesOf(t, url, `SELECT o.name || ' ' || a.grantee::regrole || ' '
			|| a.privilege_type || ' ' || a.is_grantable
		FROM (
		SELECT oid::regclass::text AS name, relowner AS owner, relacl AS acl FROM pg_class
			WHERE relnamespace IN ('public'::regnamespace, (SELECT oid FROM pg_namespace WHERE nspname = 's'))
		UNION ALL SELECT attrelid::regclass || '.' || attname, relowner, attacl
			FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
			WHERE attacl IS NOT NULL AND relnamespace <> 'pg_catalog'::regnamespace
		UNION ALL SELECT oid::regprocedure::text, proowner, proacl FROM pg_proc
			WHERE pronamespace = 'public'::regnamespace
		UNION ALL SELECT nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = 's'
	) o, aclexplode(acl) a WHERE a.grantee <> o.owner ORDER BY 1`)
}
