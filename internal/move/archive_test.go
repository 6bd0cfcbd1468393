package move_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/move"
	"snap/internal/store"
)

// A service whose old audit lines are objects is backed up, restored and moved with them: readers
// see the same log there, and the earlier checkpoint proves the tree.
func TestArchivedServicesMove(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from := embedded(t)
	oldLines(t, from)
	first := from.start(t, "")
	s := seed(t, first, 3)
	ok(t, first.Service.Sequence(ctx))
	ok(t, first.Service.ArchiveLogs(ctx))
	log := recordsOf(t, first, s.keys[0])
	verdict, err := first.Client(s.keys[0]).VerifyAudit(ctx, nil)
	ok(t, err)
	backups := filepath.Join(t.TempDir(), "backups")
	b, err := move.BackUp(ctx, move.Options{DataDir: from.dir, Dir: backups}, move.Progress{})
	ok(t, err)
	if b.Objects != 5 {
		t.Errorf("the backup has %d objects, want three snapshots and two parts of the log", b.Objects)
	}
	first.Service.Close()

	restored := embedded(t)
	_, err = move.Restore(ctx, backups, "", restored.dir, move.Progress{})
	ok(t, err)
	moved := replicated(t)
	r, err := move.Transfer(ctx, from.place(t), moved.place(t), move.Progress{}, false)
	if err != nil || r.Objects != 5 {
		t.Fatalf("moved %+v, %v", r, err)
	}
	for name, at := range map[string]site{"restored": restored, "moved": moved} {
		c := at.start(t, first.URL)
		if got := recordsOf(t, c, s.keys[0]); len(got) < len(log) || !slices.Equal(got[:len(log)], log) {
			t.Errorf("%s, the log has %d lines and had %d, or they differ", name, len(got), len(log))
		}
		kept := func(string) (api.AuditCheckpoint, error) { return *verdict.Now, nil }
		if v, err := c.Client(s.keys[0]).VerifyAudit(ctx, kept); err != nil || !v.Sound {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		s.holds(t, c, at)
		verdicts, err := cloud.Deep(ctx, c.Config)
		ok(t, err)
		for _, v := range verdicts {
			ok(t, v.Err)
		}
	}
	found, err := filepath.Glob(filepath.Join(restored.dir, "blobs", "objects", "??", store.ArchivePrefix+"*"))
	ok(t, err)
	ok(t, os.Remove(found[0]))
	_, err = move.BackUp(ctx, move.Options{DataDir: restored.dir, Dir: t.TempDir()}, move.Progress{})
	is(t, err, snap.CodeCorrupt, filepath.Base(found[0]))
}

// oldLines begins a service 41 days ago, with two chunks of lines in its log.
func oldLines(t *testing.T, at site) {
	t.Helper()
	clock := clocktest.New(time.Now().Add(-41 * 24 * time.Hour))
	c := cloudtest.Start(t, cloudtest.Options{DataDir: at.dir, Clock: clock})
	defer c.Service.Close()
	file := filepath.Join(at.dir, "snapcloud.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(15000)")
	ok(t, err)
	defer db.Close()
	var values []string
	for i := range 2*auditlog.ChunkLines + 10 {
		body, err := json.Marshal(snap.AuditEntry{At: clock.Now().UTC().Truncate(time.Millisecond),
			Action: snap.AuditPulled, Actor: "mia@acme.test", ActorOrg: "acme",
			Detail: snap.AuditDetail{Bytes: int64(i + 1)}})
		ok(t, err)
		values = append(values, fmt.Sprintf(`((SELECT id FROM orgs WHERE slug = 'acme'), '%s')`, body))
	}
	_, err = db.ExecContext(t.Context(), `INSERT INTO audit_waiting(org_id, body) VALUES`+strings.Join(values, ", "))
	ok(t, err)
	ok(t, c.Service.Sequence(t.Context()))
}

func recordsOf(t *testing.T, c *cloudtest.Cloud, key string) (all []string) {
	t.Helper()
	for {
		page, err := c.Client(key).AuditRecords(context.Background(), int64(len(all))+1, api.MaxAuditRecords)
		ok(t, err)
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
	}
}
