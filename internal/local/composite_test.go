package local

import (
	"database/sql"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// The suggested rules mask columns of composite types field by field, including arrays and
// nested types. The copy loads, and an original in another column is found.
func TestCompositesAreMaskedFieldByField(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	target := Target{Name: "pg", Source: servertest.Postgres(t), Destination: servertest.Postgres(t)}
	db, err := sql.Open("pgx", target.Source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	execAll(t, db, `CREATE TYPE place AS (street text, zip varchar(5), "Is open" boolean);
		CREATE TYPE contact AS (email text, home place);
		CREATE TYPE size AS (width integer, height integer);
		CREATE TABLE branch (id integer PRIMARY KEY, main contact NOT NULL, others place[], box size, code text);
		INSERT INTO branch SELECT n, ROW('maria.' || n || '@real.example', ROW(n || ' Linden "B" Street, rear',
			lpad(n::text, 5, '1'), n % 2 = 0)::place)::contact,
				ARRAY[ROW(n || ' Elm Square North', NULL, true)::place, NULL],
			ROW(n, n + 1)::size, 'a' || n FROM generate_series(1, 30) n`)
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), "pg", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	text, _ := s.firstRules(t, "pg")
	for _, want := range []string{`main: {mask: composite, paths: {"email": email, "home": {mask: composite,`,
		"box: keep"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	clean := s.sanitizeAsSuggested(t, "pg")
	if _, err := s.Load(t.Context(), "pg", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT count(*) FROM branch WHERE (main).email LIKE '%@example.com'": "30",
		`SELECT count(*) FROM branch WHERE ((main).home).street LIKE '%Linden "B"%'
			OR others::text ~ 'Elm Square North'`: "0",
		"SELECT count(*) FROM branch WHERE (others[1]).zip IS NULL AND others[2] IS NULL":                 "30",
		"SELECT count(*) FROM branch WHERE ((main).home).\"Is open\" = (id % 2 = 0) AND (box).width = id": "30",
	} {
		if got := texts(t, target.Destination, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	execAll(t, db, "UPDATE branch SET code = (main).email WHERE id = 7")
	if _, err := s.Build(t.Context(), "pg", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	rules := s.rulesFile(t, `keep: ["*.id", "*.box", "*.code"]
tables:
  public.branch: {columns: {main: redact, others: redact}}
`)
	_, err = s.Sanitize(t.Context(), "pg", SanitizeOptions{Rules: rules}, nil)
	if err == nil || !strings.Contains(err.Error(), "public.branch.code") ||
		strings.Contains(err.Error(), "real.example") {
		t.Errorf("an original of a field in another column: %v", err)
	}
}
