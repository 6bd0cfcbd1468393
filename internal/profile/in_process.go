package profile

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// inProcess is the base URL of requests that this process handles itself. No name below .invalid
// exists (RFC 2606).
const inProcess = "http://profile.invalid"

// newClient returns a client that sends requests for inProcess to the handler and all others to the
// network.
func newClient(inside http.Handler) *http.Client {
	outside := http.DefaultTransport.(*http.Transport).Clone()
	outside.MaxIdleConnsPerHost = 16
	outside.DisableCompression = true
	return &http.Client{Transport: roundTripper{inside: inside, outside: outside}}
}

type roundTripper struct {
	inside  http.Handler
	outside http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme+"://"+r.URL.Host != inProcess {
		return t.outside.RoundTrip(r)
	}
	read, write := io.Pipe()
	w := &responseWriter{header: http.Header{}, body: write, ready: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), writerKey{}, w))
	inner := r.Clone(ctx)
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	stop := context.AfterFunc(r.Context(), func() { read.CloseWithError(context.Cause(r.Context())) })
	go func() {
		defer cancel()
		defer stop()
		defer inner.Body.Close()
		t.inside.ServeHTTP(w, inner)
		w.WriteHeader(http.StatusOK)
		_ = write.Close() // it cannot fail
	}()
	select {
	case <-w.ready:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	if w.failed != nil {
		_ = read.Close() // so that the handler does not wait for a reader
		return nil, w.failed
	}
	return w.response(r, read), nil
}

// responseWriter is the http.ResponseWriter for the handler in this process. The client reads the
// body from a pipe.
type responseWriter struct {
	header http.Header
	body   *io.PipeWriter
	once   sync.Once
	status int
	sent   http.Header
	failed error // given to the client instead of the response
	ready  chan struct{}
}

type writerKey struct{}

// fail gives the client an unexpected error of the folder, which the response does not describe.
func fail(ctx context.Context, err error) {
	if w, ok := ctx.Value(writerKey{}).(*responseWriter); ok {
		w.failed = err
	}
}

func (w *responseWriter) Header() http.Header { return w.header }

func (w *responseWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.ready)
	})
}

func (w *responseWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *responseWriter) response(r *http.Request, body io.ReadCloser) *http.Response {
	length, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.sent, ContentLength: length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: body, Request: r,
	}
}
