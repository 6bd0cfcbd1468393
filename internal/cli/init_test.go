package cli

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
)

// atHome is a person at a terminal who answers with these lines, on a machine with one SQLite
// database.
func atHome(t *testing.T, answers ...string) (a *app, dir string, said func() string) {
	t.Helper()
	dir = t.TempDir()
	in := &lines{}
	for _, answer := range answers {
		*in = append(*in, strings.ReplaceAll(answer, "$DIR", dir)+"\n")
	}
	a, out := asking(in)
	env := map[string]string{"TERM": "dumb", "SNAPCLI_CONFIG_DIR": filepath.Join(dir, "config"),
		"SNAPCLI_DATA_DIR": filepath.Join(dir, "data")}
	a.now, a.log = time.Now, slog.New(slog.DiscardHandler)
	a.env = func(name string) string { return env[name] }
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("CREATE TABLE customer (id INTEGER PRIMARY KEY); INSERT INTO customer VALUES (1)")
	if err != nil {
		t.Fatal(err)
	}
	return a, dir, out.String
}

// TestInit: the questions lead to a target whose databases were tested, and to its first snapshot.
// A wrong answer is explained and asked again.
func TestInit(t *testing.T) {
	t.Parallel()
	a, dir, said := atHome(t, "nonsense", "postgres://me:secret@127.0.0.1/shop", "sqlite://$DIR/missing.db",
		"sqlite://$DIR/shop.db", "", "sqlite://$DIR/dev.db", "y")
	if err := a.askForTarget(t.Context(), ""); err != nil {
		t.Fatalf("%v, said %s", err, said())
	}
	for _, part := range []string{"it has no scheme", "contains a password", "~/.my.cnf (MySQL)",
		"there is no database", "Which database may `snapcli load` replace?", "Take the first snapshot now?"} {
		if !strings.Contains(said(), part) {
			t.Errorf("%q is missing in %s", part, said())
		}
	}
	agent, err := a.agent()
	if err != nil {
		t.Fatal(err)
	}
	target, err := agent.Target("shop")
	if err != nil || target.Source != "sqlite://"+filepath.Join(dir, "shop.db") ||
		target.Destination != "sqlite://"+filepath.Join(dir, "dev.db") {
		t.Errorf("%+v, %v", target, err)
	}
	if list, err := agent.Snapshots("shop"); err != nil || len(list) != 1 {
		t.Errorf("%d snapshots, %v", len(list), err)
	}
}

// TestInitChangesNothingBeforeTheEnd: init fails without an answer, and changes no target without a
// terminal.
func TestInitChangesNothingBeforeTheEnd(t *testing.T) {
	t.Parallel()
	a, _, said := atHome(t, "")
	if err := a.askForTarget(t.Context(), ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("no database: %v, said %s", err, said())
	}
	if agent, err := a.agent(); err != nil || len(agent.Targets()) > 0 {
		t.Errorf("without a database a target was added, or %v", err)
	}
	a, _, said = atHome(t, "sqlite://$DIR/shop.db", "", "", "n",
		"sqlite://$DIR/shop.db", "shop", "", "sqlite://$DIR/dev.db", "n") // the second target becomes shop-2
	for range 2 {
		if err := a.askForTarget(t.Context(), ""); err != nil {
			t.Fatalf("%v, said %s", err, said())
		}
	}
	if !strings.Contains(said(), `there is already a target "shop"`) {
		t.Errorf("a used name: said %s", said())
	}
	a.io.InTerminal = false
	if err := a.askForTarget(t.Context(), ""); snap.CodeOf(err) != snap.CodeUsage {
		t.Errorf("without a terminal: %v", err)
	}
	agent, err := a.agent()
	if err != nil {
		t.Fatal(err)
	}
	if all := agent.Targets(); len(all) != 2 || all[0].Name != "shop" || all[0].Destination != "" {
		t.Errorf("%+v", all)
	}
}

func TestNameFromURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://me@h/orders": "orders", "sqlite:///a/b/notes.db": "notes", "mysql://h": "shop",
		"postgres://me:${PASSWORD}@h/x?sslmode=require": "x", "postgres://h/": "shop",
	} {
		if got := nameFromURL(raw); got != want {
			t.Errorf("%s is called %q, want %q", raw, got, want)
		}
	}
}

// A password with a reference elsewhere in its URL is still a password.
func TestHasPassword(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{"postgres://me:secret@h/x": true, "postgres://me:${P}@h/x": false,
		"postgres://me@h/x": false, "sqlite:///x": false, "postgres://me:secret@${HOST}/x": true,
		"postgres://${USER}:secret@h/x": true, "postgres://me:${P}secret@h/x": true,
		"postgres://${USER}:${P}@${HOST}/${DB}": false, "postgres://me@h/x?password=secret": true,
		"postgres://me@h/x?password=${P}": false} {
		if got := hasPassword(raw); got != want {
			t.Errorf("%s has a password: %v", raw, got)
		}
	}
}
