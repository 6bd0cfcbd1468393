package servertest_test

import (
	"database/sql"
	"testing"

	"snap/internal/servertest"
)

func TestPostgresGivesSeparateEmptyDatabases(t *testing.T) {
	t.Parallel()
	one, two := open(t, servertest.Postgres(t)), open(t, servertest.Postgres(t))
	if _, err := one.Exec("CREATE TABLE only_in_one(x int)"); err != nil {
		t.Fatal(err)
	}
	var tables int
	if err := two.QueryRow("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if tables != 0 {
		t.Errorf("a fresh database has %d tables, want 0", tables)
	}
}

func open(t *testing.T, url string) *sql.DB {
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
