package mysql

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// Masked values are stored unchanged, or refused with an error that names the table and the column.
// Values that the source has although its columns would now refuse them, such as the empty value of
// an ENUM, are loaded unchanged.
func TestMaskedValuesAreLoadedStrictly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, "SET sql_mode = ''; CREATE TABLE people (id INT PRIMARY KEY, e ENUM('x','y'), "+
			"s SET('a','b'), d DATE, "+
			"t DATETIME, at TIME, v VARCHAR(4), n SMALLINT, p DECIMAL(4,2), y YEAR); INSERT INTO people VALUES "+
			"(1, 'nothing', 'a', '0000-00-00', '0000-00-00 00:00:00', '01:02:03', 'abc', 1, 1.5, 1999), "+
			"(2, 'y', '', '2024-00-00', '2024-01-02 03:04:05', '-800:00:00', '', 2, 0, 0), "+
			"(3, 'X', 'b,a', '2024-01-02', '2024-01-02 03:04:05', '00:00:00', 'x', 3, 9, 2155)")
		d, _ := dumped(t, from)
		masked := func(column, value string) error {
			var out bytes.Buffer
			info, err := Engine{}.Rewrite(t.Context(), d, planFor(d.Info.Tables, map[string]engine.Mask{
				"people." + column: func(v string) (string, bool) {
					if value == "" || v != "" && strings.Trim(v, "0-: ") == "" {
						return v, false
					}
					return value, false
				}}), &out, engine.Options{})
			if err != nil {
				return err
			}
			return load(t, to, dumpOf(out.Bytes(), info), true)
		}
		if err := masked("e", ""); err != nil {
			t.Fatal(err)
		}
		if a, b := contents(t, from), contents(t, to); a != b {
			t.Errorf("kept values differ: %s", difference(a, b))
		}
		for _, c := range [][2]string{{"e", "z"}, {"e", "3"}, {"s", "a,c"}, {"d", "2024-13-45"}, {"d", "none"},
			{"t", "2024-01-02 25:00:00"}, {"at", "soon"}, {"v", "abcde"}, {"n", "99999"}, {"n", "one"},
			{"p", "1000"}, {"y", "1800"}, {"d", "2024-01-02x"}} {
			err := masked(c[0], c[1])
			if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(), "people") ||
				!regexp.MustCompile("['.`]"+c[0]+`\b`).MatchString(err.Error()) {
				t.Errorf("%s masked as %q: %v", c[0], c[1], err)
			}
		}
		for column, value := range map[string]string{"e": "x", "s": "b", "d": "2020-02-02", "v": "wxyz"} {
			if err := masked(column, value); err != nil {
				t.Errorf("%s masked as %q: %v", column, value, err)
			}
		}
	})
}

// The warning about a masked value is found, however many empty values of an ENUM also cause
// warnings.
func TestEmptyMembersHideNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, "SET sql_mode = ''; CREATE TABLE m (e ENUM('x'), n TINYINT); INSERT INTO m VALUES ('', 1), "+
			"('', 1), ('', 1), ('', 1), ('', 1), ('', 1), ('', 1), ('', 1), ('', 1), ('', 1); INSERT INTO m SELECT "+
			"a.* FROM m a, m b, m c, m d; INSERT INTO m SELECT a.* FROM m a, (SELECT 1 FROM m LIMIT 6) b; INSERT INTO "+
			"m VALUES ('', 2)")
		d, _ := dumped(t, from)
		if err := load(t, to, d, true); err != nil {
			t.Fatal(err)
		}
		counted(t, to, d.Info.Tables)
		var out bytes.Buffer
		info, err := Engine{}.Rewrite(t.Context(), d, planFor(d.Info.Tables, map[string]engine.Mask{
			"m.n": func(v string) (string, bool) {
				if v == "2" {
					return "1000", false
				}
				return v, false
			}}), &out, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := load(t, to, dumpOf(out.Bytes(), info), true); snap.CodeOf(err) != snap.CodeInvalid {
			t.Error(err)
		}
	})
}

// SQL that masks is refused if a server would store a different value. This includes tables
// without transactions, for which servers are not strict by default. SQL without statements is
// reported.
func TestSQLIsStrict(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, "CREATE TABLE m (id INT PRIMARY KEY, e ENUM('x')) ENGINE=MyISAM; INSERT INTO m VALUES "+
			"(1, 'x'), (2, 'x')")
		d, _ := dumped(t, from)
		s, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Drop(t.Context()) }()
		err = s.Run(t.Context(), "UPDATE m SET e = CASE id WHEN 2 THEN 'z' ELSE 'x' END")
		if snap.CodeOf(err) != snap.CodeDatabase || !strings.Contains(err.Error(), "'e'") {
			t.Error(err)
		}
		if err := s.Run(t.Context(), "UPDATE m SET e = NULL"); err != nil {
			t.Error(err)
		}
		for _, text := range []string{"# x", "DELIMITER //", "-- x\n/* y */;", "DELIMITER $$\n# x\n$$", "# x\n--\r\n"} {
			if err := s.Run(t.Context(), text); !errors.Is(err, engine.ErrNoStatement) {
				t.Errorf("%q: %v", text, err)
			}
		}
		if err := s.Run(t.Context(), "# x\n;UPDATE m SET e = 'x'"); err != nil {
			t.Error(err)
		}
	})
}
