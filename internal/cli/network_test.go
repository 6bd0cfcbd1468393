package cli

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/servertest"
)

// lockedText is written by timers while a test reads it.
type lockedText struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	written chan struct{} // closed at the next write, for waiting goroutines; nil if none waits
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return l.buf.Write(p)
}

// await waits until the text contains a part, and reports false if ctx ends before.
func (l *lockedText) await(ctx context.Context, part string) bool {
	for {
		l.mu.Lock()
		if strings.Contains(l.buf.String(), part) {
			l.mu.Unlock()
			return true
		}
		if l.written == nil {
			l.written = make(chan struct{})
		}
		written := l.written
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return false
		case <-written:
		}
	}
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// withTimeouts is a run of the program on a terminal with these time limits.
func withTimeouts(errs, log *lockedText, p timeouts) *app {
	return &app{
		io: IO{Err: errs, ErrTerminal: true}, env: func(string) string { return "" }, now: time.Now,
		log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), timeouts: p,
	}
}

func (a *app) clientOf(t *testing.T, base string) *api.Client {
	t.Helper()
	c, err := api.New(api.Options{BaseURL: base, Mount: api.MountAgent, Token: api.StaticToken("x"), HTTP: a.http()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A response that is far too large for a report of health is not read to its end.
func TestHugeHealth(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"database": "%s"}`, strings.Repeat("x", 2*maxHealth))
	}))
	defer server.Close()
	a := withTimeouts(new(lockedText), new(lockedText), defaultTimeouts())
	if _, err := a.health(t.Context(), server.URL); snap.CodeOf(err) != snap.CodeUnreachable {
		t.Error(err)
	}
}

// A service that accepts the request and sends nothing is named on a terminal, with the current
// step. The debug log names every step.
func TestHangingServiceIsNamed(t *testing.T) {
	t.Parallel()
	var errs, log lockedText
	a := withTimeouts(&errs, &log, timeouts{notice: time.Millisecond, connect: time.Minute, answer: time.Minute,
		verify: time.Minute})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !errs.await(r.Context(), "still waiting") { // the notice ends the wait
			return
		}
		_, _ = w.Write([]byte(`{"organization": "acme"}`))
	}))
	defer server.Close()
	if _, err := a.clientOf(t, server.URL).Me(t.Context()); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	if text := errs.String(); !strings.Contains(text, host) {
		t.Errorf("told %q, which does not name %s", text, host)
	}
	for _, step := range []string{"connecting to " + host, host + " received the request and has not responded yet",
		"reading the response from " + host} {
		if !strings.Contains(log.String(), step) {
			t.Errorf("the debug log lacks %q:\n%s", step, log.String())
		}
	}
}

// A service that sends a byte from time to time does not delay a command beyond the limit for a
// whole response.
func TestDrippingServiceIsGivenUp(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		drip := time.NewTicker(time.Millisecond)
		defer drip.Stop()
		for {
			select {
			case <-r.Context().Done():
				return
			case <-drip.C:
			}
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer server.Close()
	var errs, log lockedText
	a := withTimeouts(&errs, &log, timeouts{notice: time.Hour, connect: time.Minute, answer: 50 * time.Millisecond,
		verify: time.Hour})
	_, err := a.clientOf(t, server.URL).Me(t.Context())
	if snap.CodeOf(err) != snap.CodeUnreachable || !strings.Contains(err.Error(), "does not answer in time") {
		t.Errorf("got %v", err)
	}
	p := defaultTimeouts()
	if whoami := 2 * p.answer; whoami > 45*time.Second || p.notice != 3*time.Second {
		t.Errorf("whoami may take %v and is explained after %v", whoami, p.notice)
	}
}

// The error for a refused key says where the key is set.
func TestRefusedKeyIsNamed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code": "unauthenticated", "detail": "no"}`))
	}))
	defer server.Close()
	for _, c := range []credential{{Source: fromEnvironment, Where: apiKeyEnv, key: "cak_x"},
		{Source: fromConfig, Where: "cloud.api_key in config.yaml", key: "cak_x"}} {
		client, err := api.New(api.Options{BaseURL: server.URL, Mount: api.MountAgent, Token: c.token()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Me(t.Context()); snap.CodeOf(err) != snap.CodeUnauthenticated ||
			!strings.Contains(err.Error(), c.Where) {
			t.Errorf("%s: %v", c.Where, err)
		}
	}
}

// A connection to an address that does not respond ends after the connect timeout.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	// On a busy machine, connecting may use up the timeout before the TLS handshake begins.
	for connect := 30 * time.Millisecond; connect < servertest.Patience; connect *= 2 {
		var errs, log lockedText
		a := withTimeouts(&errs, &log,
			timeouts{notice: time.Hour, connect: connect, answer: time.Hour, verify: time.Hour})
		_, err = a.clientOf(t, "https://"+ln.Addr().String()).Me(t.Context()) // it listens and never responds
		if snap.CodeOf(err) != snap.CodeUnreachable {
			t.Fatalf("got %v", err)
		}
		if strings.Contains(log.String(), "setting up encryption") {
			return
		}
	}
	t.Error("the debug log never has the step of setting up encryption")
}
