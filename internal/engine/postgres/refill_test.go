package postgres

import (
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRefill replaces the rows of some tables and nothing else.
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
