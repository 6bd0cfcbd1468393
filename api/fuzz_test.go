package api_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"testing"

	"snap"
	"snap/api"
)

type answering func(*http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzAnswer checks that the client turns any response from a service, or from a proxy in front of
// it, into a result or one of the product's errors.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", []byte(`{"items":[{"id":"snap_x"}]}`))
	f.Add(404, "application/problem+json",
		[]byte(`{"code":"not_found","status":404,"detail":"x","errors":[{"field":"a"}]}`))
	f.Add(503, "text/html", []byte("<html>"))
	f.Add(302, "", []byte(""))
	f.Add(401, "application/problem+json", []byte(`{"code":5}`))
	f.Add(200, "application/json", []byte(`[]`))
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		client, err := api.New(api.Options{BaseURL: "https://cloud.example", Token: api.StaticToken("x"),
			HTTP: &http.Client{Transport: answering(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}},
					Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
			})}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Snapshots(t.Context(), api.ListOptions{})
		var known *snap.Error
		if status >= 300 && err == nil || err != nil && !errors.As(err, &known) {
			t.Fatalf("status %d, %s, %q: %v", status, kind, body, err)
		}
		if known != nil && known.Code.Info().Exit == 0 {
			t.Fatalf("status %d, %q: the error %v ends with exit code 0", status, body, err)
		}
	})
}

// FuzzBaseURL: no accepted address contains a credential, or would have one sent to it unencrypted.
func FuzzBaseURL(f *testing.F) {
	for _, seed := range []string{"https://cloud.example/", "http://127.0.0.1:8080", "http://localhost.evil.example",
		"http://[::1]", "https://u:p@x", "ftp://x", "https://x?y", "", " https://x", "http://127.0.0.1.evil.example",
		"HTTP://LOCALHOST"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		base, err := api.CheckBaseURL(raw)
		if err != nil {
			return
		}
		r, err := http.NewRequest(http.MethodGet, base+"/api/v1/me", nil)
		if err != nil {
			t.Fatalf("%q is accepted as %q: %v", raw, base, err)
		}
		host := r.URL.Hostname()
		if ip, _ := netip.ParseAddr(host); r.URL.Scheme != "https" && host != "localhost" && !ip.Unmap().IsLoopback() {
			t.Fatalf("%q is accepted as %q, unencrypted to %s", raw, base, host)
		}
		if r.URL.User != nil {
			t.Fatalf("%q is accepted with a credential in it", raw)
		}
	})
}
