package mysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// limits returns a schema at the servers' limits: the longest rows and names, the
// most columns, keys and columns in a key, and a value of 8 MB.
func limits() string {
	var s strings.Builder
	s.WriteString("SET sql_mode = '';\nCREATE TABLE longest (a VARBINARY(65533) NOT NULL) CHARSET latin1; INSERT " +
		"INTO longest VALUES (repeat(x'00270a', 21844)), ('');\n")
	var columns, values []string
	for i := range 1017 {
		columns, values = append(columns, fmt.Sprintf("c%d TINYINT", i)), append(values, fmt.Sprint(i%128))
	}
	fmt.Fprintf(&s, "CREATE TABLE widest (%s); INSERT INTO widest VALUES (%s);\n", strings.Join(columns, ", "),
		strings.Join(values, ", "))
	s.WriteString("CREATE TABLE keyed (id INT PRIMARY KEY")
	for i := range 63 {
		fmt.Fprintf(&s, ", k%d INT, KEY (k%[1]d)", i)
	}
	s.WriteString(", KEY (k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, k10, k11, k12, k13, k14, k15)); INSERT INTO keyed " +
		"(id, k62) VALUES (1, 2), (-1, NULL);\n")
	long := strings.Repeat("ü", 64)
	fmt.Fprintf(&s,
		"CREATE TABLE `%[1]s` (`%[1]s` INT, KEY `%[1]s` (`%[1]s`), CONSTRAINT `%[1]s` CHECK (`%[1]s` > 0)) COMMENT "+
			"'%[2]s'; INSERT INTO `%[1]s` VALUES (1);\n", long, strings.Repeat("'' ", 600))
	s.WriteString("CREATE TABLE `two\nlines` (`a\n  KEY ``b` INT PRIMARY KEY, c INT, KEY `c\nd` (c)); INSERT INTO " +
		"`two\nlines` VALUES (1, 2);\n")
	// 'z' is stored as none of the members
	s.WriteString("CREATE TABLE chosen (e ENUM('x','y')); INSERT INTO chosen VALUES ('z'), ('y'), (NULL);\n")
	s.WriteString("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'; CREATE TABLE days (d DATE, t DATETIME); INSERT INTO " +
		"days VALUES ('2020-02-31', '2021-04-31 10:00:00'), ('2020-00-10', '0000-00-00 00:00:00'); SET SESSION " +
		"sql_mode = DEFAULT;\n")
	s.WriteString("CREATE TABLE large (id INT PRIMARY KEY, a LONGTEXT, b LONGTEXT); INSERT INTO large VALUES (1, " +
		"repeat(concat(repeat('x', 1000), '''\\n'), 8000), ''), (2, NULL, NULL);\n")
	return s.String()
}

func TestLimits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		text := strings.Replace(limits(), ", KEY (k62)", "", 1) // 64 keys, with the primary key, are the limit
		if strings.HasPrefix(server, "mysql") {
			text += "SET SESSION sql_generate_invisible_primary_key = ON; CREATE TABLE unkeyed (a INT); INSERT INTO " +
				"unkeyed VALUES (3), (3), (NULL);\n"
		} else {
			text += "CREATE TABLE checked (a INT CHECK (a < 5)); SET SESSION check_constraint_checks = 0; INSERT " +
				"INTO checked VALUES (9);\n"
		}
		script(t, from, text)
		d, _ := dumped(t, from)
		counted(t, from, d.Info.Tables)
		if err := load(t, to, d, false); err != nil {
			t.Fatal(err)
		}
		if a, b := contents(t, from), contents(t, to); a != b || len(a) < 8_000_000 {
			t.Errorf("the copy differs: %s", difference(a, b))
		}
	})
}

// TestFullMemoryTable loads a table of the engine MEMORY that is larger than the server allows. The
// error names the table and the setting.
func TestFullMemoryTable(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, "SET SESSION max_heap_table_size = 64 << 20; "+
			"CREATE TABLE fast (a VARBINARY(60000)) ENGINE=MEMORY; "+
			"INSERT INTO fast VALUES ('x')"+strings.Repeat(", ('x')", 399))
		d, _ := dumped(t, from)
		err := load(t, to, d, false)
		if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(err.Error(), "'fast' is full") {
			t.Error(err)
		}
		var failed *snap.Error
		if errors.As(err, &failed) && !strings.Contains(failed.Hint, "max_heap_table_size") {
			t.Error(failed.Hint)
		}
	})
}
