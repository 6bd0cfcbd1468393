package sqlite

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
)

const chooseFrom = `
CREATE TABLE customer (id INTEGER PRIMARY KEY, name text, boss int CONSTRAINT b REFERENCES customer (id)
	ON DELETE SET NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, "references" text DEFAULT 'REFERENCES customer',
	customer int CONSTRAINT by REFERENCES customer NOT DEFERRABLE NOT NULL,
	parent int REFERENCES orders, log int, CONSTRAINT two FOREIGN KEY ("customer")
		REFERENCES [customer] (id) MATCH FULL ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED,
	CHECK (id > 0) FOREIGN KEY (log) REFERENCES log (a)) STRICT;
CREATE TABLE log (a int PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE "Odd.Name" (id int, o int, FOREIGN KEY (o) REFERENCES orders(id));
CREATE VIRTUAL TABLE words USING fts5(text);
CREATE VIEW customers AS SELECT id, name FROM customer;
CREATE VIEW over AS SELECT count(*) AS n FROM customers;
CREATE VIEW fine AS SELECT id FROM orders;
CREATE VIEW broken AS SELECT * FROM nowhere;
CREATE TRIGGER logging AFTER INSERT ON orders BEGIN INSERT INTO log VALUES (NEW.id + 100); END;
CREATE TRIGGER named AFTER UPDATE ON orders BEGIN SELECT 'customer'; END;
CREATE TRIGGER viewing AFTER DELETE ON orders BEGIN SELECT * FROM over; END;
CREATE INDEX of_customer ON orders (customer);
INSERT INTO customer VALUES (1, 'a', NULL), (2, 'b', 1);
INSERT INTO log VALUES (1); INSERT INTO orders (customer, log) VALUES (1, 1), (2, NULL);
INSERT INTO "Odd.Name" VALUES (1, 1); INSERT INTO words VALUES ('hello');
`

// chooseInto dumps chosen objects and restores them with every degree of trust. It returns the
// definitions in the last result, and the information about the dump.
func chooseInto(t *testing.T, from string, o engine.Options) (objects []string, info engine.Info) {
	t.Helper()
	var b bytes.Buffer
	o.TempDir = t.TempDir()
	info, err := Engine{}.Dump(t.Context(), URLOf(from), &b, o)
	if err != nil {
		t.Fatal(err)
	}
	d := engine.Dump{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		Size: int64(b.Len()), Info: info}
	for _, d.Trust = range []engine.Trust{engine.Foreign, engine.Ours, engine.Mine} {
		s, err := Engine{}.Restore(t.Context(), URLOf(filepath.Join(t.TempDir(), "to.db")), d, o)
		if err != nil {
			t.Fatal(err)
		}
		objects = sortedColumn(t, s.(*scratch).path,
			"SELECT name || ': ' || sql FROM sqlite_schema WHERE sql IS NOT NULL")
	}
	return objects, info
}

// TestChoice checks which definitions and rows chosen objects have.
func TestChoice(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "from.db")
	makeDatabase(t, from, chooseFrom)
	for name, c := range map[string]struct {
		choice      engine.Choice
		gone, there []string
		says        string
	}{
		"table": {engine.Choice{Exclude: []string{"Customer"}}, []string{"customer:", "customers:", "over:",
			"CONSTRAINT", "viewing:"},
			[]string{"fine:", "broken:", "logging:", "named:", "of_customer:",
				"customer int  NOT NULL,",
				"parent int REFERENCES orders, log int,"}, "omits the foreign key orders to customer and 1 more"},
		"log": {engine.Choice{Exclude: []string{"l?g"}}, []string{"log:", "logging:", "FOREIGN KEY (log)"},
			[]string{"CHECK (id > 0) )", "customers:", "named:", "viewing:",
				"CONSTRAINT two"}, "omits the trigger logging"},
		"data": {engine.Choice{ExcludeData: []string{"customer"}}, []string{"CONSTRAINT two"},
			[]string{"customer:", "customers:", "REFERENCES customer (id)"},
			"rows of the table customer"},
		"search": {engine.Choice{Exclude: []string{"words"}}, []string{"words"}, []string{"orders:"}, ""},
		"included": {engine.Choice{Tables: []string{`"Odd.Name"`, "Odd.n*"}}, []string{"orders:", "REFERENCES"},
			[]string{"Odd.Name:"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, whole := range []*engine.Subset{nil, {Percent: 100}} {
				objects, info := chooseInto(t, from, engine.Options{Choice: c.choice, Subset: whole})
				text := strings.Join(objects, "\n")
				for _, part := range c.gone {
					if strings.Contains("\n"+text, "\n"+part) || !strings.HasSuffix(part, ":") &&
						strings.Contains(text, part) {
						t.Errorf("%q is there:\n%s", part, text)
					}
				}
				for _, part := range c.there {
					if !strings.Contains(text, part) {
						t.Errorf("%q is not there:\n%s", part, text)
					}
				}
				if said := strings.Join(info.Warnings, "\n"); !strings.Contains(said, c.says) {
					t.Errorf("it says %q", said)
				}
				at := slices.IndexFunc(info.Tables, func(t engine.Table) bool { return t.Name == "customer" })
				if at >= 0 && (info.Tables[at].Rows == 0) != (name == "data") {
					t.Errorf("customer has %d rows", info.Tables[at].Rows)
				}
			}
		})
	}
}

// TestChoiceRefuses checks that a choice fails rather than ignore a pattern.
func TestChoiceRefuses(t *testing.T) {
	t.Parallel()
	from := filepath.Join(t.TempDir(), "from.db")
	makeDatabase(t, from, chooseFrom)
	for want, c := range map[string]engine.Choice{
		`pattern "none" matches no table`:     {Exclude: []string{"none"}},
		`only PostgreSQL databases have exte`: {Extensions: []string{"a"}},
		`the choice leaves out every table`:   {Exclude: []string{"*"}},
	} {
		_, err := Engine{}.Dump(t.Context(), URLOf(from), &bytes.Buffer{}, engine.Options{Choice: c,
			TempDir: t.TempDir()})
		if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
