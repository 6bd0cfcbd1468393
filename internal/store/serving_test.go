package store_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
	"snap/internal/store"
)

// bothDatabases runs a test on each kind of database.
func bothDatabases(t *testing.T, test func(t *testing.T, o store.Options)) {
	t.Parallel()
	for name, options := range map[string]func(t *testing.T) store.Options{
		"sqlite":   func(t *testing.T) store.Options { return store.Options{DataDir: t.TempDir()} },
		"postgres": func(t *testing.T) store.Options { return store.Options{URL: servertest.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, options(t))
		})
	}
}

// A program that knows too little of the schema does not open the database, and names both
// versions. A program that is one release older still opens it.
func TestOpenRefusesProgramsThatAreTooOld(t *testing.T) {
	bothDatabases(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		newest, err := store.Versions()
		w.ok(err)
		later := func(lowest int64) {
			_, err := w.DB().ExecContext(w.ctx, `UPDATE serving SET lowest = $1, version = 'v9.8.7'`, lowest)
			w.ok(err)
		}
		later(newest + 1)
		_, err = store.Open(w.ctx, o)
		both := []string{snap.Version(), fmt.Sprint("schema ", newest), "v9.8.7", fmt.Sprint("schema ", newest+1)}
		for _, says := range both {
			if snap.CodeOf(err) != snap.CodeUsage || !strings.Contains(err.Error(), says) {
				t.Errorf("the error %v does not say %q", err, says)
			}
		}
		if i, err := store.Inspect(w.ctx, o); err != nil || i.Refusal == nil {
			t.Errorf("inspected: %v, %v", i.Refusal, err)
		}
		later(newest) // the version that the next release writes
		openAll(t, o, 2)
		if i, err := store.Inspect(w.ctx, o); err != nil || i.Refusal != nil {
			t.Errorf("inspected: %v, %v", i.Refusal, err)
		}
	})
}

// An organization that a newer program closed stays closed when an older program with an older
// configuration starts. The newer program opens it again.
func TestOlderProgramDoesNotOpenWhatANewerOneClosed(t *testing.T) {
	bothDatabases(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		newest, err := store.Versions()
		w.ok(err)
		w.ok(w.CloseAllBut(w.ctx, []string{"acme"}))
		closed := func(want bool) {
			t.Helper()
			org, err := w.OrgBySlug(w.ctx, "globex")
			w.ok(err)
			if org.Closed != want {
				t.Errorf("closed: %v, want %v", org.Closed, want)
			}
		}
		by := func(schema int64) {
			_, err := w.DB().ExecContext(w.ctx, `UPDATE orgs SET closed_by = $1 WHERE slug = 'globex'`, schema)
			w.ok(err)
		}
		closed(true)
		by(newest + 1)
		w.ok(w.CloseAllBut(w.ctx, []string{"acme", "globex"}))
		closed(true)
		w.ok(w.CloseAllBut(w.ctx, []string{"acme"})) // does not become the program that closed it
		w.ok(w.CloseAllBut(w.ctx, []string{"acme", "globex"}))
		closed(true)
		by(newest - 1)
		w.ok(w.CloseAllBut(w.ctx, []string{"acme"})) // this program confirms it
		var schema int64
		w.ok(w.DB().QueryRowContext(w.ctx, `SELECT closed_by FROM orgs WHERE slug = 'globex'`).Scan(&schema))
		if schema != newest {
			t.Errorf("closed by %d, want %d", schema, newest)
		}
		w.ok(w.CloseAllBut(w.ctx, []string{"acme", "globex"}))
		closed(false)
	})
}

// After `serve --again`, the identity providers' refresh tokens count as possibly old, because the
// destination of the transfer may have replaced them.
func TestForgetMoveDoubtsRefreshTokens(t *testing.T) {
	bothDatabases(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		mia := w.user(w.acme, "mia", snap.RoleMember)
		w.ok(w.RecordSignIn(w.ctx, store.InteractiveSignIn{UserID: mia.User.ID, Refresh: []byte("sealed")}))
		w.ok(w.ForgetMove(w.ctx))
		standing, err := w.StandingOf(w.ctx, mia.User.ID)
		w.ok(err)
		if doubts, err := w.ClaimCheck(w.ctx, standing, time.Minute); err != nil || doubts != 2 {
			t.Errorf("%d doubts, %v; want 2", doubts, err)
		}
	})
}

// A database with archived lines of an audit log excludes programs that cannot read them, and so do
// its copies by a backup or a transfer. If the record of the exclusion is lost, the next start
// restores it.
func TestArchivedLogsExcludeOlderPrograms(t *testing.T) {
	bothDatabases(t, func(t *testing.T, o store.Options) {
		w := newWorld(t, o)
		lowest := func(name string, db *sql.DB) {
			t.Helper()
			var lowest int
			w.ok(db.QueryRowContext(w.ctx, `SELECT lowest FROM serving`).Scan(&lowest))
			if lowest != store.ArchiveSchema {
				t.Errorf("programs with schema %d may serve the %s", lowest, name)
			}
		}
		_, err := w.DB().ExecContext(w.ctx, `INSERT INTO audit_archive(org_id, first, blob, size, sha256, unpacked,
			first_at, last_at, hash) VALUES($1, 1, 'audit.1', 1, '', 1, 1, 1, '')`, w.acme.ID)
		w.ok(err)
		copied := open(t, store.Options{DataDir: t.TempDir()})
		frozen, err := w.Freeze(w.ctx)
		w.ok(err)
		w.ok(copied.CopyFrom(w.ctx, frozen, nil, func(store.CopiedTable) {}))
		w.ok(frozen.Release())
		lowest("copy", copied.DB())
		open(t, o)
		lowest("database", w.DB())
		if o.URL == "" {
			file := filepath.Join(t.TempDir(), "backup.db")
			w.ok(store.BackUp(w.ctx, o.DataDir, file))
			db, err := sql.Open("sqlite", file)
			w.ok(err)
			defer db.Close()
			lowest("backup", db)
		}
	})
}

// A backup of a file that is not a database fails with that error, and does not claim that the
// database is empty.
func TestBackUpOfADamagedDatabase(t *testing.T) {
	dir := t.TempDir()
	damaged := bytes.Repeat([]byte("damaged "), 1000)
	if err := os.WriteFile(filepath.Join(dir, "snapcloud.db"), damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	err := store.BackUp(t.Context(), dir, filepath.Join(t.TempDir(), "backup.db"))
	if err == nil || snap.CodeOf(err) == snap.CodeUsage || strings.Contains(err.Error(), "is empty") {
		t.Errorf("the error is %v", err)
	}
}
