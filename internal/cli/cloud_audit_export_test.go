package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
)

// A follower writes each new line once, in order, even if the service was down in between.
func TestExportFollows(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	c := cloudtest.Start(t, cloudtest.Options{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if away.Load() && strings.HasSuffix(r.URL.Path, "/audit/records") {
				away.Store(false) // the next request finds it again
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	env := map[string]string{"SNAPCLI_CLOUD__URL": c.URL, apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- patientMain(ctx, []string{"cloud", "audit", "export", "--follow"}, IO{Out: in, Err: &said},
			func(name string) string { return env[name] })
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	var seq int64
	follow := func(until string) {
		t.Helper()
		for lines.Scan() {
			var e api.AuditEntry
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Seq != seq+1 {
				t.Fatalf("after line %d comes %s, %v", seq, lines.Text(), err)
			}
			if seq++; e.Snapshot == until && e.Action == "snapshot.pushed" {
				return
			}
		}
		t.Fatalf("it ended: %s", said.String())
	}
	for _, content := range []string{"first", "second"} {
		sn := c.Push(c.As("mia@acme.test"), "shop", []byte(content))
		follow(sn.ID)
		away.Store(true)
	}
	cancel()
	go io.Copy(io.Discard, out)
	if code := <-ended; code != snap.ExitInterrupted {
		t.Errorf("code %d: %s", code, said.String())
	}
}
