package sanitize

import (
	"strings"
	"testing"

	"snap"
	"snap/internal/personal"
)

// Originals are redacted in comments and in strings on which no row depends. The length stays.
func TestLiterals(t *testing.T) {
	t.Parallel()
	watched := []Watched{{"person.email", "maria@real.example"}, {"person.name", "Maria O'Neil"}}
	for _, c := range []struct{ kind, sql, want string }{
		{"table", "CREATE TABLE t (a text DEFAULT 'maria@real.example'::text NOT NULL)",
			"CREATE TABLE t (a text DEFAULT 'xxxxx@xxxx.xxxxxxx'::text NOT NULL)"},
		{"table", "CREATE TABLE t (a int COMMENT 'ask MARIA@real.example') COMMENT='x'",
			"CREATE TABLE t (a int COMMENT 'ask xxxxx@xxxx.xxxxxxx') COMMENT='x'"},
		{"table", "CREATE TABLE t (a int -- ask maria@real.example\n)",
			"CREATE TABLE t (a int -- ask xxxxx@xxxx.xxxxxxx\n)"},
		{"table", "CREATE TABLE t (a text CHECK (a <> 'maria@real.example'))", ""},
		{"table", "CREATE TABLE t (a text DEFAULT 1, CHECK (a = 'maria@real.example'))", ""},
		{"type", "CREATE TYPE t AS ENUM ('maria@real.example')", ""},
		{"index", "CREATE INDEX i ON t (a) WHERE a = 'maria@real.example'", ""},
		{"table", `CREATE TABLE t ("maria@real.example" text)`, ""},
		{"view", "CREATE VIEW v AS SELECT 'Maria O''Neil', x FROM t WHERE a = 'it''s' OR b = 'maria@real.example'",
			"CREATE VIEW v AS SELECT 'xxxxx x''xxxx', x FROM t WHERE a = 'it''s' OR b = 'xxxxx@xxxx.xxxxxxx'"},
		{"comment", "COMMENT ON TABLE t IS 'of maria@real.example';", "COMMENT ON TABLE t IS 'of xxxxx@xxxx.xxxxxxx';"},
	} {
		p := Prepared{Originals: watched}
		l, sql := p.Literals(LiteralsRedact), []byte(c.sql)
		l.Search(c.kind, "o", sql)
		err := l.Result(LiteralsRedact)
		if c.want == "" && (snap.CodeOf(err) != snap.CodeInvalid || string(sql) != c.sql) ||
			c.want != "" && (err != nil || string(sql) != c.want) {
			t.Errorf("%s\nbecomes %s, %v", c.sql, sql, err)
		}
		stop, text := p.Literals(""), []byte(c.sql)
		stop.Search(c.kind, "o", text)
		err = stop.Result("")
		if snap.CodeOf(err) != snap.CodeInvalid || string(text) != c.sql ||
			strings.Contains(strings.ToLower(err.Error()), "maria") ||
			!strings.Contains(err.Error(), "in "+c.kind+" o") {
			t.Errorf("%v", err)
		}
		if stop.Result(LiteralsKeep) != nil || stop.Found() != 1 {
			t.Errorf("%s is not kept", c.sql)
		}
	}
}

// The search includes numbers that are long or have separators, but never matches part of another
// number.
func TestNumbersAreWatched(t *testing.T) {
	t.Parallel()
	for v, want := range map[string]bool{"+49 30 1234567": true, "123-45-6789": true, "4111111111111111": true,
		"2026-11-23 10:00": false, "23.11.2026": false, "12345678": false, "1234567890": false, "1.25e-3": false} {
		if got := worthWatching(v, personal.ParseType("text")); got != want {
			t.Errorf("%s: %t", v, got)
		}
	}
	f := newFinder([]Watched{{"a", "41111111111"}})
	for text, want := range map[string]bool{"41111111111": true, "x41111111111,": true, "941111111111": false,
		"411111111119": false} {
		got := false
		f.find([]byte(text), len(text), nil, func(int, int) { got = true })
		if got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
