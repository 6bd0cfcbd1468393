package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/schema"
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

// throughRoot returns a dump in which the rows of all tables are loaded through a partition root.
func throughRoot(t *testing.T, d engine.Dump, raw []byte) engine.Dump {
	t.Helper()
	return dumpOf(changeContents(t, raw, func(_ int, e [][]byte) {
		if string(e[descField]) == "TABLE DATA" {
			e[definitionField] = []byte("-- load via partition root")
		}
	}), d.Info)
}

// TestRefillThroughRoot fills partitions that hold other rows than in the snapshot. This works
// through the root, but only if all partitions are chosen. The root's triggers do not fire.
func TestRefillThroughRoot(t *testing.T) {
	t.Parallel()
	const (
		tables = `CREATE TABLE p (a int) PARTITION BY LIST (a); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (%d);
			CREATE TABLE p2 PARTITION OF p FOR VALUES IN (%d); INSERT INTO p VALUES (1), (2);`
		triggers = `CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''it fired''; END';
			CREATE TRIGGER once BEFORE INSERT ON p EXECUTE FUNCTION failing();
			CREATE TRIGGER each BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION failing();
			ALTER TABLE ONLY p ENABLE ALWAYS TRIGGER each`
		states = "SELECT format('%s %s %s', tgrelid::regclass, tgname, tgenabled) FROM pg_trigger ORDER BY 1"
	)
	from := servertest.Postgres(t)
	psql(t, from, script(t, fmt.Sprintf(tables, 1, 2)+"INSERT INTO p VALUES (1), (2)"))
	d, raw := dumped(t, from)
	d = throughRoot(t, d, raw)
	for _, v := range []int{13, 15, 18} {
		t.Run(strconv.Itoa(v), func(t *testing.T) {
			t.Parallel()
			to := servertest.PostgresVersion(t, v)
			psql(t, to, script(t, fmt.Sprintf(tables, 2, 1)+triggers))
			before := linesOf(t, to, states)
			_, err := Engine{}.Refill(t.Context(), to, d, []string{"p1"}, engine.Options{})
			if err == nil || !strings.Contains(err.Error(), "violates partition constraint") {
				t.Errorf("one partition: %v", err)
			}
			if _, err := (Engine{}).Refill(t.Context(), to, d, []string{"p"}, engine.Options{}); err != nil {
				t.Fatal(err)
			}
			if got := linesOf(t, to, "SELECT a::text FROM p ORDER BY 1"); strings.Join(got, " ") != "1 1 2 2" {
				t.Errorf("it has %v", got)
			}
			if after := linesOf(t, to, states); !slices.Equal(after, before) {
				t.Errorf("the triggers changed from %v to %v", before, after)
			}
		})
	}
}

// TestRefillOnlyChosen fills a table from descriptions that call it a partition of another table, call
// another table its partition, or call it partitioned. No other table changes, and no trigger fires.
func TestRefillOnlyChosen(t *testing.T) {
	t.Parallel()
	url := servertest.Postgres(t)
	psql(t, url, script(t, "CREATE TABLE a (n int); CREATE TABLE b (n int); INSERT INTO a VALUES (1)"))
	d, raw := dumped(t, url)
	for _, parent := range []string{"b", "undescribed"} {
		hostile := throughRoot(t, d, raw)
		hostile.Info.Schema = describeAgain(t, url)
		hostile.Info.Schema.Tables[0].PartitionOf = &schema.PartitionOf{
			Table: schema.Name{Schema: "public", Name: parent}}
		if _, err := (Engine{}).Refill(t.Context(), url, hostile, []string{"a"}, engine.Options{}); err != nil {
			t.Errorf("%s: %v", parent, err)
		}
		if got := rows(t, url); got[`"public"."a"`] != "(1)" || got[`"public"."b"`] != "" {
			t.Errorf("%s: it has %v", parent, got)
		}
	}
	d.Info.Schema.Tables[1].PartitionOf = &schema.PartitionOf{Table: d.Info.Schema.Tables[0].Name}
	if _, err := (Engine{}).Refill(t.Context(), url, d, []string{"a"}, engine.Options{}); snap.CodeOf(err) !=
		snap.CodeInvalid || !strings.Contains(err.Error(), "public.b is a partition of a chosen table in") {
		t.Errorf("another table as a partition: %v", err)
	}
	psql(t, url, script(t, `CREATE FUNCTION failing() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN RAISE ''it fired''; END';
		CREATE TRIGGER failing BEFORE INSERT ON a EXECUTE FUNCTION failing()`))
	d.Info.Schema.Tables[0].Partitions, d.Info.Schema.Tables[1].PartitionOf = &schema.Partitions{Method: "list"}, nil
	if _, err := (Engine{}).Refill(t.Context(), url, d, []string{"a"}, engine.Options{}); err != nil {
		t.Errorf("a partitioned table: %v", err)
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

// TestRefillRunsNoPrograms loads a snapshot of the user's own organization whose programs fail if a
// superuser runs them, and then refills its table as a superuser. The refill is refused in each
// case in which PostgreSQL would run a program.
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
		"a default of the root": "CREATE TABLE root (a int NOT NULL, extra int DEFAULT owned(1)) PARTITION BY " +
			"LIST (a); ALTER TABLE t ADD extra int; ALTER TABLE root ATTACH PARTITION t DEFAULT",
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
