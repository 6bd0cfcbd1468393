package local

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"snap"
	"snap/internal/servertest"
)

// TestLoadAsksAboutLaterContent: if somebody fills a missing or empty destination while a load
// runs, the load replaces it only if the user agreed to that in advance, or if there was nobody to
// ask.
func TestLoadAsksAboutLaterContent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	built, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(Preflight) error { return nil }
	for name, c := range map[string]struct {
		o        LoadOptions
		replaced bool
	}{
		"nobody agreed":    {LoadOptions{Confirm: asked}, false},
		"with --yes":       {LoadOptions{Confirm: asked, Agreed: true}, true},
		"nobody to ask":    {LoadOptions{}, true},
		"some tables only": {LoadOptions{Confirm: asked, Only: []string{"old"}}, false},
	} {
		for _, empty := range []bool{false, true} {
			if err := os.Remove(s.destination); err != nil {
				t.Fatal(err)
			}
			if empty {
				run(t, s.destination, "CREATE TABLE gone (a); DROP TABLE gone")
			}
			c.o.Snapshot = built.Name
			fill := func() { run(t, s.destination, "CREATE TABLE old (a); INSERT INTO old VALUES ('precious')") }
			_, err := s.Load(t.Context(), shopTarget, c.o, func(e Event) {
				if e.Phase == "swap" {
					fill()
				}
			})
			switch {
			case c.replaced && err != nil:
				t.Errorf("%s: %v", name, err)
			case c.o.Only != nil:
				if snap.CodeOf(err) != snap.CodeNotFound || !strings.Contains(err.Error(), "tables cannot be filled") {
					t.Errorf("%s: %v", name, err)
				}
				fill()
			case !c.replaced:
				if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "has content now") {
					t.Errorf("%s: %v", name, err)
				}
				s.untouched(t)
			}
		}
	}
}

// TestLaterContentOnServers does the same with servers, and checks that a load asks at once if the
// content was there before.
func TestLaterContentOnServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ driver, url string }{
		{"pgx", servertest.Postgres(t)}, {"mysql", servertest.MariaDB(t)},
	} {
		dsn := c.url
		if rest, ok := strings.CutPrefix(dsn, "mysql://root@"); ok {
			host, name, _ := strings.Cut(rest, "/")
			dsn = "root@tcp(" + host + ")/" + name
		}
		db, err := sql.Open(c.driver, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxIdleConns(0) // nothing stays connected
		exec := func(statement string) {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
		exec("CREATE TABLE ours (a int)")
		s := newShop(t)
		for _, target := range []Target{{Name: "from", Source: c.url}, {Name: "to", Destination: c.url}} {
			if err := s.AddTarget(target); err != nil {
				t.Fatal(err)
			}
		}
		built, err := s.Build(t.Context(), "from", BuildOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		path, err := s.snapshotFile("to", "x")
		if err != nil {
			t.Fatal(err)
		}
		copyFile(t, built.Path, path)
		built.Target, built.Name = "to", "x"
		if _, err := s.adopt(t.Context(), built); err != nil {
			t.Fatal(err)
		}
		exec("DROP TABLE ours")
		o := LoadOptions{Confirm: func(p Preflight) error {
			if p.Loses() {
				return errors.New("it asked")
			}
			return nil
		}}
		_, err = s.Load(t.Context(), "to", o, func(e Event) {
			if e.Phase == "swap" {
				exec("CREATE TABLE theirs (a int)")
				exec("INSERT INTO theirs VALUES (7)")
			}
		})
		if snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(err.Error(), "has content now") {
			t.Errorf("%s: %v", c.driver, err)
		}
		var n int
		if err := db.QueryRow("SELECT a FROM theirs").Scan(&n); err != nil || n != 7 {
			t.Errorf("%s: %d, %v", c.driver, n, err)
		}
		if _, err := s.Load(t.Context(), "to", o, nil); err == nil || err.Error() != "it asked" {
			t.Errorf("%s, again: %v", c.driver, err)
		}
		o.Confirm = nil
		if _, err := s.Load(t.Context(), "to", o, nil); err != nil {
			t.Errorf("%s, confirmed: %v", c.driver, err)
		}
		exec("DROP TABLE ours")
	}
}
