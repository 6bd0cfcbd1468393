package store_test

import (
	"database/sql"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// A role that may only read and write rows, with the grants of docs/operations.md, serves a schema
// that another role has brought up to date.
func TestARoleThatCannotChangeTheSchemaServes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grants, _ := strings.Cut(string(page), "```sql\n")
	grants, _, _ = strings.Cut(grants, "```")
	owner := servertest.Postgres(t)
	at, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	role := "rows_" + regexp.MustCompile(`\W`).ReplaceAllString(strings.Trim(at.Path, "/"), "_")
	db, err := sql.Open("pgx", owner)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	newWorld(t, store.Options{URL: owner})
	for _, statement := range append([]string{`CREATE ROLE snapcloud LOGIN PASSWORD 'x'`},
		strings.Split(strings.TrimSpace(grants), ";\n")...) {
		statement = regexp.MustCompile(`\bsnapcloud\b`).ReplaceAllString(statement, role)
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	at.User = url.UserPassword(role, "x")
	s, err := store.Open(t.Context(), store.Options{URL: at.String()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.ApplyOrg(t.Context(), "newcomer", "Newcomer", snap.Policy{}); err != nil {
		t.Error(err)
	}
	limited, err := sql.Open("pgx", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	if _, err := limited.ExecContext(t.Context(), `ALTER TABLE orgs ADD COLUMN x int`); err == nil {
		t.Error("the role changes the schema")
	}
}
