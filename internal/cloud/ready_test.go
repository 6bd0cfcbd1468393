package cloud_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

// A replica whose object store is down stays ready, so that people can still unshare. A replica
// whose database is down is not ready.
func TestReadinessIsTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{DataDir: dir, Clock: clock})
	s := newScene(t, c)
	ready := func(status int, database, storage string) {
		t.Helper()
		clock.Advance(time.Second)
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

// No limit applies to requests for /readyz, so they must cost little: they share one check a
// second.
func TestReadinessIsChecked(t *testing.T) {
	t.Parallel()
	var checks atomic.Int64
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			checks.Add(1)
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(storage.Close)
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, BlobURL: "s3://k:s@snapshots?endpoint=" + storage.URL})
	for range 2 {
		clock.Advance(time.Second)
		before := checks.Load()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				a, err := ask(t.Context(), http.DefaultClient, http.MethodGet, c.URL+"/readyz", "")
				if err != nil || a.status != http.StatusOK {
					t.Errorf("/readyz answers %d, %v", a.status, err)
				}
			})
		}
		all.Wait()
		if n := checks.Load() - before; n != 1 {
			t.Errorf("200 requests caused %d requests to the object store", n)
		}
	}
}

// A client that disconnects does not make the service look broken.
func TestReadinessOfAnAbortedRequest(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(time.Now())})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{ctx, t.Context()} {
		w := httptest.NewRecorder()
		c.Service.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		if w.Code != http.StatusOK {
			t.Errorf("/readyz: %d %s", w.Code, w.Body)
		}
	}
}

// The log has the reason why the folder of objects failed, and the response does not.
func TestFailureOfTheFolderIsLogged(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	c := cloudtest.Start(t, cloudtest.Options{DataDir: t.TempDir(), Log: &log})
	alice := c.As("alice@acme.test")
	pull, err := alice.Pull(t.Context(), c.Push(alice, "shop", []byte("x")).ID)
	must(t, err)
	objects := filepath.Join(c.Config.DataDir, "blobs", "objects")
	must(t, os.RemoveAll(objects))
	must(t, os.WriteFile(objects, nil, 0o600))
	if res, data := send(t, http.MethodGet, pull.URL, "", ""); res.StatusCode != http.StatusInternalServerError ||
		strings.Contains(string(data), "not a directory") || !strings.Contains(log.String(), "not a directory") {
		t.Errorf("%d %s\n%s", res.StatusCode, data, log.String())
	}
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
