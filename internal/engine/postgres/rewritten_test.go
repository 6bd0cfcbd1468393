package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"snap/internal/engine"
	"snap/internal/servertest"
)

// TestRewrittenTable replaces a table's rows after the dump's snapshot was taken and before pg_dump
// locks the table. It uses the statements that ignore older snapshots. Every committed state of the
// table has the rows, so the dump must have them too.
func TestRewrittenTable(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string]string{
		"truncate": "TRUNCATE items; INSERT INTO items SELECT i, 'new' FROM generate_series(1, 100) i",
		"alter":    "ALTER TABLE items ALTER COLUMN id TYPE bigint",
	} {
		for _, whole := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", whole", false: ", subset"}[whole], func(t *testing.T) {
				t.Parallel()
				url := servertest.Postgres(t)
				execute(t, url, "CREATE TABLE items (id int PRIMARY KEY, note text); "+
					"INSERT INTO items SELECT i, 'old' FROM generate_series(1, 100) i")
				other := connectTo(t, url)
				defer other.Close(context.Background())
				if _, err := other.Exec(t.Context(), "BEGIN; "+rewrite, pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
				o := engine.Options{Jobs: 2}
				if !whole {
					o.Subset = &engine.Subset{Where: map[string]string{"items": "true"}}
				}
				failed := make(chan error, 1)
				var info engine.Info
				go func() {
					var err error
					info, err = Engine{}.Dump(t.Context(), url, &bytes.Buffer{}, o)
					failed <- err
				}()
				waitForDump(t, other)
				if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
					t.Fatal(err)
				}
				if err := <-failed; err != nil {
					t.Fatal(err)
				}
				if got := info.Tables[0]; got.Name != "items" || got.Rows != 100 {
					t.Errorf("the dump has %d rows of %s, want 100 of items", got.Rows, got.Name)
				}
			})
		}
	}
}

// TestRewrittenTableIsReadable checks that the error about a table can be printed if the table's
// name is not valid UTF-8.
func TestRewrittenTableIsReadable(t *testing.T) {
	t.Parallel()
	url := emptyCopy(t, servertest.Postgres(t), "SQL_ASCII")
	psql(t, url, script(t, "SET client_encoding = SQL_ASCII; CREATE TABLE \"caf\xe9\" (a int)"))
	d, err := Engine{}.parse(url)
	if err != nil {
		t.Fatal(err)
	}
	conn := connectTo(t, url)
	defer conn.Close(context.Background())
	var snapshot string
	if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
		t.Fatal(err)
	}
	psql(t, url, script(t, "SET client_encoding = SQL_ASCII; TRUNCATE \"caf\xe9\""))
	err = d.checkLocked(t.Context(), bufio.NewReader(strings.NewReader("x")), snapshot)
	if !errors.Is(err, errRewritten) || !strings.Contains(err.Error(), `caf\xE9`) {
		t.Errorf("got %q", err)
	}
}

// TestBuildLetsOthersPass builds while pg_dump waits for the lock of a table. Before pg_dump gets
// that lock, another session truncates another table, which the build describes or from which it
// chooses rows. There must be no deadlock in which the TRUNCATE waits for a session of the build,
// that session for pg_dump, and pg_dump for the TRUNCATE.
func TestBuildLetsOthersPass(t *testing.T) {
	t.Parallel()
	for name, subset := range map[string]*engine.Subset{
		"whole":  nil,
		"subset": {Where: map[string]string{"items": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := servertest.Postgres(t)
			execute(t, url, "CREATE TABLE busy (id int PRIMARY KEY); CREATE TABLE items (id int PRIMARY KEY); "+
				"CREATE VIEW shown AS SELECT * FROM items; INSERT INTO items VALUES (1), (2)")
			other, truncating := connectTo(t, url), connectTo(t, url)
			defer other.Close(context.Background())
			defer truncating.Close(context.Background())
			if _, err := other.Exec(t.Context(), "BEGIN; LOCK busy", pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			built, truncated := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := Engine{}.Dump(t.Context(), url, &bytes.Buffer{}, engine.Options{Jobs: 1, Subset: subset,
					Choice: engine.Choice{ExcludeData: []string{"busy"}}})
				built <- err
			}()
			waitForDump(t, other)
			go func() {
				_, err := truncating.Exec(t.Context(), "TRUNCATE items")
				truncated <- err
			}()
			if subset == nil {
				if err := <-truncated; err != nil {
					t.Fatal(err)
				}
			} else {
				waitForLock(t, other, truncating.PgConn().PID(), truncated)
			}
			if _, err := other.Exec(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			if err := <-built; err != nil {
				t.Error(err)
			}
			if subset != nil {
				if err := <-truncated; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRewrittenInALoop builds while another session truncates and rewrites tables all the time. No
// build loses a row silently. SNAP_REWRITE_ROUNDS is the number of builds. TestRewrittenTable tests
// the same moments one by one.
func TestRewrittenInALoop(t *testing.T) {
	t.Parallel()
	rounds, err := strconv.Atoi(os.Getenv("SNAP_REWRITE_ROUNDS"))
	if err != nil {
		t.Skip("takes minutes: set SNAP_REWRITE_ROUNDS=200")
	}
	url := servertest.Postgres(t)
	execute(t, url, "CREATE TABLE items (id int PRIMARY KEY, note text); CREATE TABLE lines (id int PRIMARY KEY); "+
		"INSERT INTO items SELECT i, 'old' FROM generate_series(1, 100) i; INSERT INTO lines SELECT "+
		"generate_series(1, 100)")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	other := connectTo(t, url)
	defer other.Close(context.Background())
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			_, _ = other.Exec(ctx, "BEGIN; TRUNCATE items; INSERT INTO items SELECT i, 'new' FROM generate_series(1, "+
				"100) i; COMMIT; SELECT pg_sleep(random() * 3)", pgx.QueryExecModeSimpleProtocol)
			if n%5 == 0 {
				_, _ = other.Exec(ctx, "ALTER TABLE lines ALTER COLUMN id TYPE "+[]string{"bigint", "int"}[n/5%2])
			}
		}
		ended <- n
	}()
	refused := 0
	for round := range rounds {
		o := engine.Options{Jobs: 1 + round%2}
		if round%4 == 3 {
			o.Subset = &engine.Subset{Where: map[string]string{"items": "true", "lines": "true"}}
		}
		info, err := Engine{}.Dump(t.Context(), url, &bytes.Buffer{}, o)
		if err != nil {
			refused++
			t.Logf("round %d: %v", round, err)
			continue
		}
		if len(info.Tables) != 2 || info.Tables[0].Rows != 100 || info.Tables[1].Rows != 100 {
			t.Errorf("round %d: %+v", round, info.Tables)
		}
	}
	stop()
	t.Logf("%d builds, %d refused, during %d rewrites", rounds, refused, <-ended)
}

// waitForDump returns when pg_dump, or the session of snapcli that chooses a subset, waits for a
// lock that conn holds.
func waitForDump(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	const waiting = `DO $$ BEGIN
		WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
				AND pg_backend_pid() = ANY (pg_blocking_pids(pid))
				AND (query LIKE 'LOCK%' OR query LIKE 'SELECT FROM%' OR query LIKE '%pg_temp%')) LOOP
			PERFORM pg_stat_clear_snapshot();
			PERFORM pg_sleep(0.01);
		END LOOP; END $$`
	if _, err := conn.Exec(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
}

// waitForLock returns when a session waits for a lock, or when it has ended its work.
func waitForLock(t *testing.T, conn *pgx.Conn, pid uint32, ended chan error) {
	t.Helper()
	for waiting := false; !waiting && len(ended) == 0; {
		if err := conn.QueryRow(t.Context(), "SELECT cardinality(pg_blocking_pids($1::int)) > 0", int64(pid)).
			Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}
