package cloud_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
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
