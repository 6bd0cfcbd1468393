package local

import (
	"database/sql"
	"io"
	"slices"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// built adds a target on servers of MySQL or MariaDB, fills its source and takes a snapshot of it.
// It returns connections to the source and the destination.
func (s shop) built(t *testing.T, server, fill string) (source, destination *sql.DB) {
	t.Helper()
	target := Target{Name: "t", Source: servertest.MySQL(t, server), Destination: servertest.MySQL(t, server)}
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	var all []*sql.DB
	for _, url := range []string{target.Source, target.Destination} {
		db, err := sql.Open("mysql", dsnOf("mysql", url))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxIdleConns(0) // a load refuses a database that is in use
		all = append(all, db)
	}
	execAll(t, all[0], fill)
	if _, err := s.Build(t.Context(), "t", BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	return all[0], all[1]
}

// dumpText returns the dump in a snapshot.
func (s shop) dumpText(t *testing.T, made Snapshot) string {
	t.Helper()
	r, err := s.openVerified(t.Context(), made, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in, err := dumpIn(r).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// SQL cannot mask the history of a system-versioned table, and masking adds the originals to it. A
// copy masked by SQL therefore has current rows only, and a warning says so.
func TestSQLLeavesNoHistory(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mariadb-11.8"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			_, to := s.built(t, server, `
				CREATE TABLE person (id int PRIMARY KEY, email varchar(80)) WITH SYSTEM VERSIONING;
				CREATE TABLE staff (id int PRIMARY KEY, email varchar(80),
					a timestamp(6) GENERATED ALWAYS AS ROW START, z timestamp(6) GENERATED ALWAYS AS ROW END,
					PERIOD FOR SYSTEM_TIME (a, z)) WITH SYSTEM VERSIONING;
				INSERT INTO person VALUES (1, 'erika.old@real.example'), (2, 'hans.gone@real.example');
				INSERT INTO staff (id, email) VALUES (1, 'ines.staff@real.example');
				UPDATE person SET email = 'erika.new@real.example' WHERE id = 1`)
			const mask = "UPDATE person SET email = 'masked'; DELETE FROM person WHERE id = 2; UPDATE staff " +
				"SET email = 'masked'"
			for name, o := range map[string]SanitizeOptions{
				"SQL": {SQL: s.sqlFile(t, mask)},
				"rules and SQL": {SQL: s.sqlFile(t, mask), Rules: s.rulesFile(t, "keep: ['*']\n"+
					"tables: {person: {columns: {email: email}}}\n")},
			} {
				made, err := s.Sanitize(t.Context(), "t", o, nil)
				if err != nil {
					t.Fatal(name, err)
				}
				if text := s.dumpText(t, made); strings.Contains(text, "real.example") {
					t.Errorf("%s: the copy has originals:\n%s", name, text)
				}
				if !slices.ContainsFunc(made.Warnings, func(w string) bool {
					return strings.Contains(w, "not their history: person, staff, because SQL")
				}) {
					t.Errorf("%s: warnings: %q", name, made.Warnings)
				}
				if _, err := s.Load(t.Context(), "t", LoadOptions{Snapshot: made.Name}, nil); err != nil {
					t.Fatal(name, err)
				}
				got := column(t, to, "SELECT concat('person ', id, ' ', email) FROM person FOR SYSTEM_TIME ALL UNION "+
					"ALL SELECT concat('staff ', id, ' ', email) FROM staff FOR SYSTEM_TIME ALL ORDER BY 1")
				if !slices.Equal(got, []string{"person 1 masked", "staff 1 masked"}) {
					t.Errorf("%s: the loaded copy has %q", name, got)
				}
			}
		})
	}
}
