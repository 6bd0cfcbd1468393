package local

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// A SQL file fires no triggers or rules of the database, because those could copy
// the originals to another table. The masked copy has them again, and they fire.
func TestSQLFiresNoTriggers(t *testing.T) {
	t.Parallel()
	const tables = "CREATE TABLE person (id integer PRIMARY KEY, name varchar(80)); CREATE TABLE history (was " +
		"varchar(80));INSERT INTO person VALUES (1, 'Wilhelmina Original'), (2, 'Theodora Original');"
	for kind, c := range map[string]struct {
		driver, more string
		fires        int // rows that an update of the two persons adds
		server       func(*testing.T) string
	}{
		"sqlite": {"sqlite",
			"CREATE TRIGGER keep AFTER UPDATE ON person BEGIN INSERT INTO history VALUES (old.name); END", 2, nil},
		"postgres": {"pgx", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN INSERT INTO history VALUES (old.name); RETURN new; END';
			CREATE TRIGGER keep AFTER UPDATE ON person FOR EACH ROW EXECUTE FUNCTION keep();
			CREATE RULE also AS ON UPDATE TO person DO ALSO INSERT INTO history VALUES (old.name)`, 4,
			func(t *testing.T) string { return servertest.Postgres(t) }},
		"mariadb": {"mysql",
			"CREATE TRIGGER keep AFTER UPDATE ON person FOR EACH ROW INSERT INTO history VALUES (old.name)", 2,
			func(t *testing.T) string { return servertest.MySQL(t, "mariadb") }},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			source, destination := "sqlite://"+filepath.Join(s.dir, "from.db"),
				"sqlite://"+filepath.Join(s.dir, "to.db")
			if c.server != nil {
				source, destination = c.server(t), c.server(t)
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
			if err := to.QueryRow("SELECT count(*) FROM history").Scan(&fired); err != nil || copied != 0 ||
				fired != c.fires {
				t.Errorf("%d originals were copied, and %d rows afterwards; %v", copied, fired, err)
			}
		})
	}
}

// SQL that leaves originals in another column is stopped, unless it declares that
// they are not secret there. The message contains no value.
func TestSQLThatLeavesOriginals(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	run(t, s.source, `CREATE TABLE letter (id INTEGER PRIMARY KEY, body TEXT, kind TEXT);
		INSERT INTO letter SELECT id, json_object('to', upper(email)), 'a plain letter' FROM customer`)
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	sanitize := func(text string) error {
		path := filepath.Join(t.TempDir(), "mask.sql")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Sanitize(t.Context(), shopTarget, SanitizeOptions{SQL: path}, nil)
		return err
	}
	const mask = "UPDATE customer SET email = 'person' || id || '@example.com';\n"
	err := sanitize(mask)
	if snap.CodeOf(err) != snap.CodeInvalid || !strings.Contains(err.Error(),
		"those of customer.email in letter.body") ||
		strings.Contains(err.Error(), "real.example") {
		t.Errorf("%v", err)
	}
	if all, err := s.Snapshots(shopTarget); err != nil || len(all) != 1 {
		t.Errorf("%d snapshots after a refused run, %v", len(all), err)
	}
	if err := sanitize("-- shared: customer.email\n" + mask); err != nil {
		t.Errorf("shared: %v", err)
	}
	if err := sanitize(mask + "UPDATE letter SET body = NULL;"); err != nil {
		t.Errorf("masked everywhere: %v", err)
	}
}

// targetOn returns a target with two new databases of the kind "sqlite", "postgres" or "mysql" (MySQL
// 8.0).
func (s shop) targetOn(t *testing.T, server, name string) Target {
	t.Helper()
	switch server {
	case "postgres":
		return Target{Name: name, Source: servertest.Postgres(t), Destination: servertest.Postgres(t)}
	case "mysql":
		return Target{Name: name, Source: servertest.MySQL(t, "mysql-8.0"),
			Destination: servertest.MySQL(t, "mysql-8.0")}
	}
	return Target{Name: name, Source: "sqlite://" + filepath.Join(s.dir, "a.db"),
		Destination: "sqlite://" + filepath.Join(s.dir, "b.db")}
}

// dsnOf returns a database's URL in the form that its driver accepts.
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
