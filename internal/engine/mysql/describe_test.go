package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/schema"
	"snap/internal/servertest"
)

// The description of a database, without its programs, recreates the tables: the server shows each
// table like the original, except the tables that have programs.
func TestDescribedTablesAreTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		servertest.Rounds(t, 3, func(r *rapid.T) {
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, generated(r, server))
			d, _ := dumped(t, from)
			known := throughJSON(t, d.Info.Schema)
			text, err := statementsFor(known, strings.HasPrefix(server, "mariadb"))
			if err != nil {
				r.Fatalf("%v: %s", err, contents(t, from))
			}
			if err := sameAsDescribed(t, from, to, text, known); err != nil {
				r.Fatal(err)
			}
			for _, url := range []string{from, to} {
				db, at := openURL(t, url)
				if _, err := db.Exec("DROP DATABASE " + quote(at.name)); err != nil {
					r.Fatal(err)
				}
				db.Close()
			}
		})
	})
}

// throughJSON returns a description after encoding it to JSON and decoding it.
func throughJSON(t testing.TB, d *schema.Schema) *schema.Schema {
	t.Helper()
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var again schema.Schema
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	return &again
}

func sameAsDescribed(t *testing.T, from, to string, s structure, d *schema.Schema) error {
	t.Helper()
	a, b := sessionOf(t, from), sessionOf(t, to)
	defer a.Close()
	defer b.Close()
	if _, err := b.ExecContext(context.Background(), "SET foreign_key_checks = 0"); err != nil {
		return err
	}
	for _, q := range s.Sequences {
		if err := createSequence(context.Background(), b, q); err != nil {
			return err
		}
	}
	for _, table := range s.Tables {
		if _, err := b.ExecContext(context.Background(), table.SQL); err != nil {
			return fmt.Errorf("%w: %s\nof: %s", err, table.SQL, answer(t, a, "SHOW CREATE TABLE "+quote(table.Name)))
		}
	}
	for _, table := range s.Tables {
		if slices.ContainsFunc(d.Programs, func(p schema.Program) bool { return p.On == table.Name }) {
			continue
		}
		x, y := shown(t, a, table.Name), shown(t, b, table.Name)
		if x != y {
			return fmt.Errorf("the table differs: %s\n%s\n%s", difference(x, y), x, y)
		}
	}
	return nil
}

func sessionOf(t testing.TB, url string) *sql.Conn {
	t.Helper()
	db, _ := openURL(t, url)
	c, err := session(context.Background(), db)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // otherwise the database is in use
	return c
}

func shown(t testing.TB, c *sql.Conn, table string) string {
	t.Helper()
	place := answer(t, c, "SELECT database()")[0]
	return nextNumber.ReplaceAllString(unlike.ReplaceAllString(strings.ReplaceAll(strings.Join(answer(t, c,
		"SHOW CREATE TABLE "+quote(table)), "\n"), quote(place)+".", ""), "$2"), "")
}

// From the description of a database with every kind of object, the tables are recreated, and all
// other objects are listed.
func TestEverythingIsDescribedOrNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		mariadb := strings.HasPrefix(server, "mariadb")
		script(t, from, everything+map[bool]string{true: everythingOfMariaDB, false: everythingOfMySQL}[mariadb])
		d, _ := dumped(t, from)
		known := throughJSON(t, d.Info.Schema)
		var programs []string
		for _, p := range known.Programs {
			programs = append(programs, strings.Trim(p.Kind+" "+p.Name.Name+" on "+p.On, " on"))
		}
		want := append([]string{
			"generated column g on t", "index kg on t", "trigger lower on t", "view v", "procedure p", "function f",
			"event e", "default b on t3",
		}, map[bool][]string{
			true:  {"system versioning ve on ve", "default now7 on t2"},
			false: {"expression index fn on t2", "default now7 on t2"},
		}[mariadb]...)
		slices.Sort(programs)
		slices.Sort(want)
		if !slices.Equal(programs, want) {
			t.Errorf("the programs are %q\nand should be %q", programs, want)
		}
		s, err := statementsFor(known, mariadb)
		if err != nil {
			t.Fatal(err)
		}
		if err := sameAsDescribed(t, from, to, s, known); err != nil {
			t.Error(err)
		}
	})
}

const everything = "CREATE TABLE owners (id BIGINT UNSIGNED PRIMARY KEY);" +
	"CREATE TABLE t1 (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20) CHARACTER SET utf8mb4 COLLATE " +
	"utf8mb4_bin NOT NULL DEFAULT 'it''s \\\\ x' COMMENT 'a\\nb''c', j JSON," +
	" ts TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), b BIT(5) DEFAULT b'10101', d " +
	"DECIMAL(10,3) DEFAULT -1.5, e ENUM('x','it''s','') CHARACTER SET latin1," +
	" dd DATE DEFAULT '2024-01-01', du DOUBLE DEFAULT -1.5e-300, x VARCHAR(40) DEFAULT (concat('a''b', 1 + 1)), tx " +
	"TEXT DEFAULT ('a''b\\\\c'), KEY k (v(3), ts) COMMENT 'k''s', UNIQUE KEY (d), KEY down (v DESC)," +
	" FULLTEXT KEY ft (v), CHECK (d IS NULL OR d >= 0 AND v <> 'a)('), CONSTRAINT `ch 2` CHECK (length(v) > 1 OR d " +
	"IN (1,2) OR d BETWEEN 1 AND 3 OR v LIKE 'a%')," +
	" CONSTRAINT owner FOREIGN KEY (id) REFERENCES owners (id) ON DELETE CASCADE) CHARSET utf8mb4 COMMENT='tab''s' " +
	"ROW_FORMAT=DYNAMIC;CREATE TABLE t (id INT PRIMARY KEY, d INT, g INT GENERATED ALWAYS AS (d + 1) VIRTUAL, " +
	"KEY kg (g)) ENGINE=InnoDB STATS_PERSISTENT=1 KEY_BLOCK_SIZE=0;" +
	"CREATE TABLE parts (id INT, d DATE, PRIMARY KEY (id,d)) PARTITION BY RANGE (year(d)) (PARTITION p0 VALUES LESS " +
	"THAN (2000), PARTITION p1 VALUES LESS THAN MAXVALUE);" +
	"CREATE TABLE parts2 (id INT, d VARCHAR(10), PRIMARY KEY (id,d)) PARTITION BY LIST COLUMNS (d) (PARTITION p0 " +
	"VALUES IN ('a','b'''), PARTITION p1 VALUES IN ('c'));" +
	"CREATE TABLE parts3 (id INT PRIMARY KEY) PARTITION BY LINEAR KEY (id) PARTITIONS 3;" +
	"CREATE TABLE parts4 (id INT PRIMARY KEY) PARTITION BY HASH (id % 7) PARTITIONS 2;" +
	"CREATE TABLE parts5 (a INT, b INT) PARTITION BY RANGE COLUMNS (a, b) (PARTITION p0 VALUES LESS THAN (-1, " +
	"MAXVALUE), PARTITION p1 VALUES LESS THAN (MAXVALUE, MAXVALUE));" +
	"CREATE TABLE parts6 (a INT) PARTITION BY LIST (a) (PARTITION p0 VALUES IN (-1, NULL), PARTITION p1 VALUES IN " +
	"(1));CREATE TABLE t2 (id INT PRIMARY KEY, a VARCHAR(5), now7 VARCHAR(40) DEFAULT (user()));" +
	"CREATE TABLE t3 (a INT, b INT DEFAULT (a + 1));" +
	"CREATE TABLE times (d DATE DEFAULT (curdate()), n DATE DEFAULT (now()), v VARCHAR(30) DEFAULT (now()), dt " +
	"DATETIME(6) DEFAULT (now()), p DATETIME(6) DEFAULT (now(3)), c DATETIME DEFAULT (curdate()));" +
	"CREATE TABLE my (a INT, KEY USING BTREE (a)) ENGINE=MyISAM; CREATE TABLE mem (a INT, KEY USING HASH (a)) " +
	"ENGINE=MEMORY;create trigger lower before insert on t for each row set new.d = 1; CREATE VIEW v AS SELECT " +
	"1 AS a; CREATE PROCEDURE p() SELECT 1; CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1; CREATE " +
	"EVENT e ON SCHEDULE EVERY 1 DAY DO SET @a = 1;"

const everythingOfMariaDB = "CREATE SEQUENCE s START WITH -5 MINVALUE -10 MAXVALUE 10 CYCLE; DO nextval(s); CREATE " +
	"TABLE n (id BIGINT DEFAULT (nextval(s)) PRIMARY KEY, c TEXT COMPRESSED, g POINT REF_SYSTEM_ID=4326, i INT " +
	"INVISIBLE, c2 INT CHECK (c2 > 1), KEY off (i) IGNORED, u UUID, i6 INET6);" +
	"CREATE TABLE ve (a INT AUTO_INCREMENT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED " +
	"ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e), PRIMARY KEY (a), KEY byend (e)) WITH SYSTEM VERSIONING; " +
	"CREATE TABLE ar (a INT) ENGINE=Aria TRANSACTIONAL=1 " +
	"PAGE_CHECKSUM=1; CREATE TABLE pc (a INT) PAGE_COMPRESSED=1"

const everythingOfMySQL = "CREATE TABLE n (id BIGINT PRIMARY KEY, g POINT NOT NULL SRID 4326, i INT INVISIBLE, KEY " +
	"kk (i) INVISIBLE, CHECK (i > 1) NOT ENFORCED, v TEXT, FULLTEXT KEY (v) WITH PARSER ngram, SPATIAL KEY (g));" +
	"ALTER TABLE t2 ADD KEY fn ((lower(a)), id)"

// TestOptionsOfTheOtherServer checks that a table's description is loaded without the options that
// the destination's server would refuse.
func TestOptionsOfTheOtherServer(t *testing.T) {
	t.Parallel()
	table := schema.Table{Options: map[string]string{"compression": "zlib", "page_compressed": "1", "checksum": "1"}}
	for mariadb, want := range map[bool]string{
		false: "ENGINE=InnoDB CHECKSUM=1 COMPRESSION='zlib'",
		true:  "ENGINE=InnoDB CHECKSUM=1 PAGE_COMPRESSED=1",
	} {
		g := generator{table: table, mariadb: mariadb}
		if got, err := g.options(); err != nil || got != want {
			t.Errorf("mariadb %v: %q, %v, not %q", mariadb, got, err, want)
		}
	}
}
