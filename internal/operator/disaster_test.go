package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"snap"
	"snap/api"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// drill is a service over PostgreSQL with an archived log and a bucket with versions, which is lost
// and recovered to a moment as docs/operations.md says.
type drill struct {
	t      *testing.T
	config string
	alice  *api.Client
	bucket *minio.Client
	name   string // of the bucket
}

// The drill of docs/operations.md: PostgreSQL is recovered to an earlier moment, from a base backup
// and its archived log. In the bucket, objects were added and deleted after that moment. The deep
// check names both, and the bucket's versions restore the deleted objects. The export of the audit
// log ends the shares that had ended after the moment, before the service starts. A checkpoint from
// the lost time reveals the missing lines.
func TestDisasterDrill(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	database, postgres := servertest.ArchivingPostgres(t)
	bucketURL, bucket, name := servertest.VersionedS3(t)
	address := servertest.Address(t)
	d := &drill{t: t, config: configureAt(t, address, database, bucketURL), bucket: bucket, name: name}
	aliceKey, vicKey := d.key("alice@acme.test"), d.key("vic@acme.test")
	stop := serve(t, d.config)
	d.alice = d.client(d.config, aliceKey)
	before := d.push("before the base backup")
	postgres.BackUp(t)
	kept, doomed := d.push("kept"), d.push("deleted later")
	for _, sn := range []api.Snapshot{before, kept, doomed} {
		_, err := d.alice.Share(ctx, sn.ID)
		must(t, err)
	}
	moment := postgres.Moment(t)
	late := d.push("pushed after the moment")
	must(t, d.alice.Unshare(ctx, kept.ID))
	must(t, d.alice.Delete(ctx, doomed.ID))
	d.runs(0, "", "user disable --org acme vic@acme.test")
	verdict, err := d.alice.VerifyAudit(ctx, nil)
	must(t, err)
	page, err := d.alice.AuditRecords(ctx, 1, api.MaxAuditRecords)
	must(t, err)
	export := filepath.Join(t.TempDir(), "acme.jsonl")
	must(t, os.WriteFile(export, []byte(strings.Join(page.Items, "\n")+"\n"), 0o600))
	stop()
	postgres.Lose(t)

	began := time.Now()
	d.config = configureAt(t, address, postgres.Recover(t, moment), bucketURL)
	recovered := time.Since(began)
	said := d.runs(snap.ExitUnreachable, "1 without bytes: "+doomed.ID+" of acme", "check --deep")
	if !strings.Contains(said, "1 without a row: "+late.ID) {
		t.Errorf("the deep check does not name the bytes of %s: %s", late.ID, said)
	}
	d.undelete()
	if said = d.runs(0, "the bytes of every snapshot are there", "check --deep"); strings.Contains(said, doomed.ID) {
		t.Errorf("after the versions were put back: %s", said)
	}
	d.runs(0, "ended 2 shares, disabled 1 user, revoked 0 keys", "audit replay --org acme --revocations "+export)
	t.Logf("PostgreSQL was recovered in %s, and the whole took %s", recovered.Round(time.Millisecond),
		time.Since(began).Round(time.Millisecond))

	defer serve(t, d.config)()
	d.alice = d.client(d.config, aliceKey)
	d.pulls(before, "before the base backup")
	d.pulls(kept, "kept")
	d.pulls(doomed, "deleted later")
	if _, err := d.alice.Snapshot(ctx, late.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("the snapshot that was pushed after the moment: %v", err)
	}
	if _, err := d.client(d.config, vicKey).Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the user who was disabled after the moment: %v", err)
	}
	for _, sn := range []api.Snapshot{kept, doomed} {
		if got, err := d.alice.Snapshot(ctx, sn.ID); err != nil || got.Shared {
			t.Errorf("%s is shared again: %+v, %v", sn.Name, got, err)
		}
	}
	if v, err := d.alice.VerifyAudit(ctx, nil); err != nil || !v.Sound {
		t.Errorf("the restored log: %+v, %v", v, err)
	}
	later := func(string) (api.AuditCheckpoint, error) { return *verdict.Now, nil }
	if v, err := d.alice.VerifyAudit(ctx, later); snap.CodeOf(err) != snap.CodeConflict || v.Sound {
		t.Errorf("the log against a checkpoint of the lost time: %+v, %v", v, err)
	}
}

// configureAt is [configure] over a database and a bucket.
func configureAt(t *testing.T, address, database, bucket string) string {
	t.Helper()
	config := configure(t, address)
	text, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, fmt.Appendf(text, "database: {url: %q}\nblob: {url: %q}\n", database, bucket), 0o600))
	return config
}

func (d *drill) key(email string) string {
	_, secret, _ := run(d.t, d.config, "key", "create", "--org", "acme", "--kind", "user", "--user", email)
	return strings.TrimSpace(secret)
}

func (d *drill) client(config, secret string) *api.Client {
	d.t.Helper()
	c, err := api.New(api.Options{BaseURL: "http://" + addressOf(d.t, config), Mount: api.MountAgent,
		Token: api.StaticToken(secret)})
	must(d.t, err)
	return c
}

// runs checks the exit code of a command and a part of its output, and returns the whole output.
func (d *drill) runs(code int, says, args string) string {
	d.t.Helper()
	got, stdout, stderr := run(d.t, d.config, strings.Fields(args)...)
	if got != code || !strings.Contains(stdout+stderr, says) {
		d.t.Errorf("snapcloud %s: exit code %d\n%s%s\nwant %d and %q", args, got, stdout, stderr, code, says)
	}
	return stdout + stderr
}

func (d *drill) push(content string) api.Snapshot {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "file")
	must(d.t, os.WriteFile(file, []byte(content), 0o600))
	sum := sha256.Sum256([]byte(content))
	up, err := transfer.Upload(d.t.Context(), d.alice, file, api.PushRequest{Target: "shop",
		Name: strings.ReplaceAll(content, " ", "-"), Type: snap.TypeSnapshot, Engine: snap.SQLite,
		Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])},
		transfer.Options{HTTP: http.DefaultClient, Jobs: 1})
	must(d.t, err)
	sn, err := d.alice.Snapshot(d.t.Context(), up.ID)
	must(d.t, err)
	return sn
}

func (d *drill) pulls(sn api.Snapshot, content string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "pulled")
	_, _, err := transfer.Download(d.t.Context(), d.alice, sn.ID, file,
		transfer.Options{HTTP: http.DefaultClient, Jobs: 1})
	must(d.t, err)
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, []byte(content)) {
		d.t.Errorf("%s has %q, %v", sn.Name, got, err)
	}
}

// undelete removes the delete markers of the bucket.
func (d *drill) undelete() {
	d.t.Helper()
	n := 0
	for o := range d.bucket.ListObjects(context.Background(), d.name,
		minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
		must(d.t, o.Err)
		if !o.IsDeleteMarker || !o.IsLatest {
			continue
		}
		n++
		must(d.t, d.bucket.RemoveObject(d.t.Context(), d.name, o.Key,
			minio.RemoveObjectOptions{VersionID: o.VersionID}))
	}
	if n == 0 {
		d.t.Error("the bucket has no delete marker")
	}
}
