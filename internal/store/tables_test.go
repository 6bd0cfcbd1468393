package store_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap/internal/servertest"
	"snap/internal/store"
)

// Copying a database copies every table: the list of tables matches the migrations, and both
// databases have the same columns. So a new table cannot be forgotten.
func TestTablesAreThoseOfTheSchema(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	columns := map[string]map[string][]string{}
	for name, s := range map[string]*store.Store{
		"sqlite":   open(t, store.Options{DataDir: t.TempDir()}),
		"postgres": open(t, store.Options{URL: servertest.Postgres(t)}),
	} {
		text := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
		if s.IsPostgres() {
			text = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`
		}
		rows, err := s.DB().QueryContext(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		schema := map[string]bool{}
		for rows.Next() {
			var table string
			if err := rows.Scan(&table); err != nil {
				t.Fatal(err)
			}
			if table != "goose_db_version" {
				schema[table] = true
			}
		}
		rows.Close()
		columns[name] = map[string][]string{}
		for _, table := range store.Tables() {
			if !schema[table] {
				t.Errorf("%s has no table %s, which tables() lists", name, table)
				continue
			}
			delete(schema, table)
			rows, err := s.DB().QueryContext(ctx, `SELECT * FROM `+table+` WHERE 1 = 0`)
			if err != nil {
				t.Fatal(err)
			}
			if columns[name][table], err = rows.Columns(); err != nil {
				t.Fatal(err)
			}
			slices.Sort(columns[name][table])
			rows.Close()
		}
		for table := range schema {
			t.Errorf("%s has a table %s that tables() does not list: a backup or transfer would lose it", name, table)
		}
	}
	for table, of := range columns["sqlite"] {
		if !slices.Equal(of, columns["postgres"][table]) {
			t.Errorf("%s has the columns %v in SQLite and %v in PostgreSQL", table, of, columns["postgres"][table])
		}
	}
}

// In the order of tables(), a copy finds the target of every reference.
func TestTablesComeAfterWhatTheyReferTo(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{DataDir: t.TempDir()})
	seen := map[string]bool{}
	for _, table := range store.Tables() {
		rows, err := s.DB().QueryContext(t.Context(), `SELECT "table" FROM pragma_foreign_key_list($1)`, table)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var to string
			if err := rows.Scan(&to); err != nil {
				t.Fatal(err)
			}
			if !seen[to] {
				t.Errorf("%s comes before %s, to which it refers", table, to)
			}
		}
		rows.Close()
		seen[table] = true
	}
}

// The code that copies a database knows all identifiers that the database generates, because the
// copy must continue where the source stopped.
func TestTablesKnowTheirCounters(t *testing.T) {
	t.Parallel()
	s := open(t, store.Options{URL: servertest.Postgres(t)})
	rows, err := s.DB().QueryContext(t.Context(), `
		SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'goose_db_version'
			AND (is_identity = 'YES' OR column_default LIKE 'nextval%') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var counted []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		counted = append(counted, name)
	}
	if want := store.Identities(); !slices.Equal(counted, want) {
		t.Errorf("the schema counts %s, tables() says %s", strings.Join(counted, ", "), strings.Join(want, ", "))
	}
}

func open(t *testing.T, o store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A relative data_dir, such as the default, is a folder below the current one.
func TestOpenTakesARelativeFolder(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Rel(here, filepath.Join(t.TempDir(), "a b%c?d#e"))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.IsAbs(dir) {
		t.Fatalf("%s is not relative", dir)
	}
	open(t, store.Options{DataDir: dir})
	if err := store.CheckExists(store.Options{DataDir: dir}); err != nil {
		t.Error(err)
	}
}

// A rate limit is counted in the database, which all replicas share: as many calls succeed as the
// limit allows, also at the same time, and the others learn how long to wait.
func TestSpendingIsShared(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		const cost, window = 100 * time.Millisecond, time.Second
		var got atomic.Int64
		var calls sync.WaitGroup
		for range 25 {
			calls.Go(func() {
				if wait, err := w.Spend(w.ctx, "b", cost, window); err != nil || wait > cost {
					t.Errorf("the wait is %s, want at most %s; %v", wait, cost, err)
				} else if wait == 0 {
					got.Add(1)
				}
			})
		}
		calls.Wait()
		if got.Load() != 10 {
			t.Errorf("%d were allowed, want 10", got.Load())
		}
		w.clock.Advance(2 * cost)
		for i, want := range []bool{true, true, false} {
			if wait, err := w.Spend(w.ctx, "b", cost, window); err != nil || (wait == 0) != want {
				t.Errorf("try %d after a while: wait %s, %v", i, wait, err)
			}
		}
		if wait, err := w.Spend(w.ctx, "other", cost, window); err != nil || wait != 0 {
			t.Errorf("another bucket: wait %s, %v", wait, err)
		}
		w.clock.Advance(time.Minute)
		w.ok(w.SweepRates(w.ctx))
		var left int
		w.ok(w.DB().QueryRowContext(w.ctx, `SELECT count(*) FROM rates`).Scan(&left))
		if left != 0 {
			t.Errorf("%d rates are left of buckets that are free", left)
		}
	})
}
