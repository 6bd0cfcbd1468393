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

// A follower writes each new line once, in order, even if the service was down while the follower
// searched for the first line, or later. While the service is down, it answers that it is
// unavailable, or ends connections without an answer.
func TestExportFollows(t *testing.T) {
	t.Parallel()
	const here, unavailable, gone = 0, 1, 2
	var state atomic.Int32
	c := cloudtest.Start(t, cloudtest.Options{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch now := state.Load(); {
			case now == here || !strings.HasSuffix(r.URL.Path, "/audit/records"):
				next.ServeHTTP(w, r)
			case now == gone:
				panic(http.ErrAbortHandler)
			default:
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
	}})
	env := map[string]string{"SNAPCLI_CLOUD__URL": c.URL, apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var said bytes.Buffer
	reports := writerFunc(func(b []byte) (int, error) {
		state.Store(here) // the service is back once the follower reported the outage
		return said.Write(b)
	})
	first := c.Push(c.As("mia@acme.test"), "shop", []byte("first"))
	state.Store(unavailable)
	ended := make(chan int, 1)
	go func() {
		ended <- patientMain(ctx, []string{"cloud", "audit", "export", "--follow", "--since", "2020-01-01"},
			IO{Out: in, Err: reports}, func(name string) string { return env[name] })
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
	follow(first.ID)
	for _, next := range []int32{unavailable, gone, here} {
		sn := c.Push(c.As("mia@acme.test"), "shop", []byte{byte(next)})
		follow(sn.ID)
		state.Store(next)
	}
	cancel()
	go io.Copy(io.Discard, out)
	if code := <-ended; code != snap.ExitInterrupted || strings.Count(said.String(), "trying again") != 3 {
		t.Errorf("code %d: %s", code, said.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// If a request fails while export searches for the first line, the export fails, even if later
// requests would succeed.
func TestExportReportsAFailedSearch(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Wrap: failOnce("/audit/records")})
	for _, content := range []string{"one", "two", "three"} {
		c.Push(c.As("mia@acme.test"), "shop", []byte(content))
	}
	env := map[string]string{"SNAPCLI_CLOUD__URL": c.URL, apiKeyEnv: c.Key("alice@acme.test"),
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	for _, want := range []int{snap.ExitInternal, snap.ExitOK} {
		var out, said bytes.Buffer
		code := patientMain(t.Context(), []string{"cloud", "audit", "export", "--since", "2020-01-01"},
			IO{Out: &out, Err: &said}, func(name string) string { return env[name] })
		if code != want || (want == snap.ExitOK) != strings.Contains(out.String(), `"seq":1,`) {
			t.Errorf("code %d, want %d: %s%s", code, want, out.String(), said.String())
		}
	}
}

// failOnce makes the first request to paths with this ending fail.
func failOnce(ending string) func(http.Handler) http.Handler {
	var failed atomic.Bool
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ending) && failed.CompareAndSwap(false, true) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusInternalServerError)
				_ = json.NewEncoder(w).Encode(api.Problem{Code: snap.CodeInternal, Detail: "broken"})
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
