package cloud_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"snap/internal/auditlog"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// A replica is killed while it archives: once after it wrote an object and before the database
// names the object, and once before the transaction that names it and removes the lines ends. Each
// time the log is intact and complete, and the next replica completes the work without a second
// object.
func TestArchivingSurvivesKills(t *testing.T) {
	t.Parallel()
	ctx, database, dir := t.Context(), cloudtest.Postgres(t), t.TempDir()
	a := &archived{clock: clocktest.New(time.Now().Add(-archiveAfter - 2*time.Hour))}
	a.watched = watch(t, cloudtest.Options{DatabaseURL: database, DataDir: dir, Clock: a.clock})
	var err error
	a.blobs, err = cloud.OpenBlobs(ctx, a.Config)
	must(t, err)
	a.write(2*auditlog.ChunkLines + 10)
	a.keep()
	before, rows := a.allRecords(), a.rows()
	objects := func() int {
		keys, err := a.blobs.List(ctx, "audit.")
		must(t, err)
		return len(keys)
	}
	var r *replica
	again := func() { // as after the end of the killed replica's lease
		a.exec(`DELETE FROM leases WHERE name = 'archive'`)
		if r == nil {
			r = startReplica(t, database, dir, a.URL, `audit: {archive_after: 40d}`)
			return
		}
		r.start()
	}
	for _, table := range []string{"audit_archive", "audit"} {
		release := a.freeze(table)
		again()
		waitFor(t, func() bool { return a.waitsFor(table) })
		if n := objects(); n != 1 {
			t.Errorf("%d objects are there when the write to %s waits", n, table)
		}
		r.kill()
		release()
		waitFor(t, func() bool { return !a.waitsFor(table) })
		a.keep()
		if after := a.allRecords(); !slices.Equal(after[:len(before)], before) {
			t.Errorf("killed at %s, the log differs", table)
		}
		if n := a.rows(); n < rows {
			t.Errorf("killed at %s, %d of %d lines are there", table, n, rows)
		}
	}
	again()
	waitFor(t, func() bool {
		var chunks int
		must(t, a.db.QueryRowContext(ctx, `SELECT count(*) FROM audit_archive`).Scan(&chunks))
		return chunks == 2
	})
	a.keep()
	if after := a.allRecords(); !slices.Equal(after[:len(before)], before) {
		t.Error("archived, the log differs")
	}
	if n := objects(); n != 2 {
		t.Errorf("the archive has %d objects", n)
	}
	r.kill()
	must(t, a.Store.CheckAudit(ctx))
}

// freeze makes writes to a table wait until release.
func (a *archived) freeze(table string) (release func()) {
	a.t.Helper()
	tx, err := a.db.BeginTx(context.Background(), &sql.TxOptions{})
	must(a.t, err)
	_, err = tx.ExecContext(a.t.Context(), `LOCK TABLE `+table+` IN SHARE MODE`)
	must(a.t, err)
	return func() { must(a.t, tx.Rollback()) }
}

// waitsFor reports whether a transaction that archives waits to write to a table.
func (a *archived) waitsFor(table string) (waits bool) {
	a.t.Helper()
	must(a.t, a.db.QueryRowContext(a.t.Context(), `SELECT EXISTS(
		SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_stat_activity s ON s.pid = l.pid
		WHERE c.relname = $1 AND NOT l.granted
			AND (s.query LIKE '%audit_archive%' OR s.query LIKE 'DELETE FROM audit %'))`, table).Scan(&waits))
	return waits
}
