package mysql

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// If a load is killed during the swap, the next load reverts or completes it, depending on whether
// the tables were exchanged. The next load does so even if it is refused afterwards (decision 19).
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
			recovered(t, server, to, d, swapped)
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

// recovered leaves a killed load and loads again, which cleans up after it.
func recovered(t *testing.T, server, to string, d engine.Dump, swapped bool) {
	t.Helper()
	killing.Lock()
	defer killing.Unlock()
	id := killedInSwap(t, to, d, swapped)
	if strings.HasPrefix(server, "mariadb") {
		halfDropped(t, to, id)
	}
	user, _ := openURL(t, to)
	defer user.Close()
	if err := user.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeConflict {
		t.Fatalf("the next load: %v", err)
	}
}

// halfDropped leaves the names of dropped triggers behind, as MariaDB does if it
// crashes in DROP TRIGGER.
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

// A load cannot be stopped while the tables are exchanged, so that it reports the true result. If
// its connections are lost at that time, the cleanup waits until the server has finished the
// exchange (decision 19).
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
			reader, err := s.server.Conn(t.Context()) // its lock blocks the exchange
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{"BEGIN", "SELECT * FROM " + quote(s.dest.name) + ".old"} {
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
			waiting(t, s.server, "RENAME TABLE "+quote(journalPrefix+s.id))
			stop()
			recovered := make(chan error, 1)
			if lost {
				go func() { recovered <- recoverSwap(t.Context(), s.server, s.dest, s.id) }()
				waiting(t, s.server, `get_lock\(.*, 30\)`)
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

// A database without tables can be dumped and loaded.
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

// A load that is stopped while the server creates its scratch database leaves no database behind,
// although the server finishes creating it.
func TestStoppedBeforeTheDatabaseIsMade(t *testing.T) {
	t.Parallel()
	to := servertest.OwnMySQL(t, "mariadb", "") // a separate server, because all of it is locked
	d, _ := dumped(t, servertest.MariaDB(t))    // a dump without tables
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
	const making = "CREATE DATABASE `snapcli"
	waiting(t, server, making)
	stop()
	if _, err := holder.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if err := <-restored; !errors.Is(err, context.Canceled) {
		t.Errorf("the load: %v", err)
	}
	for len(states(t, server, making)) > 0 {
	}
	if left := leftovers(t, to); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// waiting waits until the server runs a statement that matches a pattern and waits for a lock.
func waiting(t *testing.T, server *sql.DB, pattern string) {
	t.Helper()
	locked := func(state string) bool { return strings.HasSuffix(state, "lock") }
	for !slices.ContainsFunc(states(t, server, pattern), locked) {
	}
}

// states returns the states of the statements that the server runs and that match a pattern.
func states(t *testing.T, server *sql.DB, pattern string) (all []string) {
	t.Helper()
	rows, err := server.QueryContext(t.Context(), "SHOW FULL PROCESSLIST")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	row := make([]any, len(columns))
	for i := range row {
		row[i] = new(sql.NullString)
	}
	text := func(column string) string { return row[slices.Index(columns, column)].(*sql.NullString).String }
	for rows.Next() {
		if err := rows.Scan(row...); err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(pattern).MatchString(text("Info")) {
			all = append(all, text("State"))
		}
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return all
}

// killedInSwap leaves a load in the state of a load that was killed during the swap, and returns
// its id.
func killedInSwap(t *testing.T, url string, d engine.Dump, swapped bool) (id string) {
	t.Helper()
	restored, err := Engine{}.Restore(t.Context(), url, d, engine.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := restored.(*scratch)
	db, err := s.dest.open(s.dest.name)
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
	s.server.Close() // this frees the lock
	return s.id
}

// A collation that the destination lacks is reported before anything is created. The error has the
// code "usage", for which sanitize keeps the hint, because the masking rules are not the cause.
// MariaDB 10.11, for example, lacks the default collation of MySQL 8.
func TestUnknownCollation(t *testing.T) {
	t.Parallel()
	from, to := servertest.MySQL(t, "mysql-8.0"), servertest.MariaDB(t)
	script(t, from,
		"CREATE TABLE t (a VARCHAR(10)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci; INSERT INTO t VALUES ('a')")
	script(t, to, "CREATE TABLE old (a INT)")
	before := contents(t, to)
	d, _ := dumped(t, from)
	if err := load(t, to, d, false); snap.CodeOf(err) != snap.CodeUsage ||
		!strings.Contains(err.Error(), "utf8mb4_0900_ai_ci") {
		t.Errorf("%v", err)
	}
	if after := contents(t, to); after != before {
		t.Errorf("the old database changed: %s", difference(before, after))
	}
}

// A script is split in the same way as by the client programs.
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
