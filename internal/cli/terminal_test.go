package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/login"
)

// onTerminal runs snapcli in this process as if a person used it on a terminal of this width.
func onTerminal(t *testing.T, width int, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	dir := t.TempDir()
	lookup := func(name string) string {
		if value, ok := env[name]; ok {
			return value
		}
		switch name {
		case "SNAPCLI_CONFIG_DIR":
			return filepath.Join(dir, "config")
		case "SNAPCLI_DATA_DIR":
			return filepath.Join(dir, "data")
		case "TERM":
			return "xterm-256color"
		}
		return ""
	}
	stdio := IO{In: strings.NewReader(""), Out: &out, Err: &errs, OutTerminal: true, ErrTerminal: true,
		Width: func() int { return width }}
	code = patientMain(context.Background(), args, stdio, lookup)
	return out.String(), errs.String(), code
}

// TestResultThatCannotBeWritten: a command whose result cannot be written fails.
func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full: ", err)
	}
	defer full.Close()
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--help"}, {"config", "schema"}} {
		var errs bytes.Buffer
		stdio := IO{In: strings.NewReader(""), Out: full, Err: &errs, Width: func() int { return 0 }}
		code := patientMain(context.Background(), args, stdio, func(string) string { return "" })
		if code == 0 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit code %d, said %q", args, code, errs.String())
		}
	}
}

// listing is a service that lists these snapshots to everyone.
func listing(t *testing.T, items ...api.Snapshot) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.SnapshotPage{Items: items})
	}))
	t.Cleanup(server.Close)
	return map[string]string{"SNAPCLI_CLOUD__URL": server.URL, apiKeyEnv: "cak_000000000000000000000000000000000000ab"}
}

// TestTerminalHasColor: a terminal gets color and a table that fits. With NO_COLOR or TERM=dumb
// there is no color.
func TestTerminalHasColor(t *testing.T) {
	t.Parallel()
	env := listing(t,
		api.Snapshot{ID: "snap_0123456789abcdef", Target: "shop", Name: "shop-20261121T011600Z",
			Type: snap.TypeSanitized,
			Size: 12_000_000, Shared: true},
		api.Snapshot{ID: "snap_1123456789abcdef", Target: "shop", Name: "shop-20261121T011500Z",
			Type: snap.TypeSnapshot,
			Size: 900})
	out, _, code := onTerminal(t, 70, env, "cloud", "snapshots")
	if code != 0 || !strings.Contains(out, "\x1b[1mID\x1b[m") || !strings.Contains(out, "\x1b[32mYes\x1b[m") {
		t.Errorf("no color, code %d: %q", code, out)
	}
	for _, off := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		for k, v := range env {
			off[k] = v
		}
		plain, errs, _ := onTerminal(t, 70, off, "cloud", "snapshots")
		if strings.Contains(plain+errs, "\x1b") {
			t.Errorf("%v: color in %q", off, plain)
		}
		for _, line := range strings.Split(plain, "\n") {
			if len([]rune(line)) > 70 {
				t.Errorf("wider than the terminal: %q", line)
			}
		}
	}
}

// TestTerminalErrors: on a terminal, an error begins with the program's name in red.
func TestTerminalErrors(t *testing.T) {
	t.Parallel()
	_, errs, code := onTerminal(t, 80, nil, "whoami")
	if code != snap.ExitUsage || !strings.HasPrefix(errs, "\x1b[31msnapcli:\x1b[m no cloud service is configured\n") {
		t.Errorf("code %d: %q", code, errs)
	}
}

// TestInterrupted: when the context ends in the middle of a request, the program prints that and
// exits 130 (SPEC: Ctrl-C).
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	env := map[string]string{"SNAPCLI_CLOUD__URL": server.URL, apiKeyEnv: "cak_000000000000000000000000000000000000ab",
		"SNAPCLI_CONFIG_DIR": t.TempDir(), "SNAPCLI_DATA_DIR": t.TempDir()}
	code := patientMain(ctx, []string{"whoami"}, IO{Out: &out, Err: &errs},
		func(name string) string { return env[name] })
	if code != snap.ExitInterrupted || errs.String() != "snapcli: interrupted\n" || out.Len() > 0 {
		t.Errorf("code %d, %q, %q", code, out.String(), errs.String())
	}
}

// TestNextOfATarget checks the suggested next step for a target with a source, and for one without.
func TestNextOfATarget(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--source": "`snapcli build shop`",
		"--destination": "`snapcli pull shop --cloud`"} {
		_, errs, code := onTerminal(t, 80, nil, "targets", "add", "shop", flag, "sqlite:///tmp/shop.db")
		if code != 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: code %d, %q", flag, code, errs)
		}
	}
}

// TestStopped checks that an interrupted command reports the state that it leaves, even if the
// underlying error says only that the context ended.
func TestStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := stopped(ctx, io.ErrUnexpectedEOF, "the load", "continue"); !errors.Is(err, io.ErrUnexpectedEOF) ||
		snap.CodeOf(err) == snap.CodeInterrupted {
		t.Errorf("before: %v", err)
	}
	cancel()
	var errs bytes.Buffer
	a := &app{io: IO{Out: io.Discard, Err: &errs}, env: func(string) string { return "" },
		log: slog.New(slog.DiscardHandler)}
	code := a.report(ctx, stopped(ctx, ctx.Err(), "the load", "run it again"))
	if want := "snapcli: the load was interrupted\n  hint: run it again\n"; code != snap.ExitInterrupted ||
		errs.String() != want {
		t.Errorf("code %d, %q", code, errs.String())
	}
}

// TestJSONErrors: with --json, an error is one object, even when the command line is invalid.
func TestJSONErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"cloud", "snapshots", "--json"}, {"cloud", "snapshots", "--json", "--nothing"},
		{"cluod", "--json"}} {
		var out, errs bytes.Buffer
		code := patientMain(context.Background(), args, IO{Out: &out, Err: &errs}, func(name string) string {
			return map[string]string{"SNAPCLI_CONFIG_DIR": t.TempDir()}[name]
		})
		var object errorObject
		if err := json.Unmarshal(errs.Bytes(), &object); err != nil || object.Error.Exit != code ||
			object.Error.Code != snap.CodeUsage || out.Len() > 0 {
			t.Errorf("%v: code %d, %v, %q", args, code, err, errs.String())
		}
	}
}

// TestListingIsOneRoundTrip: a list costs one connection and one request, with
// a key and with a login session that has not ended.
func TestListingIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	for _, credential := range []string{fromEnvironment, fromSession} {
		var connections, requests atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			_ = json.NewEncoder(w).Encode(api.SnapshotPage{Items: []api.Snapshot{{ID: "snap_0123456789abcdef"}}})
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		env := map[string]string{"SNAPCLI_CLOUD__URL": server.URL, "SNAPCLI_CONFIG_DIR": t.TempDir()}
		if credential == fromEnvironment {
			env[apiKeyEnv] = "cak_000000000000000000000000000000000000ab"
		} else {
			keepSession(t, env["SNAPCLI_CONFIG_DIR"], login.Session{CloudURL: server.URL, AccessToken: "access",
				Expiry: time.Now().Add(time.Hour)})
		}
		_, errs, code := onTerminal(t, 80, env, "cloud", "snapshots")
		if code != 0 || connections.Load() != 1 || requests.Load() != 1 {
			t.Errorf("%s: %d connections, %d requests, code %d: %s", credential, connections.Load(), requests.Load(),
				code, errs)
		}
	}
}

// keepSession writes a login session as `snapcli login` does.
func keepSession(t *testing.T, configDir string, s login.Session) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"sessions": map[string]login.Session{s.CloudURL: s}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(configDir, "credentials.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLongListsStream: a page is written before the next one is requested, and in a pipe no name is
// truncated.
func TestLongListsStream(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := api.SnapshotPage{Items: []api.Snapshot{{ID: snap.NewSnapshotID(), Name: "first"}}, NextCursor: "2"}
		if r.URL.Query().Get("cursor") == "2" {
			if !strings.Contains(out.String(), "first") {
				t.Error("the second page is asked for before the first is written")
			}
			page = api.SnapshotPage{Items: []api.Snapshot{{ID: snap.NewSnapshotID(), Name: "a much longer name"}}}
		}
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer server.Close()
	env := map[string]string{"SNAPCLI_CLOUD__URL": server.URL, apiKeyEnv: "cak_000000000000000000000000000000000000ab",
		"SNAPCLI_CONFIG_DIR": t.TempDir()}
	code := patientMain(context.Background(), []string{"cloud", "snapshots", "--all"}, IO{Out: &out, Err: io.Discard},
		func(name string) string { return env[name] })
	lines := strings.Split(out.String(), "\n")
	if code != 0 || len(lines) != 4 || !strings.Contains(lines[2], "a much longer name") {
		t.Errorf("code %d: %q", code, lines)
	}
}
