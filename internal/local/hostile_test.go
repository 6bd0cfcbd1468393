package local

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// attack is a database whose author wants more than to share it, on one kind of
// server.
type attack struct {
	driver string
	fresh  func(t *testing.T) (url string) // an empty database
	source func(home, prod string) string  // the SQL of the author
	prod   string                          // the SQL of the recipient's other database
	// a query that tells the server's roles and settings that an attack wants to change
	settings string
	programs string // a query that counts the programs in a database
}

func attacks() map[string]attack {
	return map[string]attack{
		"sqlite": {
			driver: "sqlite",
			fresh:  func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "db.sqlite") },
			source: func(home, prod string) string {
				return fmt.Sprintf(`CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT, up TEXT AS (upper(email)) STORED);
				INSERT INTO customer (id, email) VALUES (1, 'ada@real.example'), (2, 'bob@real.example');
				CREATE TABLE log (a); CREATE VIEW v AS SELECT * FROM customer;
				CREATE TRIGGER tu AFTER UPDATE ON customer BEGIN INSERT INTO log VALUES (new.email); END;
				CREATE TRIGGER ti AFTER INSERT ON customer BEGIN INSERT INTO log VALUES (new.email); END;
				CREATE INDEX e ON customer (lower(email)); CREATE INDEX p ON customer (email) WHERE email LIKE '%%a%%';
				PRAGMA writable_schema = on;
				UPDATE sqlite_schema SET sql = sql || '; ATTACH ''%s/.profile'' AS x; CREATE TABLE x.t (a); ATTACH ''%s'' AS y; UPDATE customer SET email = (SELECT token FROM y.secret)' WHERE name IN ('tu', 'e', 'p');`, home, strings.TrimPrefix(prod, "sqlite://"))
			},
			prod:     "CREATE TABLE secret (token TEXT); INSERT INTO secret VALUES ('the-secret-token')",
			settings: "SELECT 'none'",
			programs: "SELECT count(*) FROM sqlite_schema WHERE type IN ('trigger', 'view') OR sql LIKE '%lower(%'",
		},
		"postgres": {
			driver: "pgx",
			fresh:  func(t *testing.T) string { return servertest.Postgres(t) },
			source: func(home, prod string) string {
				return fmt.Sprintf(`CREATE TABLE customer (id integer PRIMARY KEY, email text);
				CREATE TABLE log (a text);
				DO $x$ BEGIN EXECUTE format($f$CREATE FUNCTION evil_now() RETURNS void LANGUAGE plpgsql AS $y$ BEGIN
					IF current_database() <> %%L THEN
						COPY (SELECT 1) TO PROGRAM 'touch %[1]s/owned';
						CREATE ROLE hostile SUPERUSER;
					END IF; END $y$$f$, current_database()); END $x$;
				CREATE FUNCTION evil() RETURNS text IMMUTABLE LANGUAGE plpgsql SET search_path = public AS $y$ BEGIN PERFORM evil_now(); RETURN 'x'; END $y$;
				CREATE FUNCTION evil_trigger() RETURNS trigger LANGUAGE plpgsql AS $y$ BEGIN PERFORM evil(); RETURN new; END $y$;
				CREATE FUNCTION evil_check(t text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $y$ BEGIN RETURN evil() = 'x'; END $y$;
				CREATE FUNCTION evil_event() RETURNS event_trigger LANGUAGE plpgsql AS $y$ BEGIN PERFORM evil(); END $y$;
				CREATE DOMAIN address AS text CHECK (evil_check(VALUE));
				CREATE TABLE more (a address DEFAULT evil(), b text DEFAULT evil() CHECK (evil_check(b)), c text GENERATED ALWAYS AS (evil()) STORED);
				INSERT INTO customer VALUES (1, 'ada@real.example'), (2, 'bob@real.example');
				INSERT INTO more (b) VALUES ('row');
				CREATE INDEX ON customer ((email || evil())); CREATE INDEX ON customer (id) WHERE evil_check(email);
				CREATE TRIGGER t BEFORE INSERT OR UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION evil_trigger();
				CREATE RULE r AS ON INSERT TO log DO ALSO SELECT evil();
				CREATE MATERIALIZED VIEW mv AS SELECT evil(); CREATE VIEW v AS SELECT evil();
				ALTER TABLE customer ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON customer USING (evil_check(email));
				CREATE TYPE pair AS (a integer, b integer); CREATE CAST (pair AS text) WITH INOUT AS ASSIGNMENT;
				CREATE AGGREGATE every_evil(boolean) (SFUNC = booland_statefunc, STYPE = boolean);
				CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq);
				CREATE EVENT TRIGGER hostile_%[2]d ON ddl_command_end EXECUTE FUNCTION evil_event();`, home, os.Getpid())
			},
			prod:     "CREATE TABLE secret (token TEXT); INSERT INTO secret VALUES ('the-secret-token')",
			settings: "SELECT count(*)::text FROM pg_roles WHERE rolname = 'hostile'",
			programs: "SELECT (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE " +
				"nspname = 'public') + (SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal) + (SELECT " +
				"count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public' " +
				"AND relkind IN ('v', 'm')) + (SELECT count(*) " +
				"FROM pg_index WHERE indexprs IS NOT NULL OR indpred IS NOT NULL) + (SELECT count(*) FROM " +
				"pg_policy) + (SELECT count(*) FROM pg_event_trigger)",
		},
	}
}

// A hostile snapshot goes the whole way: push, share, pull, and then show, load,
// mask by rules and by SQL, and subset. Afterwards the machine, the recipient's
// other database and the server are as before.
func TestHostileSnapshots(t *testing.T) {
	t.Parallel()
	for name, a := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.Chmod(home, 0o777); err != nil {
				t.Fatal(err)
			}
			prod := a.fresh(t)
			a.exec(t, prod, a.prod)
			c := cloudtest.Start(t, cloudtest.Options{})
			here := a.received(t, c, a.source(home, prod))
			before := a.state(t, home, prod)
			destination := a.attacked(t, here)
			if after := a.state(t, home, prod); !maps.Equal(before, after) {
				t.Errorf("before: %v\nafter: %v", before, after)
			}
			if n := a.value(t, destination, a.programs); n != "0" {
				t.Errorf("%s programs are in the database", n)
			}
			if n := a.value(t, destination,
				"SELECT count(*) FROM customer WHERE email LIKE '%@real.example'"); n != "2" {
				t.Errorf("%s rows are in the database, want 2", n)
			}
		})
	}
}

// received has somebody of another organization build, push and share the
// source, and returns a machine that has pulled it.
func (a attack) received(t *testing.T, c *cloudtest.Cloud, source string) *Agent {
	t.Helper()
	there, from := machine(t), a.fresh(t)
	a.exec(t, from, source)
	if err := there.AddTarget(Target{Name: "shop", Source: from}); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Build(t.Context(), "shop", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	gail := c.As("gail@globex.test")
	pushed, err := there.Push(t.Context(), gail, "shop", PushOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shareWith(t, gail, pushed.ID)
	here := machine(t)
	if _, err := here.Pull(t.Context(), c.As("alice@acme.test"), "shop", PullOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return here
}

func shareWith(t *testing.T, owner *api.Client, id string) {
	t.Helper()
	if _, err := owner.ShareOrg(t.Context(), id, "acme", nil); err != nil {
		t.Fatal(err)
	}
}

// attacked does with the pulled snapshot all that a person can do, and returns
// the database that it was loaded into.
func (a attack) attacked(t *testing.T, here *Agent) (destination string) {
	t.Helper()
	destination = a.fresh(t)
	if err := here.AddTarget(Target{Name: "shop", Destination: destination}); err != nil {
		t.Fatal(err)
	}
	pulled, err := here.newest("shop", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := here.Describe(&pulled, nil); err != nil || len(pulled.Programs) < 4 {
		t.Errorf("show names %d programs: %v", len(pulled.Programs), err)
	}
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := here.SuggestRules(t.Context(), "shop", pulled.Name, filepath.Join(t.TempDir(), "first.yaml"),
		nil); err != nil {
		t.Errorf("first rules: %v", err)
	}
	writeText(t, rules, "keep: ['*']\ntables:\n  \"*customer\": {columns: {email: {mask: email, shared: true}}}\n")
	if _, err := here.Sanitize(t.Context(), "shop", SanitizeOptions{Snapshot: pulled.Name, Rules: rules},
		nil); err != nil {
		t.Errorf("by rules: %v", err)
	}
	mask := filepath.Join(t.TempDir(), "mask.sql")
	writeText(t, mask, "UPDATE customer SET email = 'masked'; INSERT INTO log VALUES ('x');")
	if _, err := here.Sanitize(t.Context(), "shop", SanitizeOptions{Snapshot: pulled.Name, SQL: mask},
		nil); err != nil {
		t.Errorf("by SQL: %v", err)
	}
	for _, typ := range []snap.Type{snap.TypeSanitized, snap.TypeSnapshot} {
		r, err := here.Load(t.Context(), "shop", LoadOptions{Type: typ}, nil)
		if err != nil {
			t.Errorf("load %s: %v", typ, err)
		}
		if typ == snap.TypeSnapshot && len(r.LeftOut) < 4 {
			t.Errorf("left out: %v", r.LeftOut)
		}
	}
	if err := here.AddTarget(Target{Name: "again", Source: destination}); err != nil {
		t.Fatal(err)
	}
	if _, err := here.Build(t.Context(), "again", BuildOptions{Subset: SubsetSpec{Percent: 50}}, nil); err != nil {
		t.Errorf("subset: %v", err)
	}
	return destination
}

// state is what an attack must not change.
func (a attack) state(t *testing.T, home, prod string) map[string]string {
	t.Helper()
	all := map[string]string{"settings": a.value(t, prod, a.settings),
		"prod": a.value(t, prod, "SELECT token FROM secret")}
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (a attack) open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(a.driver, strings.TrimPrefix(url, "sqlite://"))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func (a attack) exec(t *testing.T, url, text string) {
	t.Helper()
	db := a.open(t, url)
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}

// value returns the first column of all rows of a query, joined.
func (a attack) value(t *testing.T, url, query string) string {
	t.Helper()
	db := a.open(t, url)
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
