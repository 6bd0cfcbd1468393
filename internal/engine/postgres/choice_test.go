package postgres

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// chooseFrom creates objects of many kinds that need the tables customer and "Odd.Name", and some
// objects that do not.
const chooseFrom = `
	CREATE SCHEMA sales; CREATE SCHEMA audit; CREATE SCHEMA ext; CREATE EXTENSION citext SCHEMA ext;
	COMMENT ON EXTENSION citext IS 'changed';
	CREATE TYPE audit.mood AS ENUM ('good', 'bad'); CREATE DOMAIN audit.positive AS int CHECK (value > 0);
	CREATE TABLE customer (id serial PRIMARY KEY, name text UNIQUE, boss int REFERENCES customer);
	CREATE TABLE orders (id serial PRIMARY KEY, customer_id int CONSTRAINT by REFERENCES customer, parent int
		REFERENCES orders);
	CREATE TABLE sales."Odd.Name" (id int PRIMARY KEY, "order" int REFERENCES orders);
	CREATE TABLE sales.line (id int, odd int REFERENCES sales."Odd.Name", tag ext.citext);
	CREATE TABLE sales.event (id int, at date NOT NULL, customer int REFERENCES customer) PARTITION BY RANGE (at);
	CREATE TABLE sales.event_2024 PARTITION OF sales.event FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
	CREATE TABLE sales.event_2025 PARTITION OF sales.event FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
	CREATE INDEX ON sales.event (id);
	CREATE TABLE base (a int); CREATE TABLE derived (b int) INHERITS (base);
	CREATE TABLE audit.log (id int, of audit.mood); CREATE TABLE "orders|x" (a int);
	CREATE VIEW customers AS SELECT * FROM customer;
	CREATE VIEW over AS SELECT count(*) FROM customers; COMMENT ON VIEW over IS 'of a view';
	CREATE VIEW fine AS SELECT id FROM orders;
	CREATE MATERIALIZED VIEW totals AS SELECT customer_id, count(*) FROM orders JOIN customer
		ON customer.id = customer_id GROUP BY 1;
	CREATE UNIQUE INDEX ON totals (customer_id);
	CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
	CREATE FUNCTION row_of(customer) RETURNS int LANGUAGE sql AS 'SELECT $1.id';
	CREATE FUNCTION audit.note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
	CREATE TRIGGER noting BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION audit.note();
	CREATE TRIGGER noted BEFORE INSERT ON customer FOR EACH ROW EXECUTE FUNCTION audit.note();
	ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
	CREATE POLICY mine ON orders USING (customer_id IN (SELECT id FROM customer));
	CREATE POLICY open ON orders FOR SELECT USING (true);
	CREATE RULE also AS ON DELETE TO orders DO ALSO DELETE FROM customer WHERE false;
	CREATE STATISTICS of_orders ON id, parent FROM orders;
	CREATE PUBLICATION feed FOR TABLE customer, orders;
	INSERT INTO customer SELECT i, 'c' || i, nullif(i - 1, 0) FROM generate_series(1, 20) i;
	INSERT INTO orders SELECT i, 1 + i % 20, NULL FROM generate_series(1, 50) i;
	INSERT INTO sales."Odd.Name" SELECT i, i FROM generate_series(1, 10) i;
	INSERT INTO sales.line SELECT i, i, 'x' FROM generate_series(1, 10) i;
	INSERT INTO sales.event SELECT i, '2024-06-01'::date + i * 10, 1 FROM generate_series(1, 40) i;
	INSERT INTO base VALUES (1); INSERT INTO derived VALUES (2, 3); INSERT INTO audit.log VALUES (1, 'good');
	REFRESH MATERIALIZED VIEW totals; SELECT setval('customer_id_seq', 100);`

// TestChoice compares a load of chosen objects with a copy of the source in which the other objects
// were dropped.
func TestChoice(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	psql(t, from, script(t, chooseFrom))
	for name, c := range map[string]struct {
		choice engine.Choice
		drop   string
		says   string
	}{
		"table": {engine.Choice{Exclude: []string{"Customer"}}, "DROP TABLE customer CASCADE",
			"omits the foreign key by on public.orders and 1 more"},
		"quoted table": {engine.Choice{Exclude: []string{`sales."Odd.Name"`, `"orders|x"`}},
			`DROP TABLE sales."Odd.Name", "orders|x" CASCADE`, "omits the table public.orders|x and 1 more"},
		"pattern": {engine.Choice{Exclude: []string{"sales.*", "cust*s"}},
			`DROP TABLE sales."Odd.Name", sales.line, sales.event CASCADE; DROP VIEW customers CASCADE`, ""},
		"partition":   {engine.Choice{Exclude: []string{"event_2024"}}, "DROP TABLE sales.event_2024", ""},
		"partitioned": {engine.Choice{Exclude: []string{"sales.event"}}, "DROP TABLE sales.event", ""},
		"inherited":   {engine.Choice{Exclude: []string{"base"}}, "DROP TABLE base CASCADE", ""},
		"data": {engine.Choice{ExcludeData: []string{"customer", "event"}},
			"ALTER TABLE orders DROP CONSTRAINT by; TRUNCATE customer, sales.event; REFRESH MATERIALIZED VIEW totals",
			"omits the rows of the table public.customer and 3 more"},
		"included": {engine.Choice{Tables: []string{"orders", "event_2025"}},
			`DROP TABLE customer, sales."Odd.Name", sales.line, sales.event_2024, base,
				audit.log, "orders|x" CASCADE`, ""},
		"schema": {engine.Choice{Schemas: []string{"public"}}, "DROP SCHEMA sales, audit CASCADE",
			"omits the schema audit and 1 more, as chosen"},
		"schema and table": {engine.Choice{Schemas: []string{"public"}, Tables: []string{"sales.line"}},
			`DROP TABLE sales."Odd.Name", sales.event CASCADE; DROP SCHEMA audit CASCADE`, ""},
		"extension": {engine.Choice{Extensions: []string{"cit*"}, Exclude: []string{"line"}},
			"DROP TABLE sales.line; DROP EXTENSION citext", "omits the extension citext, as chosen"},
		"publication": {engine.Choice{Omit: []string{"publications", "subscriptions"}}, "DROP PUBLICATION feed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, to := servertest.Postgres(t), servertest.Postgres(t)
			psql(t, want, script(t, chooseFrom+c.drop))
			for _, whole := range []*engine.Subset{nil, {Percent: 100}} {
				d := chosen(t, from, engine.Options{Jobs: 2, Choice: c.choice, Subset: whole})
				if err := load(t, to, d, false); err != nil {
					t.Fatal(err)
				}
				same(t, want, to)
				if said := strings.Join(d.Info.Schema.Omissions(), "\n"); !strings.Contains(said, c.says) {
					t.Errorf("it says %q", said)
				}
				if whole == nil {
					for _, trusted := range []func(engine.Dump) engine.Dump{ours, foreign} {
						if err := load(t, to, trusted(d), false); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
}

func chosen(t *testing.T, url string, o engine.Options) engine.Dump {
	t.Helper()
	return chosenBy(t, Engine{}, url, o)
}

func chosenBy(t *testing.T, e Engine, url string, o engine.Options) engine.Dump {
	t.Helper()
	var b bytes.Buffer
	info, err := e.Dump(t.Context(), url, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	return dumpOf(b.Bytes(), info)
}

// TestChoiceRefuses checks that a choice fails rather than drop a table silently.
func TestChoiceRefuses(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	psql(t, from, script(t, chooseFrom+`CREATE TABLE of_type (c customer);
		CREATE TABLE counted (a int DEFAULT nextval('orders_id_seq'))`))
	for want, c := range map[string]engine.Choice{
		`pattern "nothing*" matches no table`:    {Exclude: []string{"nothing*"}},
		`pattern "b.orders" matches no table`:    {Tables: []string{"b.orders"}},
		`pattern "none" matches no schema`:       {Schemas: []string{"none"}},
		`pattern "postgis" matches no extension`: {Extensions: []string{"postgis"}},
		`table public.of_type needs something`:   {Exclude: []string{"customer"}},
		`table public.counted needs something`:   {Exclude: []string{"orders"}},
		`table sales.line needs something`:       {Extensions: []string{"citext"}},
		`the choice leaves out every table`:      {Exclude: []string{"*"}},
	} {
		_, err := Engine{}.Dump(t.Context(), from, &bytes.Buffer{}, engine.Options{Choice: c})
		if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v (%v)", c, err, errors.Unwrap(err))
		}
	}
}

// TestChoiceNeedsNoRights checks that a user can build without rights on the tables that are left
// out.
func TestChoiceNeedsNoRights(t *testing.T) {
	t.Parallel()
	from := servertest.Postgres(t)
	user := "chooser_" + nameOf(t, from)
	psql(t, from, script(t, "CREATE TABLE mine (a int); CREATE TABLE secret (a int); CREATE ROLE "+user+
		" LOGIN; GRANT SELECT ON mine TO "+user))
	t.Cleanup(func() { psql(t, from, script(t, "DROP OWNED BY "+user+"; DROP ROLE "+user)) })
	_, err := Engine{}.Dump(t.Context(), as(t, from, user), &bytes.Buffer{}, engine.Options{})
	if err == nil {
		t.Fatal("the user may read the table")
	}
	d := chosen(t, as(t, from, user), engine.Options{Choice: engine.Choice{Exclude: []string{"secret"}}})
	if len(d.Info.Tables) != 1 || d.Info.Tables[0].Name != "mine" {
		t.Errorf("the tables are %v", d.Info.Tables)
	}
}

// TestOmitKinds leaves out event triggers and the comments on extensions. The extensions then have
// their default comments.
func TestOmitKinds(t *testing.T) {
	t.Parallel()
	const source = `CREATE EXTENSION citext; COMMENT ON EXTENSION citext IS 'changed'; CREATE TABLE t (a int);
		CREATE FUNCTION noting() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
		CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noting(); COMMENT ON EVENT TRIGGER noted IS 'n'`
	from := servertest.Postgres(t)
	psql(t, from, script(t, source))
	for kind, c := range map[string]struct{ drop, says string }{
		engine.OmitEventTriggers: {"DROP EVENT TRIGGER noted", "omits the event trigger noted, as chosen"},
		engine.OmitExtensionComments: {"DROP EXTENSION citext; CREATE EXTENSION citext",
			"omits the comment on the extension citext and 1 more, as chosen"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			want, to := servertest.Postgres(t), servertest.Postgres(t)
			psql(t, want, script(t, source+";"+c.drop))
			for _, whole := range []*engine.Subset{nil, {Percent: 100}} {
				choice := engine.Choice{Omit: []string{kind}}
				d := chosen(t, from, engine.Options{Jobs: 2, Choice: choice, Subset: whole})
				if err := load(t, to, d, false); err != nil {
					t.Fatal(err)
				}
				same(t, want, to)
				if said := strings.Join(d.Info.Schema.Omissions(), "\n"); !strings.Contains(said, c.says) {
					t.Errorf("it says %q", said)
				}
			}
		})
	}
}
