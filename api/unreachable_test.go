package api

import (
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A failure to connect names its cause: the private authority, or the proxy and its variable.
func TestWhyUnreachable(t *testing.T) {
	proxy, err := url.Parse("http://proxy.example:3128")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTPS_PROXY", proxy.String())
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	c, err := New(Options{BaseURL: server.URL, Token: StaticToken("x")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Me(t.Context())
	for _, want := range []string{"which this machine does not trust", "Acme Co"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a private authority: %v, want %q in it", err, want)
		}
	}
	plain := httptest.NewServer(nil)
	defer plain.Close()
	secure := strings.Replace(plain.URL, "http://", "https://", 1)
	c, err = New(Options{BaseURL: secure, Token: StaticToken("x")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Me(t.Context()); err == nil || !strings.Contains(err.Error(), secure+": it uses HTTP, not HTTPS") {
		t.Errorf("https:// for a service without it: %v", err)
	}
	for _, op := range []string{"dial", "proxyconnect"} {
		cause := fmt.Errorf("get: %w", &net.OpError{Op: op, Err: errors.New("connection refused")})
		why, hint := whyUnreachable(cause, proxy)
		if !strings.Contains(why, "proxy.example:3128") || !strings.Contains(hint, "HTTPS_PROXY names that proxy") {
			t.Errorf("%s: %s; %s", op, why, hint)
		}
		if why, _ := whyUnreachable(cause, nil); !strings.Contains(why, "nothing is listening") {
			t.Errorf("%s without a proxy: %s", op, why)
		}
	}
}
