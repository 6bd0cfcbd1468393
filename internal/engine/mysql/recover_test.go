package mysql

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// A load that was killed during the swap, before or after the tables are exchanged, is undone or
// finished by the next load, even if that one is refused (decision 19).
func TestKilledSwapIsFinishedByTheNextLoad(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		for _, swapped := range []bool{false, true} {
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, odd)
			script(t, to,
				"CREATE TABLE old (a INT); INSERT INTO old VALUES (1); CREATE VIEW oldview AS SELECT a FROM old; "+
					"CREATE "+
					"PROCEDURE oldproc() SELECT 1; CREATE TRIGGER keepme BEFORE INSERT ON old FOR EACH ROW SET "+
					"NEW.a = 2;")
			before := contents(t, to)
			d, _ := dumped(t, from)
			id := killedInSwap(t, to, d, swapped)
			if strings.HasPrefix(server, "mariadb") {
				halfDropped(t, to, id)
			}
			user, _ := openURL(t, to)
			if err := user.Ping(); err != nil {
				t.Fatal(err)
			}
			if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeConflict {
				t.Fatalf("the next load: %v", err)
			}
			user.Close()
			want := before
			if swapped {
				want = contents(t, from)
			}
			if got := contents(t, to); got != want {
				t.Errorf("swapped %v: %s", swapped, difference(want, got))
			}
			if left := leftovers(t, to); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	})
}

// halfDropped leaves the names of the dropped triggers, as MariaDB does that
// crashes within DROP TRIGGER.
func halfDropped(t *testing.T, url, id string) {
	t.Helper()
	_, d := openURL(t, url)
	folder := sorted(t, url, "SELECT @@datadir")[0]
	for name, table := range map[string]string{filepath.Join(d.name, "keepme"): "old",
		filepath.Join(scratchPrefix+id, "tr"): "parent"} {
		if err := os.WriteFile(filepath.Join(folder, name+".TRN"),
			[]byte("TYPE=TRIGGERNAME\ntrigger_table="+table+"\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// While the tables are exchanged, a load cannot be stopped, so that its report is true. If its
// connections are lost at that time, it is cleaned up only after the server has finished (decision
// 19).
func TestTablesChangePlacesAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		for _, lost := range []bool{false, true} {
			from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
			script(t, from, odd)
			script(t, to, "CREATE TABLE old (a INT)")
			d, _ := dumped(t, from)
			restored, err := Engine{}.Restore(t.Context(), to, d, engine.Options{Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			s := restored.(*scratch)
			defer s.Drop(t.Context())
			reader, err := s.server.Conn(t.Context()) // who holds up the exchange
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{"BEGIN", "SELECT * FROM " + quote(s.place.name) + ".old"} {
				if _, err := reader.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			swapped := make(chan error)
			go func() {
				if lost {
					swapped <- s.exchange(ctx)
				} else {
					swapped <- s.Swap(ctx, false)
				}
			}()
			waiting(t, s.server, "RENAME TABLE "+quote(journalPrefix+s.id)+"%")
			stop()
			recovered := make(chan error, 1)
			if lost {
				go func() { recovered <- recoverSwap(t.Context(), s.server, s.place, s.id) }()
				waiting(t, s.server, "%get_lock(%, 30)%")
			} else {
				recovered <- nil
			}
			if _, err := reader.ExecContext(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(<-swapped, <-recovered); err != nil {
				t.Errorf("lost %v: %v", lost, err)
			}
			reader.Close()
			if want, got := contents(t, from), contents(t, to); got != want {
				t.Errorf("lost %v: %s", lost, difference(want, got))
			}
		}
	})
}

// A database without tables is one too.
func TestEmptyDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server string) {
		from, to := servertest.MySQL(t, server), servertest.MySQL(t, server)
		script(t, to, "CREATE TABLE old (a INT)")
		d, _ := dumped(t, from)
		if err := load(t, to, d, false); err != nil {
			t.Fatal(err)
		}
		if want, got := contents(t, from), contents(t, to); got != want {
			t.Error(difference(want, got))
		}
	})
}

// A load that is stopped while the server makes its scratch database leaves
// none behind, although the server finishes making it.
func TestStoppedBeforeTheDatabaseIsMade(t *testing.T) {
	t.Parallel()
	to := servertest.OwnMySQL(t, "mariadb", "") // of its own: all of it is locked
	d, _ := dumped(t, servertest.MariaDB(t))    // without tables, which a dump may be
	server, _ := openURL(t, to)
	holder, err := server.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	restored := make(chan error)
	go func() {
		_, err := Engine{}.Restore(ctx, to, d, engine.Options{Jobs: 1})
		restored <- err
	}()
	const making = "CREATE DATABASE `snapcli%"
	waiting(t, server, making)
	stop()
	if _, err := holder.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if err := <-restored; !errors.Is(err, context.Canceled) {
		t.Errorf("the load: %v", err)
	}
	for n := 1; n > 0; {
		if err := server.QueryRowContext(t.Context(),
			"SELECT count(*) FROM information_schema.processlist WHERE info LIKE ? AND id <> connection_id()",
			making).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// waiting waits until the server runs a statement like this.
func waiting(t *testing.T, server *sql.DB, like string) {
	t.Helper()
	for n := 0; n == 0; {
		if err := server.QueryRowContext(t.Context(),
			"SELECT count(*) FROM information_schema.processlist WHERE info LIKE ? AND id <> connection_id() AND "+
				"state LIKE "+
				"'%lock'", like).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
}

// killedInSwap leaves a load, whose id it returns, as one that is killed leaves it.
func killedInSwap(t *testing.T, url string, d engine.Dump, swapped bool) (id string) {
	t.Helper()
	restored, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := restored.(*scratch)
	db, err := s.place.open(s.place.name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := session(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(contents(t, url), "keepme") {
		t.Fatal("the trigger is still there: nothing is to be undone")
	}
	if swapped {
		if err := s.rename(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	db.Close()
	s.lock.Close()
	s.server.Close() // which frees the lock
	return s.id
}

// A collation that the destination does not know is reported before anything is
// made: MySQL 8's default one is unknown to MariaDB 10.11.
func TestUnknownCollation(t *testing.T) {
	t.Parallel()
	from, to := servertest.MySQL(t, "mysql-8.0"), servertest.MariaDB(t)
	script(t, from,
		"CREATE TABLE t (a VARCHAR(10)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci; INSERT INTO t VALUES ('a')")
	script(t, to, "CREATE TABLE old (a INT)")
	before := contents(t, to)
	d, _ := dumped(t, from)
	if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeInvalid ||
		!strings.Contains(err.Error(), "utf8mb4_0900_ai_ci") {
		t.Errorf("%v", err)
	}
	if after := contents(t, to); after != before {
		t.Errorf("the old database changed: %s", difference(before, after))
	}
}

// A script is split like the client programs do.
func TestStatements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"SELECT 1; SELECT ';';\n":                                    "SELECT 1|SELECT ';'",
		"SELECT 'it''s; \\';', \"a;\", `b;`;SELECT 2":                "SELECT 'it''s; \\';', \"a;\", `b;`|SELECT 2",
		"DELIMITER ;;\nCREATE x BEGIN a; b; END ;;\ndelimiter ;\nc;": "CREATE x BEGIN a; b; END|c",
		"a -- x; y\n; b # ;\n; c /* ; */; d - -1;":                   "a -- x; y|b # ;|c /* ; */|d - -1",
		"":                           "",
		"select 'unclosed; text":     "select 'unclosed; text",
		"-- a\nDELIMITER $$\nx; y$$": "-- a|x; y",
	} {
		if got := strings.Join(statements(text), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
