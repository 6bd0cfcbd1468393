package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// A run deletes every snapshot that the rules do not keep, in as many requests as it takes. If a
// request fails, the run lists the snapshots that the earlier requests deleted. A dry run says that
// it lists only the first ones.
func TestRetentionRunDeletesAll(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	org, err := c.Store.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	pusher, err := c.Store.CallerOfOrg(t.Context(), org.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 402 {
		id := snap.NewSnapshotID()
		u := store.Upload{ID: id, Target: "shop", Name: snap.SnapshotName("shop", time.Now()), Type: snap.TypeSnapshot,
			Engine: snap.SQLite, Size: 1, SHA256: fmt.Sprintf("%064x", i), Blob: id, BlobUpload: "u", PartSize: 1 << 24}
		if err := c.Store.BeginUpload(t.Context(), pusher, u); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Store.CompleteUpload(t.Context(), pusher, u); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := alice.SetRetention(t.Context(), api.RetentionRule{Target: "shop", KeepLast: 1}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	for _, run := range []struct {
		url, flag string
		lines     int
		note      string
		code      int
	}{
		{c.URL, "--dry-run", 200, "these are the first 200", snap.ExitOK},
		{oneBatch(t, c.URL), "--yes", 200, "not allowed", snap.ExitForbidden},
		{c.URL, "--yes", 201, "", snap.ExitOK},
		{c.URL, "--yes", 0, "nothing to delete", snap.ExitOK},
	} {
		env["SNAPCLI_CLOUD__URL"] = run.url
		var out, said bytes.Buffer
		code := patientMain(t.Context(), []string{"cloud", "retention", "run", run.flag}, IO{Out: &out, Err: &said},
			func(name string) string { return env[name] })
		lines := strings.Count(out.String(), "\n")
		if code != run.code || lines != run.lines || !strings.Contains(said.String(), run.note) {
			t.Errorf("%s: code %d, %d lines, %s", run.flag, code, lines, said.String())
		}
	}
}

// oneBatch returns the URL of a proxy to a service that refuses every run of the rules but the
// first.
func oneBatch(t *testing.T, service string) string {
	t.Helper()
	to, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/retention/run") && runs.Add(1) > 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"code": "forbidden", "detail": "this is not allowed now", "status": 403}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
