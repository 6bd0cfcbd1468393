package console

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"snap"
	"snap/api"
)

// transport is the transport of an [api.Client]. It passes requests to the API in this process, on
// behalf of the browser that requested a page.
type transport struct {
	serve  func(http.ResponseWriter, *http.Request, *snap.Caller)
	page   *http.Request
	caller *snap.Caller // nil makes the API authenticate the request itself
}

// client returns a client of the API for the browser that requests a page. The client does not
// retry, because a request that fails in this process would fail again. If caller is set, the API
// does not authenticate the request again.
func (s *Server) client(r *http.Request, caller *snap.Caller) (*api.Client, error) {
	return api.New(api.Options{
		BaseURL: s.o.PublicURL, Mount: api.MountUser, Token: api.StaticToken(""),
		HTTP: &http.Client{Transport: transport{s.o.API, r, caller}},
		Wait: func(context.Context, time.Duration) error { return http.ErrHandlerTimeout },
	})
}

// RoundTrip implements [http.RoundTripper]. It copies the browser's address and some headers from
// the request for the page. The API uses them to recognize the browser and to refuse other sites.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RemoteAddr, in.Host, in.RequestURI = t.page.RemoteAddr, t.page.Host, r.URL.RequestURI()
	for _, name := range []string{"Cookie", "Origin", "Sec-Fetch-Site", "X-Forwarded-For", "User-Agent"} {
		if values := t.page.Header.Values(name); len(values) > 0 {
			in.Header[name] = values
		}
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	out := &memoryResponse{header: http.Header{}, status: http.StatusOK}
	t.serve(out, in, t.caller)
	return &http.Response{
		StatusCode: out.status, Status: http.StatusText(out.status), Header: out.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()),
	}, nil
}

// memoryResponse is a response in memory.
type memoryResponse struct {
	header http.Header
	status int
	begun  bool
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter], as do WriteHeader and Write.
func (w *memoryResponse) Header() http.Header { return w.header }

// WriteHeader keeps the first status.
func (w *memoryResponse) WriteHeader(status int) {
	if !w.begun {
		w.status, w.begun = status, true
	}
}

// Write appends to the body.
func (w *memoryResponse) Write(p []byte) (int, error) {
	w.begun = true
	return w.body.Write(p)
}
