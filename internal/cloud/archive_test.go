package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
	"snap/internal/blob"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// archived is a service whose log has two chunks that are old enough for the archive, and some
// lines after them.
type archived struct {
	*watched
	clock *clocktest.Clock
	blobs blob.Store
	other *cloudtest.Cloud // a second replica
}

const archiveAfter = 40 * 24 * time.Hour

// onArchives runs a test on SQLite and disk, and on PostgreSQL and S3.
func onArchives(t *testing.T, test func(t *testing.T, a *archived)) {
	t.Helper()
	t.Run("sqlite, disk", func(t *testing.T) {
		t.Parallel()
		test(t, newArchived(t, cloudtest.Options{}))
	})
	t.Run("postgres, s3", func(t *testing.T) {
		t.Parallel()
		test(t, newArchived(t, onServers(t)))
	})
}

// onServers are the options of a service on PostgreSQL and S3.
func onServers(t *testing.T) cloudtest.Options {
	return cloudtest.Options{DatabaseURL: cloudtest.Postgres(t), BlobURL: servertest.S3(t)}
}

func newArchived(t *testing.T, o cloudtest.Options) *archived {
	t.Helper()
	a := &archived{clock: clocktest.New(time.Now())}
	o.Clock, o.DataDir = a.clock, t.TempDir()
	o.Config = func(c *cloud.Config) { c.Audit.ArchiveAfter = "40d" }
	a.watched = watch(t, o)
	a.other = cloudtest.Start(t, o)
	must(t, a.Service.Sequence(t.Context()))
	var err error
	a.blobs, err = cloud.OpenBlobs(t.Context(), a.Config)
	must(t, err)
	a.write(2*auditlog.ChunkLines + 10)
	a.clock.Advance(archiveAfter + time.Hour)
	a.write(30)
	return a
}

// write adds n lines to the log. They wait to be numbered, as if requests had written them. Every
// tenth line is a share, and the others are pulls.
func (a *archived) write(n int) {
	a.t.Helper()
	var values []string
	for i := range n {
		e := snap.AuditEntry{At: a.clock.Now().UTC().Truncate(time.Millisecond), Action: snap.AuditPulled,
			Actor: "mia@acme.test", ActorOrg: "acme", Snapshot: a.pushed, Detail: snap.AuditDetail{Bytes: int64(i + 1)},
			Address: fmt.Sprint("192.0.2.", i%200)}
		if i%10 == 0 {
			e.Action, e.Detail = snap.AuditShared, snap.AuditDetail{OrgWide: true}
		}
		body, err := json.Marshal(e)
		must(a.t, err)
		values = append(values, `(`+acme+`, '`+string(body)+`')`)
	}
	a.exec(`INSERT INTO audit_waiting(org_id, body) VALUES` + strings.Join(values, ", "))
	must(a.t, a.Service.Sequence(a.t.Context()))
}

func (a *archived) rows() (n int) {
	a.t.Helper()
	must(a.t, a.db.QueryRowContext(a.t.Context(), `SELECT count(*) FROM audit WHERE org_id = `+acme).Scan(&n))
	return n
}

// view holds everything that readers of the log see.
type view struct {
	Records                []string
	Newest, Oldest, Pulled []string
	Middle                 []string
	Then                   api.AudienceThen
	Inclusion              api.AuditInclusion
}

func (a *archived) allRecords() (all []string) {
	a.t.Helper()
	for {
		page, err := a.As("alice@acme.test").AuditRecords(a.t.Context(), int64(len(all))+1, 1000)
		must(a.t, err)
		if len(page.Items) == 0 {
			return all
		}
		all = append(all, page.Items...)
	}
}

func (a *archived) view() (v view) {
	a.t.Helper()
	ctx, alice := a.t.Context(), a.As("alice@acme.test")
	v.Records = a.allRecords()
	list := func(o api.AuditOptions) (all []string) {
		for e, err := range alice.AllAudit(ctx, o) {
			must(a.t, err)
			all = append(all, fmt.Sprintf("%+v", e))
		}
		return all
	}
	v.Newest = list(api.AuditOptions{Limit: 195})
	v.Oldest = list(api.AuditOptions{Limit: 190, OldestFirst: true})
	v.Pulled = list(api.AuditOptions{Limit: 185, Action: snap.AuditPulled})
	v.Middle = list(api.AuditOptions{Limit: 200, Snapshot: a.pushed, Action: snap.AuditShared,
		Until: a.clock.Now().Add(-time.Hour)})
	var err error
	v.Then, err = alice.AudienceAt(ctx, a.pushed, a.clock.Now().Add(-archiveAfter))
	must(a.t, err)
	v.Inclusion, err = alice.AuditInclusion(ctx, 1500)
	must(a.t, err)
	must(a.t, v.Inclusion.Verify())
	return v
}

// Moving old lines to the object store changes nothing for people who read the log: records, pages
// in both orders with filters, proofs, and who could see a snapshot at a time in the past. Two
// replicas may archive at once.
func TestArchivedLogReadsTheSame(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	onArchives(t, func(t *testing.T, a *archived) {
		a.keep()
		before, rows := a.view(), a.rows()
		other := make(chan error, 1)
		go func() { other <- a.other.Service.ArchiveLogs(t.Context()) }()
		must(t, a.Service.ArchiveLogs(t.Context()))
		must(t, <-other)
		if n := rows - a.rows(); n < 2*auditlog.ChunkLines*8/10 || n > 2*auditlog.ChunkLines {
			t.Errorf("%d rows of %d moved", n, rows)
		}
		if after := a.view(); !reflect.DeepEqual(before, after) {
			t.Errorf("readers see another log: %d and %d records", len(before.Records), len(after.Records))
		}
		a.keep()
		must(t, a.Store.CheckAudit(t.Context()))
		a.write(20)
		a.keep()
		keys, err := a.blobs.List(t.Context(), "audit.")
		if err != nil || len(keys) != 2 {
			t.Errorf("the archive has %q, %v", keys, err)
		}
		must(t, a.Service.ArchiveLogs(t.Context()))
		if verdicts, err := cloud.Deep(t.Context(), a.Config); err != nil || verdicts[0].Err != nil ||
			verdicts[1].Err != nil {
			t.Errorf("%+v, %v", verdicts, err)
		}
	})
}

// A replica that wants to archive lines which another one has just archived finds nothing to do,
// and does not report an altered log.
func TestLinesAreArchivedOnce(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	onArchives(t, func(t *testing.T, a *archived) {
		due, err := a.Store.Archivable(t.Context(), a.clock.Now().Add(-archiveAfter))
		if err != nil || len(due) != 1 {
			t.Fatalf("%+v, %v", due, err)
		}
		must(t, a.other.Service.ArchiveLogs(t.Context()))
		if _, content, err := a.Store.Pack(t.Context(), due[0]); err != nil || content != nil {
			t.Errorf("archived lines are packed again: %d bytes, %v", len(content), err)
		}
	})
}

// If an object is missing, damaged or holds another chunk, everybody who reads its lines gets an
// error, and verification names the object. Verification also fails if rows in the database differ
// from the object. All other lines can still be read.
func TestDamagedArchivesAreNamed(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	a := newArchived(t, onServers(t))
	must(t, a.Service.ArchiveLogs(t.Context()))
	a.keep()
	keys, err := a.blobs.List(t.Context(), "audit.")
	must(t, err)
	good := a.object(keys[0])
	for name, bad := range map[string][]byte{
		"cut":     good[:len(good)/2],
		"flipped": slices.Concat(good[:99], []byte{good[99] ^ 1}, good[100:]),
		"swapped": a.object(keys[1]),
		"bomb":    bomb(t),
		"missing": nil,
	} {
		if bad == nil {
			must(t, a.blobs.Delete(t.Context(), keys[0]))
		} else {
			must(t, a.blobs.Write(t.Context(), keys[0], bad))
		}
		a.damaged(name, keys[0])
	}
	must(t, a.blobs.Write(t.Context(), keys[0], good))
	a.keep()
	a.copyTables()
	kept := `(SELECT max(seq) FROM audit WHERE action = 'snapshot.shared' AND seq < 1024)`
	for name, text := range map[string]string{
		"kept row altered": `UPDATE audit SET body = replace(body, '"address":"', '"address":"1') WHERE seq = ` + kept,
		"kept row removed": `DELETE FROM audit WHERE seq = ` + kept + ` AND org_id = ` + acme,
		"chunk forgotten":  `DELETE FROM audit_archive WHERE first = 1025`,
		"chunk redirected": `UPDATE audit_archive SET blob = (SELECT b.blob FROM audit_archive b WHERE b.first = 1025)`,
	} {
		a.exec(text)
		if v, err := a.verify(); snap.CodeOf(err) != snap.CodeConflict || v.Sound {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		a.restore()
		a.keep()
	}
}

func (a *archived) damaged(name, key string) {
	a.t.Helper()
	alice := a.As("alice@acme.test")
	if v, err := a.verify(); snap.CodeOf(err) != snap.CodeConflict || !strings.Contains(v.Problem, key) {
		a.t.Errorf("%s: verify says %+v, %v", name, v, err)
	}
	_, err := alice.Audit(a.t.Context(), api.AuditOptions{OldestFirst: true})
	if snap.CodeOf(err) != snap.CodeConflict {
		a.t.Errorf("%s: the first page says %v", name, err)
	}
	if page, err := alice.Audit(a.t.Context(), api.AuditOptions{}); err != nil || len(page.Items) == 0 {
		a.t.Errorf("%s: the newest page has %d lines, %v", name, len(page.Items), err)
	}
}

func (a *archived) object(key string) []byte {
	a.t.Helper()
	r, err := a.blobs.Open(a.t.Context(), key)
	must(a.t, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	must(a.t, err)
	return content
}

// bomb unpacks to far more than the lines of a chunk.
func bomb(t *testing.T) []byte {
	t.Helper()
	content, _, err := auditlog.PackChunk([]string{string(bytes.Repeat([]byte("x"), 64<<20))})
	must(t, err)
	return content
}

// The rows stay until the object was read back. Interruptions before that change nothing, and the
// next run completes the work.
func TestArchivingTrustsNoWrite(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	a := newArchived(t, cloudtest.Options{})
	a.keep()
	rows, open := a.rows(), a.Store.OpenObject
	for name, broken := range map[string]func(context.Context, string) (io.ReadCloser, error){
		"lost": func(context.Context, string) (io.ReadCloser, error) { return nil, snap.ErrNotFound },
		"garbled": func(context.Context, string) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("x")), nil
		},
		"broken": func(ctx context.Context, key string) (io.ReadCloser, error) {
			r, err := open(ctx, key)
			return struct {
				io.Reader
				io.Closer
			}{io.LimitReader(r, 100), r}, err
		},
	} {
		a.Store.OpenObject = broken
		if err := a.Service.ArchiveLogs(t.Context()); err == nil || a.rows() != rows {
			t.Errorf("%s: %v, and %d of %d rows are there", name, err, a.rows(), rows)
		}
	}
	a.Store.OpenObject = open
	must(t, a.Service.ArchiveLogs(t.Context()))
	a.keep()
	// A log that was altered is not archived.
	a.write(auditlog.ChunkLines)
	a.clock.Advance(archiveAfter + time.Hour)
	a.write(1)
	a.exec(`DELETE FROM audit WHERE org_id = ` + acme + ` AND seq = 2100`)
	rows = a.rows()
	if err := a.Service.ArchiveLogs(t.Context()); snap.CodeOf(err) != snap.CodeConflict || a.rows() != rows {
		t.Errorf("%v, and %d of %d rows are there", err, a.rows(), rows)
	}
}
