package cloud_test

import (
	"context"
	"strings"
	"testing"

	"snap/internal/cloud"
	"snap/internal/cloudtest"
)

// A database that was restored to an earlier time refers to bytes that no longer exist, and lacks
// rows for bytes that do exist. The deep check names both.
func TestDeepFindsWhatARestoreLeaves(t *testing.T) {
	t.Parallel()
	onDatabases(t, func(t *testing.T, o cloudtest.Options) {
		w := watch(t, o)
		deep := func() (snapshots, objects cloud.Verdict) {
			t.Helper()
			all, err := cloud.Deep(context.Background(), w.Config)
			must(t, err)
			return all[0], all[1]
		}
		mia := w.As("mia@acme.test")
		kept, gone := w.Push(mia, "kept", []byte("kept")), w.Push(mia, "gone", []byte("gone"))
		blobs, err := cloud.OpenBlobs(t.Context(), w.Config)
		must(t, err)
		_, err = mia.Push(t.Context(), pushOf("shop", []byte("begun")))
		must(t, err)
		var begun string
		must(t, w.db.QueryRowContext(t.Context(), `SELECT blob FROM uploads`).Scan(&begun))
		must(t, blobs.Write(t.Context(), begun, []byte("begun")))
		if s, o := deep(); s.Err != nil || o.Err != nil {
			t.Errorf("a sound service: %+v, %+v", s, o)
		}
		key := func(id string) (key string) {
			must(t, w.db.QueryRowContext(t.Context(), `SELECT blob FROM snapshots WHERE id = $1`, id).Scan(&key))
			return key
		}
		must(t, blobs.Delete(t.Context(), key(gone.ID)))
		later := key(kept.ID)
		w.exec(`DELETE FROM grants WHERE snapshot = (SELECT key FROM snapshots WHERE id = $1)`, kept.ID)
		w.exec(`DELETE FROM snapshots WHERE id = $1`, kept.ID)
		s, b := deep()
		if s.Err == nil || s.Warning || s.Detail != "1 without bytes: "+gone.ID+" of acme" {
			t.Errorf("snapshots without bytes: %+v", s)
		}
		if b.Err == nil || !b.Warning || !strings.HasSuffix(b.Detail, "1 without a row: "+later) {
			t.Errorf("bytes without rows: %+v", b)
		}
		w.exec(`DROP TABLE audit_archive`) // a database of an earlier release has none
		deep()
	})
}
