package profile

import (
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
	"snap/api"
	"snap/internal/servertest"
)

// Every target and name of any script has a key of its own that any object store accepts.
func TestKeysAreSafeAndDistinct(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`^records/[a-z0-9-]{13,53}/[a-z0-9-]{13,53}\.json$`)
	seen := map[string][2]string{}
	rapid.Check(t, func(t *rapid.T) {
		pair := [2]string{rapid.String().Draw(t, "target"), rapid.String().Draw(t, "name")}
		key := recordKey(pair[0], pair[1])
		if !safe.MatchString(key) {
			t.Fatalf("%q", key)
		}
		if other, ok := seen[key]; ok && other != pair {
			t.Fatalf("%q and %q share %s", other, pair, key)
		}
		seen[key] = pair
		if !strings.HasPrefix(key, recordPrefix(pair[0])) {
			t.Fatalf("%s is not one of %s", key, recordPrefix(pair[0]))
		}
	})
}

func TestSnapshotsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p, err := Open(t.Context(), "file://"+t.TempDir(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "c", "a"} {
		now = now.Add(time.Hour)
		if err := p.write(t.Context(), api.PushRequest{Target: "shop", Name: name, Type: snap.TypeSnapshot,
			Size: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.write(t.Context(), api.PushRequest{Target: "books", Name: "d"}); err != nil {
		t.Fatal(err)
	}
	all, err := p.Snapshots(t.Context(), "shop")
	if err != nil || len(all) != 3 || all[0].Name != "a" || all[1].Name != "c" || all[2].Name != "b" {
		t.Errorf("%v, %v", all, err)
	}
}

// The error for an unusable URL does not repeat it, because it may hold a
// secret.
func TestOpenRefusesOtherURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "ftp://u:hush@h/x", "file://host/x", "file:relative", "s3://", "s3://name:/x",
		"s3://k:hush@b?endpoint=x", "s3://k:hush@b?secret=hush", "s3://k:hush@b?lookup=hush", ":"} {
		_, err := Open(t.Context(), raw, nil)
		if snap.CodeOf(err) != snap.CodeUsage {
			t.Errorf("%q: %v, want a usage error", raw, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("the error tells the URL's secret: %v", err)
		}
	}
}

// An error of the object store gives its reason and does not speak of a service.
func TestErrorsAreAboutTheObjectStore(t *testing.T) {
	t.Parallel()
	bucket, err := url.Parse(servertest.S3(t))
	if err != nil {
		t.Fatal(err)
	}
	bucket.Host = "missing"
	p, err := Open(t.Context(), bucket.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Snapshots(t.Context(), "shop")
	if e, ok := errors.AsType[*snap.Error](err); !ok || !strings.Contains(e.Detail, "NoSuchBucket") ||
		strings.Contains(e.Detail+e.Hint, "service") {
		t.Errorf("%v, %+v", err, e)
	}
}

// An endpoint whose certificate is not trusted is reported as such.
func TestUntrustedEndpoint(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	p, err := Open(t.Context(), "s3://key:secret@bucket?endpoint="+server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Snapshots(t.Context(), "shop")
	if e, ok := errors.AsType[*snap.Error](err); !ok || !strings.Contains(e.Detail, "certificate") ||
		!strings.Contains(e.Hint, "SSL_CERT_FILE") || strings.Contains(e.Hint, "cloud.ca_file") {
		t.Errorf("%v, %+v", err, e)
	}
}

// A file of a folder that cannot be read is reported with the reason.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := Open(t.Context(), "file://"+dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := api.PushRequest{Target: "shop", Name: "a", Size: 1, SHA256: strings.Repeat("a", 64)}
	if err := p.store.Put(t.Context(), bytesKey(r.SHA256), strings.NewReader("a"), 1,
		"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "objects", "*", "bytes*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := errors.Join(os.Remove(files[0]), os.Symlink(files[0], files[0])); err != nil { // a loop
		t.Fatal(err)
	}
	if err := p.write(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	pull, err := p.Pull(t.Context(), idOf("shop", "a"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.HTTP().Get(pull.URL)
	if file := new(fs.PathError); !errors.As(err, &file) {
		t.Errorf("%v, %v", res, err)
	}
}

// An abandoned push does not fill the object store forever; one that may resume
// is kept.
func TestAbandonedUploadsAreDropped(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p, err := Open(t.Context(), "file://"+t.TempDir(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	pending := func(sum string) int {
		t.Helper()
		if _, err := p.Push(t.Context(), api.PushRequest{Target: "shop", Name: sum, Size: 10,
			SHA256: sum}); err != nil {
			t.Fatal(err)
		}
		all, err := p.store.ListUploads(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if _, err := p.store.Begin(t.Context(), deltaKey("cc", "aa"), 10, 10); err != nil { // a killed push of a delta
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		sum   string
		want  int
	}{{0, "aa", 2}, {6 * 24 * time.Hour, "bb", 3}, {2 * 24 * time.Hour, "bb", 1}, {0, "aa", 2}} {
		now = now.Add(step.after)
		if got := pending(step.sum); got != step.want {
			t.Errorf("after %v and a push of %s: %d uploads, want %d", step.after, step.sum, got, step.want)
		}
	}
}
