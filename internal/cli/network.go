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

// patience is how long a request may take before a person sees a message, and
// before it is given up.
type patience struct {
	tell    time.Duration // without an answer: say what is waited for
	connect time.Duration
	answer  time.Duration // the whole answer of a small request
	verify  time.Duration // the same of a push's end, where the service verifies the bytes
}

// interactive is the patience of the program. The two requests of whoami, the
// refresh of the session and the question itself, end within 45 seconds.
func interactive() patience {
	return patience{tell: 3 * time.Second, connect: 10 * time.Second, answer: 20 * time.Second, verify: time.Minute}
}

// http is the client for small requests. It says what it waits for, and tells the
// log of every step.
func (a *app) http() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: a.patience.connect, KeepAlive: 30 * time.Second}).DialContext
	transport.TLSHandshakeTimeout = a.patience.connect
	if a.roots != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: a.roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Timeout: a.patience.verify, Transport: patient{a, transport}}
}

// patient bounds requests, tells a person what is waited for, and writes debug
// lines: never a header, a query or a body.
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

// watchedBody ends the watch when the answer was read.
type watchedBody struct {
	io.ReadCloser
	end func()
}

func (b *watchedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}

// watch follows the steps of one request.
type watch struct {
	a     *app
	host  string
	timer *time.Timer

	mu   sync.Mutex
	what string // the step
}

// watch begins to follow a request. When it takes long, a person on a terminal
// reads what it waits for.
func (a *app) watch(req *http.Request) *watch {
	w := &watch{a: a, host: req.URL.Host, what: "connecting to " + req.URL.Host}
	if a.io.ErrTerminal && !a.flags.quiet && !a.flags.json {
		w.timer = time.AfterFunc(a.patience.tell, func() { a.note("still waiting: %s", w.now()) })
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

// trace names the steps of a request as they begin.
func (w *watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:          func(i httptrace.DNSStartInfo) { w.step("looking up the name " + i.Host) },
		ConnectStart:      func(_, address string) { w.step("connecting to " + address) },
		TLSHandshakeStart: func() { w.step("agreeing on encryption with " + w.host) },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			w.step(w.host +
				" has the request and has not answered")
		},
		GotFirstResponseByte: func() { w.step("reading the answer of " + w.host) },
	}
}
