package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"snap"
	"snap/api"
)

// TestShareStopsAtCtrlC: Ctrl-C at the question about one snapshot stops the command, which does
// not share the next snapshot. After the answer no, the command shares the next snapshot.
func TestShareStopsAtCtrlC(t *testing.T) {
	t.Parallel()
	nobody, end := io.Pipe()
	t.Cleanup(func() { end.Close() })
	for name, c := range map[string]struct {
		terminal string
		in       io.Reader
		shares   int64
	}{
		"drawn": {"xterm-256color", &lines{"\x03"}, 1},
		"plain": {"dumb", nobody, 1},
		"no":    {"dumb", &lines{"n\n"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shares atomic.Int64
			server := httptest.NewServer(asksOnce(&shares))
			defer server.Close()
			env := map[string]string{"TERM": c.terminal, "SNAPCLI_CONFIG_DIR": t.TempDir(),
				"SNAPCLI_DATA_DIR": t.TempDir(), "SNAPCLI_CLOUD__URL": server.URL,
				apiKeyEnv: "cak_000000000000000000000000000000000000ab"}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var said bytes.Buffer
			shown := io.Writer(&said)
			if c.in == nobody {
				shown = asked(cancel)
			}
			stdio := IO{In: c.in, Out: io.Discard, Err: shown, InTerminal: true, OutTerminal: true, ErrTerminal: true,
				Width: func() int { return 100 }}
			code := patientMain(ctx, []string{"cloud", "snapshots", "share", "snap_0123456789abcdef",
				"snap_0123456789abcdeg"}, stdio, func(name string) string { return env[name] })
			if code != snap.ExitInterrupted || shares.Load() != c.shares {
				t.Errorf("code %d after %d requests, said %s", code, shares.Load(), said.String())
			}
		})
	}
}

// asksOnce is a service that requires a confirmation for the first share. It counts the requests to
// share.
func asksOnce(shares *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			_ = json.NewEncoder(w).Encode(api.SnapshotPage{Items: []api.Snapshot{{ID: r.FormValue("id_prefix")}}})
		case shares.Add(1) > 1:
			_ = json.NewEncoder(w).Encode(api.ShareChanges{})
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusPreconditionRequired)
			_ = json.NewEncoder(w).Encode(api.Problem{Status: http.StatusPreconditionRequired, Code: snap.CodeConfirm,
				Detail: "the snapshot is not sanitized"})
		}
	}
}
