package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// A run deletes every snapshot that the rules do not keep, in as many requests as it takes. A dry
// run says that it lists only the first ones.
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
	for i := range 202 {
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
	env := map[string]string{"SNAPCLI_CLOUD__URL": c.URL, apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	for _, run := range []struct {
		flag  string
		lines int
		note  string
	}{{"--dry-run", 200, "these are the first 200"}, {"--yes", 201, ""}, {"--yes", 0, "nothing to delete"}} {
		var out, said bytes.Buffer
		code := patientMain(t.Context(), []string{"cloud", "retention", "run", run.flag}, IO{Out: &out, Err: &said},
			func(name string) string { return env[name] })
		lines := strings.Count(out.String(), "\n")
		if code != snap.ExitOK || lines != run.lines || !strings.Contains(said.String(), run.note) {
			t.Errorf("%s: code %d, %d lines, %s", run.flag, code, lines, said.String())
		}
	}
}
