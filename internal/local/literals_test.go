package local

import (
	"database/sql"
	"strings"
	"testing"

	"snap"
)

// Originals in the schema stop a run. The error names the objects but not the values.
// schema_literals redacts them where no row depends on them, or keeps them with a warning.
func TestSchemaLiterals(t *testing.T) {
	t.Parallel()
	const rows = `INSERT INTO person VALUES (1, 'maria.meyer@real.example'), (2, 'jan@other.example');`
	const view = `CREATE VIEW special AS SELECT id FROM person WHERE email = 'maria.meyer@real.example';`
	for name, c := range map[string]struct{ driver, make, stuck string }{
		"sqlite": {"sqlite", `CREATE TABLE person (id INTEGER PRIMARY KEY,
			email TEXT DEFAULT 'maria.meyer@real.example');` +
			view, `CREATE INDEX some ON person (id) WHERE email <> 'maria.meyer@real.example';`},
		"postgres": {"pgx", `CREATE TABLE person (id int PRIMARY KEY, email text DEFAULT 'maria.meyer@real.example');
			COMMENT ON TABLE person IS 'ask maria.meyer@real.example';` + view,
			`ALTER TABLE person ADD CHECK (email <> 'MARIA.meyer@real.example');`},
		"mysql": {"mysql", `CREATE TABLE person (id int PRIMARY KEY, email varchar(90)
			DEFAULT 'maria.meyer@real.example') COMMENT 'ask maria.meyer@real.example';` + view,
			`ALTER TABLE person ADD CHECK (email <> 'maria.meyer@real.example ');`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			target := s.targetOn(t, name, "literals")
			db, err := sql.Open(c.driver, dsnOf(c.driver, target.Source))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			execAll(t, db, c.make+rows)
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			sanitize := func(setting string) (Snapshot, error) {
				t.Helper()
				if _, err := s.Build(t.Context(), "literals", BuildOptions{}, nil); err != nil {
					t.Fatal(err)
				}
				return s.Sanitize(t.Context(), "literals", SanitizeOptions{Rules: s.rulesFile(t,
					setting+"keep: ['*.id']\ntables:\n  '*person': {columns: {email: email}}\n")}, nil)
			}
			if _, err := sanitize(""); snap.CodeOf(err) != snap.CodeInvalid ||
				!strings.Contains(err.Error(), "view special") || strings.Contains(err.Error(), "maria") {
				t.Errorf("%v", err)
			}
			kept, err := sanitize("schema_literals: keep\n")
			if err != nil || len(kept.Warnings) != 1 || !strings.Contains(kept.Warnings[0], "were kept") {
				t.Errorf("%v, %v", kept.Warnings, err)
			}
			redacted, err := sanitize("schema_literals: redact\n")
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Verify(t.Context(), redacted.Name, nil)
			if err != nil || m.Sanitized.LeakScan.Schema < 2 {
				t.Errorf("%+v, %v", m.Sanitized.LeakScan, err)
			}
			if strings.Contains(content(t, redacted), "maria.meyer") {
				t.Error("an original is in the copy")
			}
			if _, err := s.Load(t.Context(), "literals", LoadOptions{Snapshot: redacted.Name}, nil); err != nil {
				t.Error(err)
			}
			execAll(t, db, c.stuck)
			if _, err := sanitize("schema_literals: redact\n"); snap.CodeOf(err) != snap.CodeInvalid ||
				!strings.Contains(err.Error(), "cannot be redacted") {
				t.Errorf("%v", err)
			}
		})
	}
}

func execAll(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	for statement := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
