package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/auditlog"
)

// TestVerifyShowsBothCheckpoints: a log that was cut off is reported with the saved checkpoint and
// the new one. It is reported each time, because the saved checkpoint stays.
func TestVerifyShowsBothCheckpoints(t *testing.T) {
	t.Parallel()
	key := auditlog.NewKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	lines := []string{`{"seq":1}`, `{"seq":2}`, `{"seq":3}`}
	signed := func(n int) api.AuditCheckpoint {
		var sum auditlog.Sum
		for _, line := range lines[:n] {
			sum.Add(line)
		}
		text, err := key.Sign(auditlog.Checkpoint{Organization: "acme", Size: sum.Size(), Root: sum.Root()})
		if err != nil {
			t.Error(err)
		}
		return api.AuditCheckpoint{Checkpoint: text, Key: key.Verifier("acme")}
	}
	have := 3
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch {
		case strings.HasSuffix(r.URL.Path, "/me"):
			answer = api.Me{Organization: "acme"}
		case strings.HasSuffix(r.URL.Path, "/checkpoint"):
			answer = signed(have)
		default:
			answer = api.AuditRecords{Items: lines[:have]}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	env := map[string]string{"SNAPCLI_CLOUD__URL": server.URL, apiKeyEnv: "cak_000000000000000000000000000000000000ab",
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	verify := func(args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		code := patientMain(context.Background(), append([]string{"cloud", "audit", "--verify"}, args...),
			IO{Out: &out, Err: &errs}, func(name string) string { return env[name] })
		return out.String(), errs.String(), code
	}
	if out, errs, code := verify(); code != 0 || !strings.Contains(out, "3 lines") {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	have = 2
	for range 2 {
		out, errs, code := verify()
		if code != snap.ExitConflict || !strings.Contains(errs, "it has 2 lines, but had 3 before") {
			t.Errorf("code %d: %s", code, errs)
		}
		for _, n := range []int{2, 3} {
			if root := strings.Split(signed(n).Checkpoint, "\n")[2]; !strings.Contains(out, root) {
				t.Errorf("the checkpoint of %d lines is not shown: %s", n, out)
			}
		}
	}
	out, _, code := verify("--json")
	var v api.AuditVerdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != snap.ExitConflict || v.Sound || v.Seen == nil ||
		v.Now == nil {
		t.Errorf("code %d, %v: %s", code, err, out)
	}
	lines[1], have = `{"seq":2,"x":1}`, 3
	if _, errs, _ := verify(); !strings.Contains(errs, "its first 3 lines have changed") {
		t.Errorf("an altered line: %s", errs)
	}
}
