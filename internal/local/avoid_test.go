package local

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"snap/internal/sanitize"
)

// No masked value equals the original of any row, sampled or not. The originals have 3,000
// addresses and all first names of the mask's list.
func TestMasksAvoidAllOriginals(t *testing.T) {
	t.Parallel()
	originals := func(mask string, i int) string { return sanitize.Example(mask, fmt.Sprint(i)) }
	for name, driver := range map[string]string{"sqlite": "sqlite", "postgres": "pgx", "mysql": "mysql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			target := s.targetOn(t, name, "many")
			db, err := sql.Open(driver, dsnOf(driver, target.Source))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			execAll(t, db, "CREATE TABLE person (id int PRIMARY KEY, street varchar(80), given varchar(40))")
			all := map[string]bool{}
			var values []string
			for i := range 3000 {
				street, given := originals("address", i), originals("first_name", i)
				all[strings.ToLower(street)], all[strings.ToLower(given)] = true, true
				values = append(values, fmt.Sprintf("(%d, '%s', '%s')", i, street, given))
			}
			execAll(t, db, "INSERT INTO person VALUES "+strings.Join(values, ","))
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "many", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Sanitize(t.Context(), "many", SanitizeOptions{Rules: s.rulesFile(t,
				"keep: ['*.id']\ntables:\n  '*person': {columns: {street: address, given: first_name}}\n")},
				nil); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "many", LoadOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			loaded, err := sql.Open(driver, dsnOf(driver, target.Destination))
			if err != nil {
				t.Fatal(err)
			}
			defer loaded.Close()
			rows, err := loaded.Query("SELECT street, given FROM person")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			n := 0
			for ; rows.Next(); n++ {
				var street, given string
				if err := rows.Scan(&street, &given); err != nil {
					t.Fatal(err)
				}
				if all[strings.ToLower(street)] || all[strings.ToLower(given)] || street == "" || given == "" {
					t.Fatalf("%q, %q is an original or empty", street, given)
				}
			}
			if rows.Err() != nil || n != 3000 {
				t.Errorf("%d rows, %v", n, rows.Err())
			}
		})
	}
}
