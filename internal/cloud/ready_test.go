package cloud_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"snap/internal/cloudtest"
)

// A replica whose object store is down stays ready, so that people can still unshare. A replica
// whose database is down is not ready.
func TestReadinessIsTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := cloudtest.Start(t, cloudtest.Options{DataDir: dir})
	s := newScene(t, c)
	ready := func(status int, database, storage string) {
		t.Helper()
		res, data := send(t, http.MethodGet, c.URL+"/readyz", "", "")
		var said map[string]string
		must(t, json.Unmarshal(data, &said))
		if res.StatusCode != status || said["database"] != database || said["storage"] != storage {
			t.Errorf("/readyz: %d %s, want %d, database %s, storage %s", res.StatusCode, data, status, database,
				storage)
		}
	}
	ready(http.StatusOK, "ok", "ok")
	must(t, os.RemoveAll(filepath.Join(dir, "blobs")))
	ready(http.StatusOK, "ok", "unavailable")
	must(t, c.As("alice@acme.test").UnshareOrg(context.Background(), s.id, "globex"))
	must(t, c.Store.Close())
	ready(http.StatusServiceUnavailable, "unavailable", "unavailable")
}

// The log names the object store, and not the database, when S3 cannot be reached.
func TestOutageOfS3IsNamed(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := cloudtest.Start(t, cloudtest.Options{BlobURL: "s3://none?endpoint=http://127.0.0.1:1", Log: &log})
	if res, data := send(t, http.MethodGet, c.URL+"/readyz", "", ""); res.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d %s", res.StatusCode, data)
	}
	if text := log.String(); !strings.Contains(text, "what=storage error=\"the object store does not answer") ||
		strings.Contains(text, "what=database") {
		t.Error(text)
	}
}
