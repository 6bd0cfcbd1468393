package local

import (
	"database/sql"
	"path/filepath"
	"testing"

	"snap/internal/servertest"
)

// A rule with `else: keep` masks every row for which a server could call the condition true,
// however the server writes the values.
func TestConditionsMaskWhatServersCallEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, driver string }{{"sqlite", "sqlite"}, {"postgres", "pgx"},
		{"mysql-8.0", "mysql"}} {
		t.Run(c.name, func(t *testing.T) {
			s := newShop(t)
			target := Target{Name: "people", Source: "sqlite://" + filepath.Join(s.dir, "a.db"),
				Destination: "sqlite://" + filepath.Join(s.dir, "b.db")}
			switch c.driver {
			case "pgx":
				target.Source, target.Destination = servertest.Postgres(t), servertest.Postgres(t)
			case "mysql":
				target.Source, target.Destination = servertest.MySQL(t, c.name), servertest.MySQL(t, c.name)
			}
			source, err := sql.Open(c.driver, dsnOf(c.driver, target.Source))
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			execAll(t, source, "CREATE TABLE p (id int PRIMARY KEY, kind char(10), level numeric(5,2), "+
				"active boolean, a varchar(80), b varchar(80), c varchar(80))")
			const mail = "'maria@real.example', 'maria@real.example', 'maria@real.example'"
			execAll(t, source, "INSERT INTO p VALUES (1, 'customer', 1, true, "+mail+"), (2, 'staff', 3, false, "+mail+
				"), (3, 'Customer', 1, true, "+mail+")")
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "people", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			rules := `{keep: ['*p.id', '*p.kind', '*p.level', '*p.active'], tables: {'*p': {columns: {
				a: {mask: email, when: "kind = 'customer'", else: keep},
				b: {mask: email, when: "level IN (1, 2)", else: keep},
				c: {mask: email, when: "active IN (true)", else: keep}}}}}`
			options := SanitizeOptions{Rules: s.rulesFile(t, rules)}
			if _, err := s.Sanitize(t.Context(), "people", options, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "people", LoadOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			loaded, err := sql.Open(c.driver, dsnOf(c.driver, target.Destination))
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			for _, column := range []string{"a", "b", "c"} {
				got := allRows(t, loaded, "SELECT id FROM p WHERE "+column+" = 'maria@real.example' ORDER BY id")
				if want := allRows(t, loaded, "SELECT 2 AS id"); got != want {
					t.Errorf("%s is kept in the rows %q, want %q", column, got, want)
				}
			}
		})
	}
}
