package local

import (
	"database/sql"
	"strings"
	"testing"

	"snap"
)

// A MySQL dump escapes quotes, backslashes and line breaks. The leak scan finds originals with
// them, and does not mistake a line break for the letters that escape it.
func TestLeaksInEscapedStrings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person, kept string // SQL literals
		leak         bool
	}{
		"a quote":               {`'O\'Brien Patterson'`, `'call O\'BRIEN patterson'`, true},
		"a backslash":           {`'\\New Patterson'`, `'call \\new PATTERSON'`, true},
		"a line break":          {`'Ann\nPatterson'`, `'call Ann\nPatterson'`, true},
		"no line break":         {`'\\New Patterson'`, `'call\new patterson'`, false},
		"no zero byte":          {`'\\0123 Patterson'`, `'call\0123 Patterson'`, false},
		"a pair of backslashes": {`'\\\\New Patterson'`, `'call \\\\\\New Patterson'`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			target := s.targetOn(t, "mysql", "escapes")
			db, err := sql.Open("mysql", dsnOf("mysql", target.Source))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			execAll(t, db, `CREATE TABLE person (id int PRIMARY KEY, name varchar(90));
				CREATE TABLE log (id int PRIMARY KEY, line varchar(90));
				INSERT INTO person VALUES (1, `+c.person+`); INSERT INTO log VALUES (1, `+c.kept+`)`)
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "escapes", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			rules := s.rulesFile(t, "keep: ['*.id', log.line]\ntables: {person: {columns: {name: redact}}}\n")
			_, err = s.Sanitize(t.Context(), "escapes", SanitizeOptions{Rules: rules}, nil)
			if found := snap.CodeOf(err) == snap.CodeInvalid && strings.Contains(err.Error(),
				"those of person.name in log.line"); found != c.leak || !c.leak && err != nil {
				t.Errorf("found: %t, want %t: %v", found, c.leak, err)
			}
		})
	}
}
