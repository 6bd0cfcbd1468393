package postgres

import (
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRefill checks that a refill replaces the rows of some tables and nothing else.
func TestRefill(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	const changed = `; CREATE TABLE other (a int REFERENCES orders); INSERT INTO other VALUES (1);
		ALTER TABLE orders ENABLE ALWAYS TRIGGER noting; COMMENT ON CONSTRAINT by ON orders IS 'kept';
		CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''it fired''; END';
		CREATE TRIGGER failing BEFORE INSERT OR DELETE ON orders FOR EACH ROW EXECUTE FUNCTION failing();
		CREATE TRIGGER truncated BEFORE TRUNCATE ON orders EXECUTE FUNCTION failing();`
	psql(t, from, script(t, chooseFrom+`UPDATE orders SET parent = 1; INSERT INTO orders VALUES (77, 1, 1);
		SELECT setval('orders_id_seq', 777); DELETE FROM sales.event WHERE id > 20`))
	psql(t, to, script(t, chooseFrom+changed))
	before := definitionOf(t, to)
	d, _ := dumped(t, from)
	tables, err := Engine{}.Refill(t.Context(), to, foreign(d), []string{"orders", "sales.event"}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) != 3 || tables[0].Name != "orders" && tables[2].Name != "orders" {
		t.Errorf("the tables are %v", tables)
	}
	if after := definitionOf(t, to); after != before {
		t.Errorf("the definition changed:\n%s\nto\n%s", before, after)
	}
	got, want := rows(t, to), rows(t, from)
	for _, name := range []string{`"public"."orders"`, `"sales"."event_2024"`, `"sales"."event_2025"`} {
		if got[name] != want[name] {
			t.Errorf("%s has %s, want %s", name, got[name], want[name])
		}
	}
	if !strings.Contains(got["sequences"], "public.orders_id_seq 777") || got[`"public"."other"`] != "(1)" {
		t.Errorf("it has %v", got)
	}
}

// TestRefillRefuses checks that a failure changes nothing.
func TestRefillRefuses(t *testing.T) {
	t.Parallel()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, chooseFrom+`INSERT INTO customer VALUES (999); INSERT INTO orders VALUES (77, 999)`))
	psql(t, to, script(t, chooseFrom+"DROP TABLE base CASCADE; ALTER TABLE audit.log ADD CHECK (id > 1) NOT VALID"))
	definition, before := definitionOf(t, to), rows(t, to)
	d, _ := dumped(t, from)
	for only, want := range map[string]struct {
		code snap.Code
		says string
	}{
		"orders":  {snap.CodeConflict, "foreign key by on public.orders would not hold"},
		"base":    {snap.CodeNotFound, "no table public.base"},
		"none*":   {snap.CodeUsage, "matches no table"},
		"log":     {snap.CodeDatabase, "log_id_check"},
		"derived": {snap.CodeNotFound, "no table public.derived"},
	} {
		_, err := Engine{}.Refill(t.Context(), to, d, []string{only}, engine.Options{})
		if snap.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", only, err)
		}
	}
	d = chosen(t, from, engine.Options{Choice: engine.Choice{ExcludeData: []string{"customer"}}})
	if _, err := (Engine{}).Refill(t.Context(), to, d, []string{"customer"}, engine.Options{}); snap.CodeOf(err) !=
		snap.CodeInvalid {
		t.Errorf("without rows: %v", err)
	}
	after := rows(t, to)
	for name := range before {
		if before[name] != after[name] {
			t.Errorf("%s changed", name)
		}
	}
	if definitionOf(t, to) != definition {
		t.Error("the definition changed")
	}
}

// TestRefillRunsNoPrograms loads a snapshot of the user's own organization whose programs would
// create roles, and then fills its tables again as a superuser. Filling must not run a program in
// any of the places where PostgreSQL would.
func TestRefillRunsNoPrograms(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	from := servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)"))
	rows, _ := dumped(t, from)
	for name, hostile := range map[string]string{
		"part of an index":   "CREATE INDEX ON t (a) WHERE owned(a) > 0",
		"a generated column": "ALTER TABLE t ADD g int GENERATED ALWAYS AS (owned(a)) STORED",
		"a default":          "ALTER TABLE t ADD extra int DEFAULT owned(1)",
		"a domain":           "CREATE DOMAIN d AS int CHECK (owned(VALUE) > 0); ALTER TABLE t ALTER a TYPE d",
		"an operator": "CREATE OPERATOR === (leftarg = int, rightarg = int, function = owned2);" +
			"CREATE INDEX ON t ((a === 1))",
		"another table": "CREATE TABLE u (id int PRIMARY KEY, b int REFERENCES t); CREATE INDEX ON u (owned(1 + 0))",
	} {
		built, to := servertest.Postgres(t), servertest.Postgres(t)
		programs := `CREATE FUNCTION owned(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql
				AS 'BEGIN IF current_database() <> ''` + nameOf(t, built) + `''
				AND (SELECT rolsuper FROM pg_roles WHERE rolname = session_user) THEN
				RAISE EXCEPTION ''a superuser ran it''; END IF; RETURN 1; END';
			CREATE FUNCTION owned2(x int, y int) RETURNS bool IMMUTABLE LANGUAGE plpgsql
				AS 'BEGIN RETURN owned(1) > 0; END';
			CREATE TABLE t (a int PRIMARY KEY); `
		psql(t, built, script(t, programs+hostile))
		d, _ := dumped(t, built)
		if err := load(t, to, ours(d), false); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err := Engine{}.Refill(t.Context(), to, rows, []string{"t"}, engine.Options{})
		if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), "of a snapshot from elsewhere") {
			t.Errorf("%s: %v", name, err)
		}
	}
	harmless, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, harmless, script(t, `CREATE TABLE t (a int PRIMARY KEY, at timestamptz DEFAULT now(), CHECK (a > 0));
		INSERT INTO t VALUES (1);
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''it fired''; END';
		CREATE TABLE o (x int); CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 1';
			ALTER TABLE o ADD y int DEFAULT g();
		CREATE VIEW v AS SELECT g(); CREATE POLICY p ON t USING (g() = 1)`))
	psql(t, harmless, script(t, "CREATE TRIGGER t BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()"))
	d, _ := dumped(t, harmless)
	if err := load(t, to, ours(d), false); err != nil {
		t.Fatal(err)
	}
	if _, err := (Engine{}).Refill(t.Context(), to, d, []string{"t"}, engine.Options{}); err != nil {
		t.Errorf("programs that do not run: %v", err)
	}
}
