package cloud_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// Checkpoints are kept in a bucket with object lock, each once, and `snapcloud check` warns of a
// bucket without object lock.
func TestCheckpointsAreKeptInALockedBucket(t *testing.T) {
	t.Parallel()
	address, client, bucket := servertest.LockedS3(t)
	w := watch(t, cloudtest.Options{Config: func(c *cloud.Config) { c.Audit.Checkpoints = address }})
	must(t, w.Service.Sequence(t.Context()))
	for range 2 {
		must(t, w.Service.KeepCheckpoints(t.Context()))
	}
	var keys []string
	for o := range client.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: "checkpoints/acme/",
		Recursive: true, WithVersions: true}) {
		must(t, o.Err)
		keys = append(keys, o.Key)
	}
	if len(keys) != 1 {
		t.Fatalf("the bucket has %q", keys)
	}
	kept, err := client.StatObject(t.Context(), bucket, keys[0], minio.StatObjectOptions{})
	must(t, err)
	until, err := time.Parse(time.RFC3339, kept.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date"))
	if mode := kept.Metadata.Get("X-Amz-Object-Lock-Mode"); err != nil || mode != "COMPLIANCE" ||
		time.Until(until) < 399*24*time.Hour {
		t.Errorf("kept in mode %q until %v, %v", mode, until, err)
	}
	now, err := w.As("alice@acme.test").AuditCheckpoint(t.Context())
	must(t, err)
	if !strings.Contains(now.Checkpoint, "\n"+strings.TrimLeft(keys[0][len("checkpoints/acme/"):], "0")+"\n") {
		t.Errorf("%s holds another size than %s", keys[0], now.Checkpoint)
	}
	w.keep()
	for i, url := range []string{address, servertest.S3(t)} {
		c := w.Config
		c.Audit.Checkpoints = url
		all := cloud.Verdicts(t.Context(), c)
		at := slices.IndexFunc(all, func(v cloud.Verdict) bool { return v.What == "checkpoints" })
		if at < 0 || (all[at].Err != nil) != (i == 1) {
			t.Errorf("check says %+v of %s", all, url)
		}
	}
}
