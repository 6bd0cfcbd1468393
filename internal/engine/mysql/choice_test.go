package mysql

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

const chooseFrom = `
CREATE TABLE customer (id int PRIMARY KEY, name varchar(20), boss int, CONSTRAINT own FOREIGN KEY (boss)
	REFERENCES customer (id));
CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, customer int, parent int, note varchar(20) DEFAULT ') , (',
	customers int,
	CONSTRAINT ` + "`by,(`" + ` FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE, KEY n (note),
	CONSTRAINT up FOREIGN KEY (parent) REFERENCES orders (id));
CREATE TABLE ` + "`odd``Name`" + ` (id int PRIMARY KEY, o int, CONSTRAINT o1 FOREIGN KEY (o) REFERENCES orders (id));
CREATE TABLE line (id int, o int, CONSTRAINT o2 FOREIGN KEY (o) REFERENCES orders (id), CONSTRAINT o3
	FOREIGN KEY (o) REFERENCES customer (id));
CREATE TABLE log (a int);
CREATE VIEW customers AS SELECT id, name FROM customer;
CREATE VIEW overall AS SELECT count(*) AS n FROM customers;
CREATE VIEW both_of AS SELECT o.id, c.name FROM orders o JOIN customer c ON c.id = o.customer;
CREATE VIEW fine AS SELECT o.id, o.customers AS customer, l.id AS log FROM orders o JOIN line l ON l.o = o.id
	WHERE o.customer IN (SELECT x.o FROM line x);
CREATE TRIGGER noted BEFORE INSERT ON customer FOR EACH ROW SET NEW.name = upper(NEW.name);
CREATE TRIGGER noting BEFORE INSERT ON orders FOR EACH ROW SET NEW.note = 'x';
CREATE FUNCTION two() RETURNS int DETERMINISTIC RETURN 2;
INSERT INTO customer VALUES (1, 'a', NULL), (2, 'b', 1); INSERT INTO orders (id, customer, parent) VALUES (1, 1,
	NULL), (2, 2, 1);
INSERT INTO line VALUES (1, 1); INSERT INTO log VALUES (1);
`

// TestChoice compares a load of chosen objects with the source after the same objects have been
// dropped there.
func TestChoice(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from := servertest.MySQL(t, server)
		script(t, from, chooseFrom)
		for name, c := range map[string]struct {
			choice engine.Choice
			drop   string
			says   string
		}{
			"table": {engine.Choice{Exclude: []string{"Customer"}},
				"ALTER TABLE orders DROP FOREIGN KEY `by,(`; ALTER TABLE line DROP FOREIGN KEY o3; " +
					"DROP VIEW customers, overall, both_of; DROP TABLE customer",
				"omits the foreign key o3 on line and 1 more"},
			"patterns": {engine.Choice{Exclude: []string{"odd`*", "l*"}},
				"DROP VIEW fine; DROP TABLE `odd``Name`, line, log",
				"omits the view fine"},
			"views": {engine.Choice{Exclude: []string{"customers"}}, "DROP VIEW customers, overall",
				"omits the view overall"},
			"data": {engine.Choice{ExcludeData: []string{"customer", "log"}},
				"ALTER TABLE orders DROP FOREIGN KEY `by,(`; ALTER TABLE line DROP FOREIGN KEY o3; " +
					"SET foreign_key_checks = 0; DELETE FROM customer; DELETE FROM log",
				"omits the rows of the table customer and 1 more"},
			"included": {engine.Choice{Tables: []string{"orders", "line"}},
				"ALTER TABLE orders DROP FOREIGN KEY `by,(`; ALTER TABLE line DROP FOREIGN KEY o3; " +
					"DROP VIEW customers, overall, both_of; DROP TABLE `odd``Name`, customer, log", ""},
		} {
			t.Run(name, func(t *testing.T) {
				want, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
				script(t, want, chooseFrom+c.drop)
				for _, whole := range []*engine.Subset{nil, {Percent: 100}} {
					var b bytes.Buffer
					info, err := Engine{}.Dump(t.Context(), from, &b, engine.Options{Jobs: 2, Choice: c.choice,
						Subset:  whole,
						TempDir: t.TempDir()})
					if err != nil {
						t.Fatal(err)
					}
					d := dumpOf(b.Bytes(), info)
					if err := load(t, to, d, true); err != nil {
						t.Fatal(err)
					}
					if a, b := contents(t, want), contents(t, to); a != b {
						t.Error(difference(a, b))
					}
					if said := strings.Join(info.Schema.Omissions(), "\n"); !strings.Contains(said, c.says) ||
						!slices.ContainsFunc(info.Warnings, func(w string) bool { return strings.Contains(said, w) }) {
						t.Errorf("it says %q", said)
					}
					if d.Trust = engine.Foreign; whole == nil {
						if err := load(t, to, d, true); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		for want, c := range map[string]engine.Choice{
			`pattern "none" matches no table`:     {Exclude: []string{"none"}},
			`only PostgreSQL databases have sche`: {Schemas: []string{"a"}},
			`the choice leaves out every table`:   {Exclude: []string{"*"}},
		} {
			_, err := Engine{}.Dump(t.Context(), from, &bytes.Buffer{}, engine.Options{Choice: c})
			if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v", c, err)
			}
		}
	})
}
