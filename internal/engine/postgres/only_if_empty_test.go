package postgres

import (
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// asked restores a dump for a load that is not allowed to replace content.
func (e Engine) asked(t *testing.T, url string, d engine.Dump, into engine.Into) (*scratch, error) {
	t.Helper()
	o := engine.Options{Jobs: 1, TempDir: t.TempDir(), Into: into, OnlyIfEmpty: true}
	s, err := e.Restore(t.Context(), url, d, o)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Drop(t.Context()) })
	return s.(*scratch), nil
}

// loadedOnlyIfEmpty returns an empty database, and a load that is about to replace it with a
// database that has the table ours.
func loadedOnlyIfEmpty(t *testing.T) (to string, s *scratch) {
	t.Helper()
	from, to := servertest.Postgres(t), servertest.Postgres(t)
	psql(t, from, script(t, "CREATE TABLE ours (a int)"))
	d, _ := dumped(t, from)
	s, err := Engine{}.asked(t, to, d, engine.NewDatabase)
	if err != nil {
		t.Fatal(err)
	}
	return to, s
}

// wasFilled fails the test unless the error says that somebody filled the database.
func wasFilled(t *testing.T, err error) {
	t.Helper()
	if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "but it has content now") {
		t.Errorf("the load: %v", err)
	}
}

// TestOnlyIfEmpty checks a load that is not allowed to replace content. It replaces a database only
// if the database is still empty at the exchange. Otherwise, the database remains unchanged.
func TestOnlyIfEmpty(t *testing.T) {
	t.Parallel()
	const theirs = "CREATE TABLE theirs (a int); INSERT INTO theirs VALUES (7);"
	for name, c := range map[string]struct {
		missing   bool   // the database does not exist when the load begins
		meanwhile string // SQL to run before the exchange; "-" is none, not even CREATE DATABASE
		refused   bool
	}{
		"still empty":              {false, "-", false},
		"still missing":            {true, "-", false},
		"created":                  {true, "", false},
		"created and filled":       {true, theirs, true},
		"filled":                   {false, theirs, true},
		"filled with one function": {false, "CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 7'", true},
		"filled and emptied":       {false, theirs + "DROP TABLE theirs", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			version := slices.Max(servertest.PostgresVersions)
			if c.missing {
				version = servertest.PostgresVersions[0]
			}
			e, bin := with(t, version)
			from, to := servertest.PostgresVersion(t, version), servertest.PostgresVersion(t, version)
			psql(t, from, script(t, "CREATE TABLE ours (a int); INSERT INTO ours VALUES (1), (2)"))
			place := nameOf(t, to)
			if c.missing {
				psql(t, from, script(t, `DROP DATABASE "`+place+`"`))
			}
			s, err := e.asked(t, to, e.build(t, from), engine.NewDatabase)
			if err != nil {
				t.Fatal(err)
			}
			if c.missing && c.meanwhile != "-" {
				psql(t, from, script(t, `CREATE DATABASE "`+place+`"`))
			}
			var before string
			if c.meanwhile != "-" {
				psql(t, to, script(t, c.meanwhile))
				before = schemaBy(t, bin, to)
			}
			err = s.Swap(t.Context(), c.refused) // a refused load must not end sessions either
			if !c.refused {
				if err != nil {
					t.Fatal(err)
				}
				if got, want := schemaBy(t, bin, to), schemaBy(t, bin, from); got != want {
					t.Errorf("it has\n%s\nwant\n%s", got, want)
				}
				return
			}
			wasFilled(t, err)
			if got := schemaBy(t, bin, to); got != before {
				t.Errorf("the database has now\n%s\nand had\n%s", got, before)
			}
			scratch := s.db.name()
			if err := s.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			if left := linesOf(t, to, "SELECT datname FROM pg_database WHERE datname = '"+scratch+"'"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if err := loadBy(t, e, to, e.build(t, from), false); err != nil {
				t.Errorf("a load that may replace it: %v", err)
			}
		})
	}
}

// TestFilledWhileRenamed: somebody fills the database after the load has last checked its
// connections. The server waits until that session has ended, and the load must still see the new
// rows.
func TestFilledWhileRenamed(t *testing.T) {
	t.Parallel()
	to, s := loadedOnlyIfEmpty(t)
	looking, err := s.dest.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	colleague := connectTo(t, to)
	if _, err := colleague.Exec(t.Context(), "BEGIN; CREATE TABLE theirs (a int)"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.exchange(t.Context(), looking, true, randomName("snapcli_replaced_")) }()
	for locked := false; !locked; {
		if err := colleague.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND "+
			"mode = 'AccessExclusiveLock' AND granted AND objid = (SELECT oid FROM pg_database WHERE "+
			"datname = current_database()))").Scan(&locked); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatalf("it did not wait for the session: %v", err)
		default:
		}
	}
	if _, err := colleague.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := colleague.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// On a very busy machine the server may give up first, because the session is still there.
	if err := <-ended; state(err) != stateInUse {
		wasFilled(t, err)
	}
	if got := linesOf(t, to, "SELECT relname::text FROM pg_class WHERE relname IN ('ours', 'theirs')"); len(got) != 1 ||
		got[0] != "theirs" {
		t.Errorf("it has %v", got)
	}
}

// TestHeldOpen: a colleague fills the database and stays connected. Even a load that may end
// connections must not end this one, because the database is not replaced.
func TestHeldOpen(t *testing.T) {
	t.Parallel()
	to, s := loadedOnlyIfEmpty(t)
	colleague := connectTo(t, to)
	if _, err := colleague.Exec(t.Context(), "CREATE TABLE theirs (a int)"); err != nil {
		t.Fatal(err)
	}
	wasFilled(t, s.Swap(t.Context(), true))
	if err := colleague.Ping(t.Context()); err != nil {
		t.Errorf("the colleague: %v", err)
	}
}

// TestOnlyIfEmptyInside checks loads into an existing database that are not allowed to replace
// content.
func TestOnlyIfEmptyInside(t *testing.T) {
	t.Parallel()
	const ours, theirs = "CREATE TABLE ours (a int)", "CREATE TABLE theirs (a int); SELECT lo_create(77)"
	for way, into := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			from, to := servertest.Postgres(t), plainOwner(t, servertest.Postgres(t))
			psql(t, from, script(t, ours))
			d, _ := dumped(t, from)
			s, err := Engine{}.asked(t, to, d, into)
			if err != nil {
				t.Fatal(err)
			}
			psql(t, to, script(t, theirs)) // while the load fills the database
			err = s.Swap(t.Context(), false)
			names := "SELECT relname::text FROM pg_class WHERE relname IN ('ours', 'theirs') ORDER BY 1"
			got := strings.Join(linesOf(t, to, names), " ")
			if into == engine.Existing {
				wasFilled(t, err)
				if got != "theirs" {
					t.Errorf("it has %s", got)
				}
			} else if err != nil || got != "ours theirs" { // the check was before theirs was created
				t.Errorf("it has %s, %v", got, err)
			}
			if err := s.Drop(t.Context()); err != nil {
				t.Error(err)
			}
			_, err = Engine{}.asked(t, to, d, into)
			wasFilled(t, err)
			if left := strings.Join(linesOf(t, to, names), " "); left != got {
				t.Errorf("it has %s, and had %s", left, got)
			}
			if large := linesOf(t, to, "SELECT oid::text FROM pg_largeobject_metadata"); len(large) != 1 {
				t.Errorf("large objects: %v", large)
			}
		})
	}
}
