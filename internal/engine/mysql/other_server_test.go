package mysql

import (
	"bytes"
	"strings"
	"testing"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestAcrossServers loads snapshots of MySQL into MariaDB and the other way round. A snapshot with
// something that the other server does not have is refused with the server's reason, and the
// destination does not change.
func TestAcrossServers(t *testing.T) {
	t.Parallel()
	const common = "CREATE TABLE customer (id int PRIMARY KEY AUTO_INCREMENT, name varchar(40) CHARACTER SET utf8mb4 " +
		"COLLATE utf8mb4_unicode_ci UNIQUE, born date, spent decimal(9,2) DEFAULT 0.5, note json); " +
		"INSERT INTO customer (name, born, note) VALUES ('Ann', '2000-01-02', '{\"a\": 1}'), ('Zoë', NULL, NULL); " +
		"CREATE TABLE orders (id int PRIMARY KEY, customer_id int, FOREIGN KEY (customer_id) REFERENCES customer " +
		"(id) ON DELETE CASCADE); INSERT INTO orders VALUES (7, 1); CREATE VIEW v AS SELECT name FROM customer"
	rows := []engine.Table{{Name: "customer", Rows: 2}, {Name: "orders", Rows: 1}}
	for _, c := range []struct{ from, to, only, refusal string }{
		{"mariadb", "mysql-8.0", "CREATE SEQUENCE s",
			"the snapshot is from MariaDB 10."},
		{"mariadb-11.8", "mysql-9.7", "CREATE TABLE u (a uuid)",
			"the destination's server is MySQL 9."},
		{"mysql-8.0", "mariadb", "CREATE TABLE u (a int, b int, KEY ((a + b)))",
			"the snapshot is from MySQL 8.0"},
		{"mysql-9.7", "mariadb-11.8", "CREATE TABLE u (a text COLLATE utf8mb4_ja_0900_as_cs)",
			": utf8mb4_ja_0900_as_cs"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.MySQL(t, c.from), servertest.MySQL(t, c.to)
			script(t, from, "ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci; "+common)
			build := func() engine.Dump {
				var b bytes.Buffer
				info, err := Engine{}.Dump(t.Context(), from, &b, engine.Options{Jobs: 2})
				if err != nil {
					t.Fatal(err)
				}
				return dumpOf(b.Bytes(), info)
			}
			for _, trust := range []engine.Trust{engine.Mine, engine.Ours, engine.Foreign} {
				d := build()
				d.Trust = trust
				if err := load(t, to, d, true); err != nil {
					t.Errorf("trust %v: %v", trust, err)
					continue
				}
				counted(t, to, rows)
			}
			script(t, from, c.only)
			err := load(t, to, build(), true)
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Error(err)
			}
			counted(t, to, rows)
		})
	}
}
