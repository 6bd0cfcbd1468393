package local

import (
	"database/sql"
	"strings"
	"testing"

	"snap/internal/servertest"
)

// After SQL masked a database of MariaDB, no original is left in the history of its tables. A
// warning says that the history and the events are not in the copy.
func TestSQLLeavesNoHistory(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	target := Target{Name: "versioned", Source: servertest.MariaDB(t), Destination: servertest.MariaDB(t)}
	source, err := sql.Open("mysql", dsnOf("mysql", target.Source))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	execAll(t, source, `CREATE TABLE person (id int PRIMARY KEY, name varchar(80)) WITH SYSTEM VERSIONING;
		INSERT INTO person VALUES (1, 'Maria Meyer'), (2, 'Max Meyer'), (3, 'Mia Meyer');
		UPDATE person SET name = 'Maria Schulze-Meyer' WHERE id = 1;
		CREATE EVENT tidy ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM person WHERE id = 9`)
	if err := s.AddTarget(target); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Build(t.Context(), target.Name, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	mask := s.sqlFile(t, "UPDATE person SET name = concat('person ', id); DELETE FROM person WHERE id = 3;")
	made, err := s.Sanitize(t.Context(), target.Name, SanitizeOptions{SQL: mask}, nil)
	if err != nil {
		t.Fatal(err)
	}
	warned := strings.Join(made.Warnings, "\n")
	if !strings.Contains(warned, "not their history: person") || !strings.Contains(warned, "omits the event tidy") {
		t.Errorf("it warned of %q", made.Warnings)
	}
	loaded, err := s.Load(t.Context(), target.Name, LoadOptions{Snapshot: made.Name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(loaded.Notices, "\n"); !strings.Contains(said, "omits the event tidy") {
		t.Errorf("the load said %q", loaded.Notices)
	}
	destination, err := sql.Open("mysql", dsnOf("mysql", target.Destination))
	if err != nil {
		t.Fatal(err)
	}
	defer destination.Close()
	var rows, originals int
	if err := destination.QueryRow("SELECT count(*), coalesce(sum(name LIKE '%Meyer'), 0) FROM person FOR "+
		"SYSTEM_TIME ALL").Scan(&rows, &originals); err != nil || rows != 2 || originals != 0 {
		t.Errorf("%d rows of all times, %d of them originals; %v", rows, originals, err)
	}
}
