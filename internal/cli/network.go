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

// patience sets how long the program waits before it shows a message, and before it gives up.
type patience struct {
	notice   time.Duration // without an answer: then show what the program is waiting for
	connect  time.Duration
	answer   time.Duration // until a small request is answered completely
	verify   time.Duration // the same at the end of a push, while the service verifies the bytes
	complete time.Duration // while a shell waits for the values of a completion
	sweep    time.Duration // for the removal of expired clones, after a command about something else
	giveBack time.Duration // until the database of a run is dropped
}

// sameLimit is empty in every released program. The linker sets it in the program that scripts of
// tests run, so that no request is slow and no work is given up because the machine is busy.
var sameLimit string

// interactive returns the time limits of the program. The two requests of whoami, the session
// refresh and the query itself, end within 45 seconds.
func interactive() patience {
	if limit, err := time.ParseDuration(sameLimit); err == nil {
		return equalLimits(limit)
	}
	return patience{notice: 3 * time.Second, connect: 10 * time.Second, answer: 20 * time.Second, verify: time.Minute,
		complete: 2 * time.Second, sweep: 10 * time.Second, giveBack: 30 * time.Second}
}

func equalLimits(d time.Duration) patience {
	return patience{notice: d, connect: d, answer: d, verify: d, complete: d, sweep: d, giveBack: d}
}

// http returns the client for small requests. It shows what it is waiting for and logs every step.
func (a *app) http() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: a.patience.connect, KeepAlive: 30 * time.Second}).DialContext
	transport.TLSHandshakeTimeout = a.patience.connect
	if a.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: a.roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Timeout: a.patience.verify, Transport: patient{a, transport}}
}

// patient limits the duration of requests, shows what the program is waiting for, and writes debug
// lines. It never logs a header, a query or a body.
type patient struct {
	a    *app
	next http.RoundTripper
}

func (p patient) RoundTrip(req *http.Request) (*http.Response, error) {
	limit := p.a.patience.answer
	if strings.HasSuffix(req.URL.Path, "/complete") {
		limit = p.a.patience.verify
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	w := p.a.watch(req)
	began := p.a.now()
	line := p.a.log.With("method", req.Method, "host", req.URL.Host, "path", req.URL.Path)
	res, err := p.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, w.trace())))
	took := p.a.now().Sub(began).Round(time.Millisecond)
	if err != nil {
		line.Debug("request failed", "error", err, "step", w.now(), "took", took)
		w.end()
		cancel()
		return nil, err
	}
	line.Debug("request", "status", res.StatusCode, "id", res.Header.Get("X-Request-Id"), "took", took)
	w.step("reading the answer of " + req.URL.Host)
	res.Body = &watchedBody{res.Body, func() { w.end(); cancel() }}
	return res, nil
}

// watchedBody stops the watch when the response body has been read.
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

// watch starts to track a request. If it takes long, it shows on a terminal what the program is
// waiting for.
func (a *app) watch(req *http.Request) *watch {
	w := &watch{a: a, host: req.URL.Host, what: "connecting to " + req.URL.Host}
	if a.io.ErrTerminal && !a.flags.quiet && !a.flags.json {
		w.timer = time.AfterFunc(a.patience.notice, func() { a.note("still waiting: %s", w.now()) })
	}
	return w
}

func (w *watch) now() string {
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
			w.step(w.host +
				" received the request and has not answered yet")
		},
		GotFirstResponseByte: func() { w.step("reading the answer of " + w.host) },
	}
}
