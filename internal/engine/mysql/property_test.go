package mysql

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/servertest"
)

// column is a type, and literals with its extreme values.
type column struct {
	kind   string
	values []string
	only   string // the beginning of the server's name, or empty for every server
}

func columnKinds() []column {
	split := func(s string) []string { return strings.Split(s, ",") }
	texts := []string{"''", `'a''b\\c\n\t\0\r"%_'`, `'ünï'`, `'\\N'`, `'NULL'`, `'(1),(2);'`, `''','''`}
	wide := append(texts[:len(texts):len(texts)], `'😀 漢'`)
	return []column{
		{"TINYINT", split("-128,0,127"), ""}, {"TINYINT UNSIGNED", split("0,255"), ""},
		{"SMALLINT ZEROFILL", split("7,65535"), ""}, {"MEDIUMINT", split("-8388608,8388607"), ""},
		{"INT", split("-2147483648,2147483647"), ""}, {"BIGINT", split("-9223372036854775808,9223372036854775807"), ""},
		{"BIGINT UNSIGNED", split("18446744073709551615,9223372036854775808,0"), ""},
		{"BOOLEAN", split("0,1"), ""}, {"FLOAT", split("16777215,0.1,-3.4e38,1.17549e-38,0.333333333"), ""},
		{"DOUBLE", split("0.1,1.7976931348623157e308,-2.2250738585072014e-308,0.3333333333333333,123456789.12345679"),
			""},
		{"DECIMAL(65,30)",
			split("99999999999999999999999999999999999.999999999999999999999999999999," +
				"-0.000000000000000000000000000001"), ""},
		{"DECIMAL(5)", split("-99999,0"), ""},
		{"BIT(1)", split("b'1',b'0'"), ""}, {"BIT(64)", split("b'1',18446744073709551615,x'0027005c0a'"), ""},
		{"BIT(10)", split("b'1000000001'"), ""},
		{"DATE", split("'0000-00-00','1000-01-01','9999-12-31','2024-00-00'"), ""},
		{"DATETIME", split("'0000-00-00 00:00:00','9999-12-31 23:59:59'"), ""},
		{"DATETIME(6)", split("'2024-02-29 12:34:56.123456','1000-01-01 00:00:00.000001'"), ""},
		{"TIMESTAMP NULL", split("'1970-01-02 00:00:01','2038-01-01 03:14:07','2024-03-31 02:30:00'"), ""},
		{"TIMESTAMP(3) NULL", split("'2024-10-27 02:30:00.999'"), ""},
		{"TIME", split("'-838:59:59','838:59:59','00:00:00'"), ""},
		{"TIME(6)", split("'-12:00:00.000001','100:00:00.5'"),
			""}, {"YEAR", split("1901,2155,0"), ""},
		{"CHAR(20)", texts, ""}, {"VARCHAR(30) CHARACTER SET utf8mb4", wide, ""},
		{"VARCHAR(30) CHARACTER SET latin1", texts, ""}, {"VARCHAR(20) CHARACTER SET utf16", wide, ""},
		{"CHAR(9) CHARACTER SET ucs2", []string{"'ünï'"}, ""},
		{"VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin", []string{"'a'", "''"}, ""},
		{"VARCHAR(20) CHARACTER SET gbk",
			[]string{"'漢'", `'\\'`}, ""}, {"VARCHAR(20) CHARACTER SET sjis", []string{"'表'"}, ""},
		{"TINYTEXT", texts, ""}, {"TEXT CHARACTER SET utf8mb4", wide, ""}, {"MEDIUMTEXT", texts, ""},
		{"LONGTEXT CHARACTER SET utf8mb4", append(wide, "repeat('x\\n', 700000)"), ""},
		{"BINARY(5)", split("x'00ff27',x'5c0a0d001a','abcde'"), ""},
		{"VARBINARY(40)", split("x'',x'00ff275c0a0d1a','it''s'"), ""}, {"TINYBLOB", split("x'00',''"), ""},
		{"BLOB", split("x'fffe00275c',''"), ""}, {"MEDIUMBLOB", split("x'00'"), ""},
		{"LONGBLOB", []string{"repeat(x'00ff275c0a', 300000)", "''"}, ""},
		{"ENUM('x','it''s','')", split("'x','it''s',''"), ""},
		{"SET('a','b','c d')", []string{"''", "'a'", "'a,c d'"}, ""},
		{"JSON", []string{`'{"a": [1, 2.5, null, "(\\"x\\")", "ü😀"]}'`, `'[]'`, `'"text"'`}, ""},
		{"GEOMETRY", split("ST_GeomFromText('POINT(1 2)'),ST_GeomFromText('POINT(0.1 -0.3)')"), ""},
		{"POINT", []string{"ST_GeomFromText('POINT(39 92)')"}, ""},
		{"POLYGON", []string{"ST_GeomFromText('POLYGON((0 0,0 5,5 5,0 0))')"}, ""},
		{"LINESTRING", []string{"ST_GeomFromText('LINESTRING(0 0,1e300 -1e-300)')"}, ""},
		{"MULTIPOINT", []string{"ST_GeomFromText('MULTIPOINT(0 0,1 1)')"}, ""},
		{"MULTILINESTRING", []string{"ST_GeomFromText('MULTILINESTRING((0 0,1 1))')"}, ""},
		{"MULTIPOLYGON", []string{"ST_GeomFromText('MULTIPOLYGON(((0 0,0 5,5 5,0 0)))')"}, ""},
		{"GEOMETRYCOLLECTION", []string{"ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1))')"}, ""},
		{"POINT SRID 4326", []string{"ST_GeomFromText('POINT(48.1 11.5)', 4326)"}, "mysql"},
		{"POINT REF_SYSTEM_ID=4326", []string{"ST_GeomFromText('POINT(48.1 11.5)', 4326)"}, "mariadb"},
		{"VECTOR(3)", []string{"STRING_TO_VECTOR('[1,-2.5,1e-30]')"}, "mysql-9"},
		{"VECTOR(3)", []string{"VEC_FromText('[1,-2.5,1e-30]')"}, "mariadb-11"}, {"TEXT COMPRESSED", texts, "mariadb"},
		{"TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
			split("'2024-01-01 00:00:00.5'"),
			""}, {"VARCHAR(40) DEFAULT (concat('a''b', 1 + 1))", texts, ""},
		{"DOUBLE DEFAULT -1.5e-300", split("0"), ""},
		{"BIT(5) DEFAULT b'10101'", split("0"), ""},
		{"UUID", split("'123e4567-e89b-12d3-a456-426655440000'"), "mariadb"},
		{"INET6", split("'2001:db8::ff00:42:8329','::'"), "mariadb"}, {"INET4", split("'192.0.2.1'"), "mariadb"},
	}
}

// Generated schemas are restored unchanged on every server: every type with its
// extremes, generated and invisible columns, odd names, checks, keys of every kind,
// comments, partitions, histories, references, sequences, views, triggers,
// routines, packages and events made with odd settings.
func TestGeneratedSchemasRoundTrip(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		db, _ := openURL(t, servertest.MySQL(t, server))
		defer db.Close()
		servertest.Rounds(t, 4, func(r *rapid.T) {
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
