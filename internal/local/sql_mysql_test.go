package local

import (
	"context"
	"database/sql"
	"io"
	"slices"
	"strings"
	"testing"

	"snap/internal/archive"
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

// Events are not created in the scratch copy that SQL runs in, because they would run. The masked
// copy has them nevertheless, together with an event that the SQL creates.
func TestSQLKeepsEvents(t *testing.T) {
	t.Parallel()
	for _, server := range servertest.MySQLServers() {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			from, to := s.built(t, server, `CREATE TABLE person (id int PRIMARY KEY, email varchar(80));
				INSERT INTO person VALUES (1, 'erika@real.example');
				CREATE EVENT daily ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE
					COMMENT 'cleans up' DO DELETE FROM person WHERE id < 0;
				CREATE EVENT yearly ON SCHEDULE EVERY 1 YEAR DO DELETE FROM person WHERE id = 0`)
			execAll(t, to, "CREATE EVENT theirs ON SCHEDULE EVERY 1 DAY DO SELECT 1")
			mask := s.sqlFile(t, "UPDATE person SET email = 'x'; "+
				"CREATE EVENT extra ON SCHEDULE EVERY 1 YEAR DO SELECT 1")
			made, err := s.Sanitize(t.Context(), "t", SanitizeOptions{SQL: mask}, nil)
			if err != nil || len(made.Warnings) > 0 {
				t.Fatalf("%v, %q", err, made.Warnings)
			}
			if _, err := s.Load(t.Context(), "t", LoadOptions{Snapshot: made.Name}, nil); err != nil {
				t.Fatal(err)
			}
			const events = "SELECT concat_ws('|', event_name, event_definition, time_zone, status, on_completion, " +
				"event_comment, interval_value, starts) FROM information_schema.events WHERE event_schema = " +
				"database() AND event_name <> 'extra' ORDER BY 1"
			want, got := column(t, from, events), column(t, to, events)
			if len(want) != 2 || !slices.Equal(got, want) {
				t.Errorf("the events\n%q\nbecame\n%q", want, got)
			}
			if len(column(t, to, "SELECT 1 FROM information_schema.events WHERE event_schema = database() AND "+
				"event_name = 'extra'")) != 1 {
				t.Errorf("the SQL's own event is missing")
			}
		})
	}
}

// A copy made from a colleague's snapshot has the snapshot's events in the form that was checked. The
// notices about the scratch copy are warnings of the masked copy.
func TestSQLReportsNoticesAboutTheScratchCopy(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"mariadb", "mysql-8.0"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			from, to := s.built(t, server, `CREATE TABLE person (id int PRIMARY KEY, email varchar(80));
				INSERT INTO person VALUES (1, 'erika@real.example');
				CREATE EVENT daily ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' DO DELETE FROM person WHERE id < 0`)
			built, err := s.newest("t", "")
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.openVerified(t.Context(), built, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			dump := dumpIn(r)
			in, err := dump.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			theirs, err := s.writeSnapshot(t.Context(), draft{from: Provenance{Origin: Ours},
				Manifest: archive.Manifest{Target: "t", Type: built.Type, Engine: built.Engine}},
				copied(in, dump.Info, dump.Info.Schema))
			if err != nil {
				t.Fatal(err)
			}
			target, err := s.Target("t")
			if err != nil {
				t.Fatal(err)
			}
			name := column(t, to, "SELECT database()")[0]
			user := "few_" + name + "@'127.0.0.1'"
			execAll(t, to, "CREATE USER "+user+"; GRANT ALL ON `snapcli%`.* TO "+user+"; GRANT SELECT ON "+name+
				".* TO "+user)
			t.Cleanup(func() { _, _ = to.ExecContext(context.Background(), "DROP USER "+user) })
			target.Scratch = strings.Replace(target.Destination, "root@", "few_"+name+"@", 1)
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
			made, err := s.Sanitize(t.Context(), "t", SanitizeOptions{Snapshot: theirs.Name,
				SQL: s.sqlFile(t, "UPDATE person SET email = 'x'")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0], "is not allowed to create a user for") {
				t.Errorf("warnings: %q", made.Warnings)
			}
			if _, err := s.Load(t.Context(), "t", LoadOptions{Snapshot: made.Name}, nil); err != nil {
				t.Fatal(err)
			}
			const events = "SELECT concat_ws('|', event_name, event_definition, status, starts) FROM " +
				"information_schema.events WHERE event_schema = database()"
			if a, b := column(t, from, events), column(t, to, events); len(a) != 1 || !slices.Equal(a, b) {
				t.Errorf("the events %q became %q", a, b)
			}
		})
	}
}
