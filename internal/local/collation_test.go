package local

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
)

// Values that differ only in case get the same mask if the database compares them without case, as
// with citext, NOCASE and MySQL's collations. Unique columns stay unique, and references still
// match. The table a_visit, which refers to the unique keys of person, comes first by name.
func TestCollationsAreRespected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ driver, before, text string }{
		"sqlite":   {"sqlite", "", "TEXT COLLATE NOCASE"},
		"postgres": {"pgx", "CREATE EXTENSION citext;", "citext"},
		"mysql":    {"mysql", "", "varchar(90)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			target := s.targetOn(t, name, "folded")
			open := func(url string) *sql.DB {
				db, err := sql.Open(c.driver, dsnOf(c.driver, url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
			db := open(target.Source)
			execAll(t, db, c.before+strings.ReplaceAll(`CREATE TABLE person (code TYPE NOT NULL UNIQUE,
				email TYPE NOT NULL UNIQUE);
				CREATE TABLE a_visit (id int PRIMARY KEY, code TYPE, email TYPE,
				FOREIGN KEY (code) REFERENCES person (code), FOREIGN KEY (email) REFERENCES person (email))`,
				"TYPE", c.text))
			var people, visits []string
			for i := range 400 { // different codes of two letters, in mixed case
				code := fmt.Sprintf("%c%c", 'a'+i/20, 'A'+i%20)
				people = append(people, fmt.Sprintf("('%s', '%s.%d@real.example')", code, code, i))
				visits = append(visits, fmt.Sprintf("(%d, '%s', '%s.%d@REAL.example')", i, strings.ToUpper(code),
					strings.ToLower(code), i))
			}
			execAll(t, db, "INSERT INTO person VALUES "+strings.Join(people, ", "))
			execAll(t, db, "INSERT INTO a_visit VALUES "+strings.Join(visits, ", "))
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "folded", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Sanitize(t.Context(), "folded", SanitizeOptions{Rules: s.rulesFile(t,
				"keep: ['*visit.id']\ntables:\n  '*person': {columns: {code: key, email: email}}\n"+
					"  '*visit': {columns: {code: key, email: email}}\n")}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "folded", LoadOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			var joined, left int
			loaded := open(target.Destination)
			err := loaded.QueryRow(`SELECT count(*) FROM a_visit v JOIN person p
				ON p.code = v.code AND p.email = v.email`).Scan(&joined)
			if err != nil || joined != 400 {
				t.Errorf("%d of 400 rows join, %v", joined, err)
			}
			err = loaded.QueryRow("SELECT count(*) FROM person WHERE email LIKE '%real%'").Scan(&left)
			if err != nil || left != 0 {
				t.Errorf("%d originals, %v", left, err)
			}
		})
	}
}
