package mysql

import (
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// asked restores a dump for a load that is not allowed to replace content.
func asked(t *testing.T, url string, d engine.Dump, into engine.Into) (*scratch, error) {
	t.Helper()
	s, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1, Into: into, OnlyIfEmpty: true})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Drop(t.Context()) })
	return s.(*scratch), nil
}

// wasFilled fails the test unless the error says that somebody filled the database.
func wasFilled(t *testing.T, err error) {
	t.Helper()
	if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "but it has content now") {
		t.Errorf("the load: %v", err)
	}
}

const (
	oursOnly = `CREATE TABLE ours (a INT); CREATE TABLE other (a INT); INSERT INTO ours VALUES (1), (2);
		CREATE PROCEDURE our_procedure() SELECT 1; CREATE VIEW our_view AS SELECT a FROM ours;
		CREATE TRIGGER our_trigger BEFORE INSERT ON ours FOR EACH ROW SET @a = 1;`
	theirsOnly = `CREATE TABLE theirs (a INT); INSERT INTO theirs VALUES (7);
		CREATE TRIGGER their_trigger BEFORE INSERT ON theirs FOR EACH ROW SET @a = 1;`
	theirPrograms = `CREATE PROCEDURE their_procedure() SELECT 1; CREATE VIEW their_view AS SELECT 1 AS one;
		CREATE EVENT their_event ON SCHEDULE EVERY 1 YEAR DO SELECT 1;`
)

// programsOf lists the tables and programs of a database.
func programsOf(t *testing.T, url string) string {
	t.Helper()
	db, d := openURL(t, url)
	all, err := queryStrings(t.Context(), db, `SELECT table_name FROM information_schema.tables WHERE table_schema = ?
		UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = ?
		UNION ALL SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = ?
		UNION ALL SELECT event_name FROM information_schema.events WHERE event_schema = ?`,
		d.name, d.name, d.name, d.name)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all) // servers sort in different ways
	return strings.Join(all, " ")
}

// TestOnlyIfEmpty checks a load that is not allowed to replace content. It replaces a database only
// if the database is still empty at the exchange. Otherwise, the database remains unchanged.
func TestOnlyIfEmpty(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, oursOnly)
		d, _ := dumped(t, from)
		db, at := openURL(t, from)
		place := at.named(to[strings.LastIndex(to, "/")+1:]).name
		for _, missing := range []bool{false, true} {
			for _, fill := range []string{theirsOnly + theirPrograms, theirPrograms, ""} {
				if _, err := db.Exec("DROP DATABASE " + quote(place)); err != nil {
					t.Fatal(err)
				}
				create := func() {
					if _, err := db.Exec("CREATE DATABASE IF NOT EXISTS " + quote(place)); err != nil {
						t.Fatal(err)
					}
				}
				if !missing {
					create()
				}
				s, err := asked(t, to, d, engine.NewDatabase)
				if err != nil {
					t.Fatal(err)
				}
				if fill == "" {
					if err := s.Swap(t.Context(), false); err != nil {
						t.Error(err)
					}
					if got, want := contents(t, to), contents(t, from); got != want {
						t.Errorf("it has\n%s\nwant\n%s", got, want)
					}
					continue
				}
				create()
				script(t, to, fill)
				before := contents(t, to)
				wasFilled(t, s.Swap(t.Context(), false))
				if err := s.Drop(t.Context()); err != nil {
					t.Error(err)
				}
				if got := contents(t, to); got != before {
					t.Errorf("it has\n%s\nand had\n%s", got, before)
				}
				if left, err := queryStrings(t.Context(), db, "SELECT schema_name FROM information_schema.schemata "+
					"WHERE right(schema_name, 16) = ?", s.id); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			}
		}
	})
}

// TestFilledDuringExchange: somebody adds programs right after the tables were exchanged. The load,
// or the next one if it was killed, creates the snapshot's programs and keeps the others.
func TestFilledDuringExchange(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, oursOnly)
		d, _ := dumped(t, from)
		s, err := asked(t, to, d, engine.NewDatabase)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.exchange(t.Context()); err != nil {
			t.Fatal(err)
		}
		script(t, to, theirPrograms)
		if err := recoverSwap(t.Context(), s.server, s.dest, s.id); err != nil {
			t.Fatal(err)
		}
		const want = "other our_procedure our_trigger our_view ours their_event their_procedure their_view"
		if got := programsOf(t, to); got != want {
			t.Errorf("it has %s", got)
		}
	})
}

// TestOnlyIfEmptyInPlace checks such a load in place. It keeps what somebody adds while it fills
// the database, and is refused if the database has content when it begins.
func TestOnlyIfEmptyInPlace(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, from, oursOnly)
		d, _ := dumped(t, from)
		s, err := asked(t, to, d, engine.InPlace)
		if err != nil {
			t.Fatal(err)
		}
		script(t, to, theirsOnly+theirPrograms) // while the load fills the database
		if err := s.Swap(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		const want = "other our_procedure our_trigger our_view ours their_event their_procedure their_trigger " +
			"their_view theirs"
		if got := programsOf(t, to); got != want {
			t.Errorf("it has %s", got)
		}
		if err := s.Drop(t.Context()); err != nil {
			t.Error(err)
		}
		before := contents(t, to)
		_, err = asked(t, to, d, engine.InPlace)
		wasFilled(t, err)
		if got := contents(t, to); got != before {
			t.Errorf("it has\n%s\nand had\n%s", got, before)
		}
	})
}
