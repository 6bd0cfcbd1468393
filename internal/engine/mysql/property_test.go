package mysql

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap/internal/servertest"
)

// column is a type, and literals that hold its extremes.
type column struct {
	kind   string
	values []string
	only   string // a kind of server, else all
}

func columnKinds() []column {
	split := func(s string) []string { return strings.Split(s, ",") }
	texts := []string{"''", `'a''b\\c\n\t\0\r"%_'`, `'ünï'`, `'\\N'`, `'NULL'`, `'(1),(2);'`, `''','''`}
	wide := append(texts[:len(texts):len(texts)], `'😀 漢'`)
	return []column{
		{"TINYINT", split("-128,0,127"), ""}, {"TINYINT UNSIGNED", split("0,255"), ""}, {"SMALLINT ZEROFILL", split("7,65535"), ""}, {"MEDIUMINT", split("-8388608,8388607"), ""},
		{"INT", split("-2147483648,2147483647"), ""}, {"BIGINT", split("-9223372036854775808,9223372036854775807"), ""}, {"BIGINT UNSIGNED", split("18446744073709551615,9223372036854775808,0"), ""},
		{"BOOLEAN", split("0,1"), ""}, {"FLOAT", split("16777215,0.1,-3.4e38,1.17549e-38,0.333333333"), ""}, {"DOUBLE", split("0.1,1.7976931348623157e308,-2.2250738585072014e-308,0.3333333333333333,123456789.12345679"), ""},
		{"DECIMAL(65,30)", split("99999999999999999999999999999999999.999999999999999999999999999999,-0.000000000000000000000000000001"), ""}, {"DECIMAL(5)", split("-99999,0"), ""},
		{"BIT(1)", split("b'1',b'0'"), ""}, {"BIT(64)", split("b'1',18446744073709551615,x'0027005c0a'"), ""}, {"BIT(10)", split("b'1000000001'"), ""},
		{"DATE", split("'0000-00-00','1000-01-01','9999-12-31','2024-00-00'"), ""}, {"DATETIME", split("'0000-00-00 00:00:00','9999-12-31 23:59:59'"), ""}, {"DATETIME(6)", split("'2024-02-29 12:34:56.123456','1000-01-01 00:00:00.000001'"), ""},
		{"TIMESTAMP NULL", split("'1970-01-02 00:00:01','2038-01-01 03:14:07','2024-03-31 02:30:00'"), ""}, {"TIMESTAMP(3) NULL", split("'2024-10-27 02:30:00.999'"), ""},
		{"TIME", split("'-838:59:59','838:59:59','00:00:00'"), ""}, {"TIME(6)", split("'-12:00:00.000001','100:00:00.5'"), ""}, {"YEAR", split("1901,2155,0"), ""},
		{"CHAR(20)", texts, ""}, {"VARCHAR(30) CHARACTER SET utf8mb4", wide, ""}, {"VARCHAR(30) CHARACTER SET latin1", texts, ""}, {"VARCHAR(20) CHARACTER SET utf16", wide, ""}, {"CHAR(9) CHARACTER SET ucs2", []string{"'ünï'"}, ""},
		{"VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin", []string{"'a'", "''"}, ""}, {"VARCHAR(20) CHARACTER SET gbk", []string{"'漢'", `'\\'`}, ""}, {"VARCHAR(20) CHARACTER SET sjis", []string{"'表'"}, ""},
		{"TINYTEXT", texts, ""}, {"TEXT CHARACTER SET utf8mb4", wide, ""}, {"MEDIUMTEXT", texts, ""}, {"LONGTEXT CHARACTER SET utf8mb4", append(wide, "repeat('x\\n', 700000)"), ""},
		{"BINARY(5)", split("x'00ff27',x'5c0a0d001a','abcde'"), ""}, {"VARBINARY(40)", split("x'',x'00ff275c0a0d1a','it''s'"), ""}, {"TINYBLOB", split("x'00',''"), ""}, {"BLOB", split("x'fffe00275c',''"), ""}, {"MEDIUMBLOB", split("x'00'"), ""}, {"LONGBLOB", []string{"repeat(x'00ff275c0a', 300000)", "''"}, ""},
		{"ENUM('x','it''s','')", split("'x','it''s',''"), ""}, {"SET('a','b','c d')", split("'','a','a.c d'"), ""},
		{"JSON", []string{`'{"a": [1, 2.5, null, "(\\"x\\")", "ü😀"]}'`, `'[]'`, `'"text"'`}, ""},
		{"GEOMETRY", split("ST_GeomFromText('POINT(1 2)'),ST_GeomFromText('POINT(0.1 -0.3)')"), ""}, {"POINT", []string{"ST_GeomFromText('POINT(39 92)')"}, ""}, {"POLYGON", []string{"ST_GeomFromText('POLYGON((0 0,0 5,5 5,0 0))')"}, ""},
		{"UUID", split("'123e4567-e89b-12d3-a456-426655440000'"), "mariadb"}, {"INET6", split("'2001:db8::ff00:42:8329','::'"), "mariadb"}, {"INET4", split("'192.0.2.1'"), "mariadb"},
	}
}

// Generated schemas come back as they were, on every server: every type with its
// extremes, generated and invisible columns, odd names, keys, comments,
// partitions, references in cycles, views and triggers on them.
func TestGeneratedSchemasRoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		db, _ := openURL(t, servertest.MySQL(t, server))
		defer db.Close()
		until := time.Now().Add(8 * time.Second) // as many as fit: each makes and drops databases
		rapid.Check(t, func(r *rapid.T) {
			if time.Now().After(until) {
				return
			}
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, generated(r, server))
			d, _ := dumped(t, from)
			counted(t, from, d.Info.Tables)
			if err := load(t, to, d, true); err != nil {
				r.Fatalf("%v\n%s", err, contents(t, from))
			}
			if a, b := contents(t, from), contents(t, to); a != b {
				r.Fatalf("the copy differs: %s", difference(a, b))
			}
			for _, url := range []string{from, to} {
				_, at := openURL(t, url)
				if _, err := db.Exec("DROP DATABASE " + quote(at.name)); err != nil {
					r.Fatal(err)
				}
			}
		})
	})
}

// generated makes a script of a random schema with rows.
func generated(r *rapid.T, server string) string {
	var s strings.Builder
	s.WriteString("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', foreign_key_checks = 0;\n")
	kind, _, _ := strings.Cut(server, "-")
	var kinds []column
	for _, k := range columnKinds() {
		if k.only == "" || strings.HasPrefix(kind, k.only) {
			kinds = append(kinds, k)
		}
	}
	tables := rapid.IntRange(1, 3).Draw(r, "tables")
	for n := range tables {
		table(r, &s, kind, kinds, n, tables)
	}
	return s.String()
}

func table(r *rapid.T, s *strings.Builder, kind string, kinds []column, n, tables int) {
	name := quote(rapid.SampledFrom([]string{"t", "T x", "a`b", "ü漢", "select", "it's", "a.b"}).Draw(r, "name") + fmt.Sprint(n))
	var columns []column
	for range rapid.IntRange(1, 12).Draw(r, "columns") {
		columns = append(columns, rapid.SampledFrom(kinds).Draw(r, "column"))
	}
	fmt.Fprintf(s, "CREATE TABLE %s (`id` BIGINT AUTO_INCREMENT PRIMARY KEY, `ref` BIGINT, `word` VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", name)
	var names []string
	for i, c := range columns {
		names = append(names, quote(fmt.Sprintf("c%d `'\"", i)))
		fmt.Fprintf(s, ", %s %s COMMENT 'it''s\\n column %d'", names[i], c.kind, i)
	}
	if rapid.Bool().Draw(r, "generated") {
		s.WriteString(", `gv` INT GENERATED ALWAYS AS (length(`word`) + 1) VIRTUAL, `gs` VARCHAR(50) GENERATED ALWAYS AS (concat(`word`, ',', '(')) STORED, KEY (`gs`)")
	}
	if rapid.Bool().Draw(r, "invisible") {
		s.WriteString(", `inv` INT " + map[bool]string{true: "INVISIBLE DEFAULT 5", false: "DEFAULT 5 INVISIBLE"}[kind == "mariadb"])
	}
	s.WriteString(rapid.SampledFrom([]string{"", ", KEY `k``1` (`word`(3), `ref`)", ", UNIQUE KEY (`word`, `id`), KEY (`ref`)", ", CHECK (`ref` IS NULL OR `ref` >= 0)", ", FULLTEXT KEY (`word`)"}).Draw(r, "keys"))
	partitioned := rapid.IntRange(0, 4).Draw(r, "partitioned") == 0
	if !partitioned {
		fmt.Fprintf(s, ", KEY `rk` (`ref`)")
	}
	s.WriteString(") " + rapid.SampledFrom([]string{"", "CHARSET latin1", "CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci", "AUTO_INCREMENT = 1000", "COMMENT 'a table''s'", "ROW_FORMAT=COMPRESSED"}).Draw(r, "options"))
	if partitioned && !strings.Contains(s.String()[strings.LastIndex(s.String(), "CREATE TABLE"):], "FULLTEXT") && !hasGeometry(columns) {
		s.WriteString(" PARTITION BY HASH (`id`) PARTITIONS 3")
		partitioned = true
	} else if partitioned {
		partitioned = false
	}
	s.WriteString(";\n")
	rows(r, s, name, columns, names)
	if rapid.Bool().Draw(r, "view") {
		fmt.Fprintf(s, "CREATE VIEW `v%d` AS SELECT `id`, concat(`word`, 'ü;') AS `w` FROM %s;\n", n, name)
	}
	if rapid.Bool().Draw(r, "trigger") {
		fmt.Fprintf(s, "DELIMITER //\nCREATE TRIGGER `tr%d` BEFORE INSERT ON %s FOR EACH ROW BEGIN SET NEW.`ref` = NULL; SET NEW.`word` = 'fired;'; END //\nDELIMITER ;\n", n, name)
	}
	if n == tables-1 && !partitioned {
		fmt.Fprintf(s, "ALTER TABLE %s ADD CONSTRAINT `self %d` FOREIGN KEY (`ref`) REFERENCES %s (`id`) ON DELETE CASCADE;\n", name, n, name)
	}
}

func hasGeometry(columns []column) bool {
	for _, c := range columns {
		if c.kind == "GEOMETRY" || c.kind == "POINT" || c.kind == "POLYGON" {
			return true
		}
	}
	return false
}

func rows(r *rapid.T, s *strings.Builder, name string, columns []column, names []string) {
	for i := range rapid.IntRange(0, 4).Draw(r, "rows") {
		values := []string{fmt.Sprint([]int{0, 1, 5, 70000}[i]), "NULL", "'wörd'"}
		for _, c := range columns {
			values = append(values, rapid.SampledFrom(append(c.values, "NULL")).Draw(r, "value"))
		}
		fmt.Fprintf(s, "INSERT INTO %s (`id`, `ref`, `word`, %s) VALUES (%s);\n", name, strings.Join(names, ", "), strings.Join(values, ", "))
	}
}
