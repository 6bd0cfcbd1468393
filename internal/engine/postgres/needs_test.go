package postgres

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// Needs reports exactly the rights that a user lacks for a build and a load. After the statements
// that it reports, nothing is missing, and the build and the load succeed.
func TestNeedsAreMendedByTheirStatements(t *testing.T) {
	t.Parallel()
	for _, v := range []int{servertest.PostgresVersions[0], 15, slices.Max(servertest.PostgresVersions)} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			t.Parallel()
			admin, to := servertest.PostgresVersion(t, v), servertest.PostgresVersion(t, v)
			e, _ := with(t, v)
			user := "user_" + nameOf(t, admin)
			psql(t, admin,
				script(t,
					fmt.Sprintf(`CREATE ROLE "%s" LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC; CREATE SCHEMA "a b";
				CREATE TABLE t1 (id serial PRIMARY KEY); CREATE TABLE t2 (a int); CREATE TABLE "a b"."T" (a int);
					INSERT INTO t2 VALUES (1); SELECT lo_create(0);
				ALTER TABLE t2 ENABLE ROW LEVEL SECURITY`, user)))
			t.Cleanup(func() {
				psql(t, to,
					script(t, fmt.Sprintf(`REASSIGN OWNED BY "%[1]s" TO postgres; DROP OWNED BY "%[1]s"`, user)))
				psql(t, admin, script(t, fmt.Sprintf(`DROP OWNED BY "%[1]s"; DROP ROLE "%[1]s"`, user)))
			})
			from, into := as(t, admin, user), as(t, to, user)

			said := grantAll(t, e, from, engine.ForBuild, admin)
			for _, want := range []string{
				"is not allowed to use the schema public",
				`is not allowed to use the schema "a b"`,
				"is not allowed to read 2 tables of the schema public, such as public.t1",
				`is not allowed to read the table "a b"."T"`,
				"is not allowed to read the sequence public.t1_id_seq",
				"row-level security hides rows of public.t2",
				"is not allowed to read 1 large object",
			} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not named in:\n%s", want, said)
				}
			}
			d := e.build(t, from)

			said = grantAll(t, e, into, engine.ForLoad, admin)
			for _, want := range []string{"is not allowed to create databases", "belongs to postgres"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not named in:\n%s", want, said)
				}
			}
			if err := e.load(t, into, d); err != nil {
				t.Error(err)
			}
			whenDropped(t, admin, user)
		})
	}
}

// whenDropped waits until the server has dropped the databases that the user's loads replaced.
// Until then, a load's session holds a lock on the names of those databases.
func whenDropped(t *testing.T, admin, user string) {
	t.Helper()
	d, err := parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := d.maintenance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(),
		`SELECT pg_advisory_lock(hashtextextended(datname, 0)) FROM pg_database `+
			`WHERE datname LIKE 'snapcli\_replaced%' AND pg_get_userbyid(datdba) = $1`, user); err != nil {
		t.Fatal(err)
	}
}

// grantAll runs the statements that Needs reports until nothing is missing, and returns all reports.
func grantAll(t *testing.T, e Engine, url string, u engine.Use, admin string) string {
	t.Helper()
	var said strings.Builder
	for range 3 { // Needs can check a table's row-level security only after the user may read the table
		needs, err := e.Needs(t.Context(), url, u)
		if err != nil {
			t.Fatal(err)
		}
		if len(needs) == 0 {
			return said.String()
		}
		for _, n := range needs {
			if n.Code != snap.CodeDatabase {
				t.Errorf("%+v", n)
			}
			fmt.Fprintln(&said, n.What)
			psql(t, admin, script(t, n.Remedy))
		}
	}
	t.Fatalf("rights are still missing after:\n%s", said.String())
	return ""
}

// A missing program is a need too.
func TestNeedsNameTheProgram(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	for use, name := range map[engine.Use]string{engine.ForBuild: "pg_dump", engine.ForLoad: "pg_restore"} {
		needs, err := Engine{Tools: []string{t.TempDir()}}.Needs(t.Context(), url, use)
		if err != nil || len(needs) != 1 || needs[0].Code != snap.CodeNoTool ||
			!strings.Contains(needs[0].What, name) ||
			!strings.Contains(needs[0].Remedy, "install") {
			t.Errorf("%s: %+v, %v", name, needs, err)
		}
	}
}

func nameOf(t *testing.T, raw string) string {
	t.Helper()
	d, err := parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d.name()
}

// as returns a URL for another user.
func as(t *testing.T, raw, user string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	return u.String()
}
