package local

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// A SQL file fires no trigger and no rule of the database, which could copy the
// originals to another table. They are there again in the copy, and fire.
func TestSQLFiresNoTriggers(t *testing.T) {
	t.Parallel()
	const tables = "CREATE TABLE person (id integer PRIMARY KEY, name varchar(80)); CREATE TABLE history (was varchar(80));" +
		"INSERT INTO person VALUES (1, 'Wilhelmina Original'), (2, 'Theodora Original');"
	for kind, c := range map[string]struct {
		driver, more string
		server       func() string
	}{
		"sqlite": {"sqlite", "CREATE TRIGGER keep AFTER UPDATE ON person BEGIN INSERT INTO history VALUES (old.name); END", nil},
		"postgres": {"pgx", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO history VALUES (old.name); RETURN new; END';
			CREATE TRIGGER keep AFTER UPDATE ON person FOR EACH ROW EXECUTE FUNCTION keep();
			CREATE RULE also AS ON UPDATE TO person DO ALSO INSERT INTO history VALUES (old.name)`,
			func() string { return servertest.Postgres(t) }},
		"mariadb": {"mysql", "CREATE TRIGGER keep AFTER UPDATE ON person FOR EACH ROW INSERT INTO history VALUES (old.name)",
			func() string { return servertest.MySQL(t, "mariadb") }},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			source, destination := "sqlite://"+filepath.Join(s.dir, "from.db"), "sqlite://"+filepath.Join(s.dir, "to.db")
			if c.server != nil {
				source, destination = c.server(), c.server()
			}
			open := func(url string) *sql.DB {
				db, err := sql.Open(c.driver, dsnOf(c.driver, url))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { db.Close() })
				return db
			}
			from := open(source)
			statements := append(strings.SplitAfter(tables, ";"), c.more)
			for _, statement := range statements {
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if _, err := from.Exec(strings.TrimSuffix(statement, ";")); err != nil {
					t.Fatalf("%v in %s", err, statement)
				}
			}
			if err := s.AddTarget(Target{Name: "t", Source: source, Destination: destination}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Build(t.Context(), "t", BuildOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			mask := filepath.Join(s.dir, "mask.sql")
			if err := os.WriteFile(mask, []byte("UPDATE person SET name = 'somebody';"), 0o600); err != nil {
				t.Fatal(err)
			}
			clean, err := s.Sanitize(t.Context(), "t", SanitizeOptions{SQL: mask}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(t.Context(), "t", LoadOptions{Snapshot: clean.Name}, nil); err != nil {
				t.Fatal(err)
			}
			to := open(destination)
			var copied, fired int
			if err := to.QueryRow("SELECT count(*) FROM history").Scan(&copied); err != nil {
				t.Fatal(err)
			}
			if _, err := to.Exec("UPDATE person SET name = 'again'"); err != nil {
				t.Fatal(err)
			}
			if err := to.QueryRow("SELECT count(*) FROM history").Scan(&fired); err != nil || copied != 0 || fired < 2 {
				t.Errorf("%d originals were copied, and %d rows afterwards; %v", copied, fired, err)
			}
		})
	}
}

// dsnOf is a database's URL as its driver takes it.
func dsnOf(driver, url string) string {
	switch driver {
	case "sqlite":
		return strings.TrimPrefix(url, "sqlite://")
	case "mysql":
		host, name, _ := strings.Cut(strings.TrimPrefix(url, "mysql://root@"), "/")
		return "root@tcp(" + host + ")/" + name
	}
	return url
}
