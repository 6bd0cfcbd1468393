package cli

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// timeouts holds the times that the program waits before it shows a message, or gives up.
type timeouts struct {
	notice   time.Duration // before it shows what it is waiting for
	connect  time.Duration // for a connection
	read     time.Duration // for the response to a request that only reads, before it is sent once more
	answer   time.Duration // for the whole response to a small request
	verify   time.Duration // for the response at the end of a push, while the service verifies the bytes
	complete time.Duration // for the values of a shell completion
	sweep    time.Duration // for the removal of expired clones before or after a command
	drop     time.Duration // for the removal of the database of a run
}

// sameTimeout is empty in every released program. The linker sets it in the program that the test
// scripts run, so that no command gives up because the machine is busy.
var sameTimeout string

// defaultTimeouts returns the timeouts of the program. With them, whoami ends within 45 seconds if
// the service hangs: it sends at most two requests, the session refresh and the query itself.
func defaultTimeouts() timeouts {
	if d, err := time.ParseDuration(sameTimeout); err == nil {
		return equalTimeouts(d)
	}
	return timeouts{notice: 3 * time.Second, connect: 10 * time.Second, read: 10 * time.Second,
		answer: 20 * time.Second, verify: time.Minute, complete: 2 * time.Second, sweep: 10 * time.Second,
		drop: 30 * time.Second}
}

func equalTimeouts(d time.Duration) timeouts {
	return timeouts{notice: d, connect: d, read: d, answer: d, verify: d, complete: d, sweep: d, drop: d}
}

// http returns the client for small requests. It shows what it is waiting for and logs every step.
func (a *app) http() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: a.timeouts.connect, KeepAlive: 30 * time.Second}).DialContext
	transport.TLSHandshakeTimeout = a.timeouts.connect
	if a.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: a.roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Timeout: a.timeouts.verify, Transport: timedTransport{a, transport}}
}

// timedTransport limits the duration of requests, shows what the program is waiting for, and writes
// debug lines. It never logs a query, a body or a header, except the response's request ID.
type timedTransport struct {
	a    *app
	next http.RoundTripper
}

func (p timedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	limit := p.a.timeouts.answer
	if strings.HasSuffix(req.URL.Path, "/complete") {
		limit = p.a.timeouts.verify
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	w := p.a.watch(req)
	began := p.a.now()
	line := p.a.log.With("method", req.Method, "host", req.URL.Host, "path", req.URL.Path)
	res, err := p.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, w.trace())))
	took := p.a.now().Sub(began).Round(time.Millisecond)
	if err != nil {
		line.Debug("request failed", "error", err, "step", w.current(), "took", took)
		w.end()
		cancel()
		return nil, err
	}
	line.Debug("request", "status", res.StatusCode, "id", res.Header.Get("X-Request-Id"), "took", took)
	w.step("reading the response from " + req.URL.Host)
	res.Body = &watchedBody{res.Body, func() { w.end(); cancel() }}
	return res, nil
}

// watchedBody stops the watch when the response body is closed.
type watchedBody struct {
	io.ReadCloser
	end func()
}

func (b *watchedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// watch tracks the progress of one request.
type watch struct {
	a     *app
	host  string
	timer *time.Timer

	mu   sync.Mutex
	what string // the current step
}

// watch starts to track a request. If the request takes long, watch shows on a terminal what the
// program is waiting for.
func (a *app) watch(req *http.Request) *watch {
	w := &watch{a: a, host: req.URL.Host, what: "connecting to " + req.URL.Host}
	if a.io.ErrTerminal && !a.flags.quiet && !a.flags.json {
		w.timer = time.AfterFunc(a.timeouts.notice, func() { a.note("still waiting: %s", w.current()) })
	}
	return w
}

func (w *watch) current() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.what
}

func (w *watch) step(what string) {
	w.mu.Lock()
	w.what = what
	w.mu.Unlock()
	w.a.log.Debug("step", "step", what)
}

func (w *watch) end() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// trace returns hooks that record each step of a request as it begins.
func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:          func(i httptrace.DNSStartInfo) { w.step("looking up the name " + i.Host) },
		ConnectStart:      func(_, address string) { w.step("connecting to " + address) },
		TLSHandshakeStart: func() { w.step("setting up encryption with " + w.host) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			w.step(w.host + " received the request and has not responded yet")
		},
		GotFirstResponseByte: func() { w.step("reading the response from " + w.host) },
	}
}
