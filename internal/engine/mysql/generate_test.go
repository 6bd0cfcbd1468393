package mysql

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// sketch is a script that makes a random schema with rows.
type sketch struct {
	strings.Builder
	r       *rapid.T
	mariadb bool
	kinds   []column
}

func generated(r *rapid.T, server string) string {
	s := &sketch{r: r, mariadb: strings.HasPrefix(server, "mariadb")}
	for _, k := range columnKinds() {
		if strings.HasPrefix(server, k.only) {
			s.kinds = append(s.kinds, k)
		}
	}
	s.WriteString("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', foreign_key_checks = 0;\n")
	if s.mariadb {
		s.sequence()
	}
	tables := rapid.IntRange(1, 3).Draw(r, "tables")
	for n := range tables {
		s.table(n, n == tables-1)
	}
	s.programs()
	return s.String()
}

func (s *sketch) write(format string, args ...any) { fmt.Fprintf(s, format, args...) }
func (s *sketch) maybe(what string) bool           { return rapid.Bool().Draw(s.r, what) }
func (s *sketch) oneOf(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(s.r, what)
}

// on returns the spelling for MariaDB or for MySQL.
func (s *sketch) on(mariadb, mysql string) string {
	if s.mariadb {
		return mariadb
	}
	return mysql
}

func (s *sketch) sequence() {
	s.write("CREATE SEQUENCE `se``q` %s;\n", s.oneOf("sequence", "", "START 100 INCREMENT 7 CACHE 3",
		"INCREMENT -1 MINVALUE -50 MAXVALUE 10 START 5 NOCACHE", "MINVALUE 1 MAXVALUE 3 CYCLE",
		"MINVALUE 1 MAXVALUE 36 INCREMENT 7 CYCLE", "INCREMENT -1 MINVALUE -3 MAXVALUE 0 CYCLE",
		"START 9223372036854775000 NOCACHE"))
	for range rapid.IntRange(0, 5).Draw(s.r, "drawn") {
		s.write("DO nextval(`se``q`);\n")
	}
}

// table creates a table of a random kind, fills it, and creates its triggers and other objects.
func (s *sketch) table(n int, last bool) {
	name := quote(s.oneOf("name", "t", "T x", "a`b", "ü漢", "select", "it's", "a.b") + fmt.Sprint(n))
	shape := s.oneOf("shape", "plain", "plain", "plain", "partitioned", "versioned")
	if shape == "versioned" && !s.mariadb {
		shape = "plain"
	}
	s.write("CREATE TABLE %s (`id` BIGINT AUTO_INCREMENT PRIMARY KEY, `ref` BIGINT, `word` VARCHAR(20) CHARACTER SET "+
		"utf8mb4 COLLATE utf8mb4_bin", name)
	columns, names := s.columns(shape == "partitioned")
	s.extras(n, shape)
	s.write(") %s", s.oneOf("options", "", "CHARSET latin1", "CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci",
		"AUTO_INCREMENT = 1000", "COMMENT 'a table''s'", "ROW_FORMAT=COMPRESSED", "ROW_FORMAT=REDUNDANT"))
	switch shape {
	case "versioned":
		s.WriteString(" WITH SYSTEM VERSIONING")
	case "partitioned":
		s.WriteString(" PARTITION BY " + s.oneOf("partitions", "HASH (`id`) PARTITIONS 3",
			"LINEAR KEY (`id`) PARTITIONS 2",
			"RANGE (`id`) (PARTITION `p 0` VALUES LESS THAN (5) COMMENT 'it''s', PARTITION p1 VALUES LESS THAN "+
				"MAXVALUE)",
			"LIST (`id` % 2) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1, NULL))",
			"RANGE (`id`) SUBPARTITION BY HASH (`id`) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (100), "+
				"PARTITION p1 "+
				"VALUES LESS THAN MAXVALUE)"))
	}
	s.WriteString(";\n")
	s.rows(name, columns, names)
	if shape == "versioned" {
		s.write("UPDATE %s SET `word` = 'later' WHERE `id` = 1; DELETE FROM %[1]s WHERE `id` = 5;\n", name)
	}
	if s.maybe("view") {
		s.write("CREATE %s VIEW `v%d` AS SELECT `id`, concat(`word`, 'ü;') AS `w``x` FROM %s WHERE `id` > 0 %s;\n",
			s.oneOf("kind of view", "", "ALGORITHM=MERGE", "SQL SECURITY INVOKER",
				"ALGORITHM=MERGE DEFINER=root@localhost SQL SECURITY DEFINER"), n, name,
			s.oneOf("check option", "", "WITH LOCAL CHECK OPTION"))
	}
	if s.maybe("trigger") {
		s.write("DELIMITER //\nCREATE TRIGGER `tr%d` BEFORE INSERT ON %s FOR EACH ROW BEGIN SET NEW.`ref` = NULL; SET "+
			"NEW.`word` = 'fired;'; END //\nDELIMITER ;\n", n, name)
		s.write("CREATE TRIGGER `tr2 %d` BEFORE INSERT ON %s FOR EACH ROW PRECEDES `tr%[1]d` SET NEW.`word` = "+
			"'first';\n", n,
			name)
	}
	if last && shape == "plain" {
		s.write("ALTER TABLE %s ADD CONSTRAINT `self %d` FOREIGN KEY (`ref`) REFERENCES %[1]s (`id`) ON DELETE "+
			"CASCADE;\n",
			name, n)
	}
}

// columns writes random columns. Partitioned tables have no spatial columns.
func (s *sketch) columns(partitioned bool) (columns []column, names []string) {
	for range rapid.IntRange(1, 12).Draw(s.r, "columns") {
		c := rapid.SampledFrom(s.kinds).Draw(s.r, "column")
		if partitioned && strings.Contains(c.values[0], "ST_Geom") {
			continue
		}
		name := quote(fmt.Sprintf("c%d `'\"", len(names)))
		s.write(", %s %s COMMENT 'it''s\\n column) ENGINE=x, %d'", name, c.kind, len(names))
		columns, names = append(columns, c), append(names, name)
	}
	return columns, names
}

// extras writes computed columns, hidden columns, checks and keys.
func (s *sketch) extras(n int, shape string) {
	if s.maybe("generated") {
		s.WriteString(", `gv` INT GENERATED ALWAYS AS (length(`word`) + 1) VIRTUAL, `gs` VARCHAR(50) GENERATED " +
			"ALWAYS AS (concat(`word`, ',', '(')) STORED, KEY (`gs`), KEY `on virtual` (`gv`)")
	}
	if s.maybe("invisible") {
		s.WriteString(", `inv` INT " + s.on("INVISIBLE DEFAULT 5", "DEFAULT 5 INVISIBLE"))
	}
	if s.mariadb && s.maybe("numbered") {
		s.WriteString(", `num` BIGINT DEFAULT (nextval(`se``q`))")
	}
	keys := []string{
		"", "KEY `k``1` (`word`(3), `ref`) COMMENT 'a key''s'", "UNIQUE KEY (`word`, `id`), KEY (`ref`)",
		"KEY `down` (`word` DESC, `ref`)", "KEY `off` (`word`) " + s.on("IGNORED", "INVISIBLE"),
		"CHECK (`ref` IS NULL OR `ref` >= 0)",
		fmt.Sprintf("CONSTRAINT `ch``%d` CHECK (`word` <> 'a)(' OR `ref` > 1) %s", n,
			s.on("", "NOT ENFORCED")),
	}
	if !s.mariadb {
		keys = append(keys, "KEY `fn` ((lower(`word`)), `ref`)",
			"`mv` JSON, KEY `many` ((CAST(`mv`->'$.a' AS UNSIGNED ARRAY)))")
	}
	if shape == "plain" {
		keys = append(keys, "FULLTEXT KEY (`word`)",
			"`at` POINT NOT NULL "+s.on("", "SRID 0 ")+"DEFAULT (POINT(1, 2)), SPATIAL KEY (`at`)")
	}
	if s.mariadb && shape == "plain" {
		keys = append(keys,
			"`from` DATE DEFAULT '2024-01-01', `to` DATE DEFAULT '2025-01-01', PERIOD FOR `when` (`from`, `to`), "+
				"UNIQUE "+
				"(`id`, `when` WITHOUT OVERLAPS)")
	}
	if k := s.oneOf("keys", keys...); k != "" {
		s.WriteString(", " + k)
	}
	if shape != "partitioned" {
		s.WriteString(", KEY `rk` (`ref`)")
	}
}

func (s *sketch) rows(name string, columns []column, names []string) {
	for i := range rapid.IntRange(0, 4).Draw(s.r, "rows") {
		values := []string{fmt.Sprint([]int{0, 1, 5, 70000}[i]), "NULL", "'wörd'"}
		for _, c := range columns {
			values = append(values, rapid.SampledFrom(append(c.values, "NULL")).Draw(s.r, "value"))
		}
		s.write("INSERT INTO %s (%s) VALUES (%s);\n", name,
			strings.Join(append([]string{"`id`", "`ref`", "`word`"}, names...), ", "), strings.Join(values, ", "))
	}
}

// programs creates routines, events and packages, some of them with unusual settings of the
// session.
func (s *sketch) programs() {
	if s.maybe("settings") {
		s.WriteString("SET NAMES latin1, sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES', time_zone = " +
			"'+05:30';\n")
	}
	if s.maybe("routines") {
		s.WriteString("CREATE FUNCTION `f``1` (`x y` INT) RETURNS VARCHAR(10) CHARSET utf8mb4 DETERMINISTIC COMMENT " +
			"'it''s' RETURN concat('ü\\;', `x y`);\n")
		s.WriteString("DELIMITER $$\nCREATE DEFINER=root@localhost PROCEDURE `p q`(IN a INT, OUT b TEXT)\nSQL " +
			"SECURITY INVOKER\nBEGIN\n  -- a comment; and 'more\n  SET b = 'x' || a;\nEND $$\nDELIMITER ;\n")
	}
	if s.maybe("event") {
		s.WriteString("CREATE EVENT `e``v` ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2030-01-01 00:00:00' ENDS " +
			"'2035-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE COMMENT 'it''s' DO SET @a = 'x' || 'y';\n")
		s.WriteString("CREATE EVENT `once` ON SCHEDULE AT '2037-01-01 00:00:00' DO SET @a = 1;\n")
	}
	if s.mariadb && s.maybe("oracle") {
		s.WriteString("SET sql_mode = ORACLE;\nDELIMITER $$\nCREATE PACKAGE pk AS FUNCTION f RETURN INT; END " +
			"$$\nCREATE PACKAGE BODY pk AS FUNCTION f RETURN INT AS BEGIN RETURN 1; END; END $$\nDELIMITER ;\n")
		s.WriteString("SET sql_mode = '';\nDELIMITER $$\nCREATE AGGREGATE FUNCTION agg(x INT) RETURNS INT BEGIN " +
			"DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR NOT FOUND RETURN n; LOOP FETCH GROUP NEXT " +
			"ROW; SET n = n + x; END LOOP; END $$\nDELIMITER ;\n")
	}
}

// TestSequencesOfOthers: a default that takes the next number of a sequence keeps working after a load
// as data. The sequence keeps its comment, which is searched for originals like the rest of the schema.
func TestSequencesOfOthers(t *testing.T) {
	t.Parallel()
	from, to := servertest.MySQL(t, "mariadb-11.8"), servertest.MySQL(t, "mariadb-11.8")
	script(t, from, "CREATE SEQUENCE seq START 100 COMMENT 'by Ann'; CREATE TABLE numbered (id BIGINT DEFAULT "+
		"(nextval(seq)) PRIMARY KEY, v INT); INSERT INTO numbered (v) VALUES (1), (2)")
	d, _ := dumped(t, from)
	var seen []string
	p := planFor(d.Info.Tables, nil)
	p.Schema = func(kind, name string, sql []byte) {
		if bytes.Contains(sql, []byte("Ann")) {
			seen = append(seen, kind+" "+name)
		}
	}
	if _, err := (Engine{}).Rewrite(t.Context(), d, p, io.Discard, engine.Options{}); err != nil ||
		!slices.Equal(seen, []string{"sequence seq"}) {
		t.Errorf("%v, %v", seen, err)
	}
	if len(d.Info.Warnings) > 0 {
		t.Errorf("%q", d.Info.Warnings)
	}
	d.Trust = engine.Foreign
	if err := load(t, to, d, false); err != nil {
		t.Fatal(err)
	}
	loaded, _ := dumped(t, to)
	if got := loaded.Info.Schema.Sequences[0].Comment; got != "by Ann" {
		t.Errorf("the comment is %q", got)
	}
	script(t, to, "INSERT INTO numbered (v) VALUES (3)")
	got := sorted(t, to, "SELECT count(DISTINCT id) FROM numbered WHERE id >= 100")
	if !slices.Equal(got, []string{"3"}) {
		t.Errorf("%v", got)
	}
}
