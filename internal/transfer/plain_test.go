package transfer_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/transfer"
)

// elsewhere is a service that claims to have its storage at another address.
type elsewhere struct {
	*api.Client
	from, to string
}

func (e elsewhere) Parts(ctx context.Context, id string, r api.PartsRequest) (api.PartsResponse, error) {
	out, err := e.Client.Parts(ctx, id, r)
	for i := range out.URLs {
		out.URLs[i].URL = strings.Replace(out.URLs[i].URL, e.from, e.to, 1)
	}
	return out, err
}

func (e elsewhere) Pull(ctx context.Context, id string) (api.PullResponse, error) {
	out, err := e.Client.Pull(ctx, id)
	out.URL = strings.Replace(out.URL, e.from, e.to, 1)
	return out, err
}

// Bytes, and the permission in their URL, are not sent unencrypted without
// consent: an object store with plain http is refused before anything is sent.
func TestPlainStorageIsRefused(t *testing.T) {
	t.Parallel()
	const storage = "http://storage.example"
	s := newService(t)
	data := random(snapSize, 71)
	file, req := writeFile(t, data)
	o := quick()
	asked := 0
	o.Jobs = 1
	o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked++
		r.URL.Host = strings.TrimPrefix(s.public, "http://")
		return http.DefaultTransport.RoundTrip(r)
	})}
	there := elsewhere{s.client(), s.public, storage}

	_, err := transfer.Upload(t.Context(), there, file, req, o)
	wantCode(t, err, snap.CodeUsage)
	id := s.pushed(random(snapSize, 72))
	_, _, err = transfer.Download(t.Context(), there, id, target(t), o)
	wantCode(t, err, snap.CodeUsage)
	if !strings.Contains(err.Error(), storage) || asked != 0 {
		t.Errorf("%d requests, error %v; want none, and one that names %s", asked, err, storage)
	}

	o.Plain = true
	if _, err := transfer.Upload(t.Context(), there, file, req, o); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if _, _, err = transfer.Download(t.Context(), there, id, target(t), o); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

// A redirect to an object store with plain http is refused too.
func TestRedirectToPlainStorageIsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id := s.pushed(random(snapSize, 73))
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !isGet(r) {
			return false
		}
		http.Redirect(w, r, "http://storage.example/x", http.StatusTemporaryRedirect)
		return true
	})
	_, _, err := transfer.Download(t.Context(), s.client(), id, target(t), quick())
	wantCode(t, err, snap.CodeUsage)
}

// A service on another machine cannot direct a client to the client's own machine or to a
// link-local address, whether by number or by name. A service on the same machine can.
func TestStorageInsideIsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(snapSize, 74))
	id := s.pushed(random(snapSize, 75))
	o := quick()
	o.Remote = true
	_, port, _ := strings.Cut(strings.TrimPrefix(s.public, "http://"), ":")
	for _, storage := range []string{s.public, "http://localhost:" + port, "http://169.254.169.254",
		"https://[fe80::1]", "https://[fe80::1%25eth0]", "https://[::ffff:127.0.0.1]", "https://0.0.0.0"} {
		there := elsewhere{s.client(), s.public, storage}
		_, err := transfer.Upload(t.Context(), there, file, req, o)
		wantCode(t, err, snap.CodeUsage)
		_, _, err = transfer.Download(t.Context(), there, id, target(t), o)
		wantCode(t, err, snap.CodeUsage)
	}
	o.Remote = false
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil {
		t.Errorf("a service on this machine: %v", err)
	}
}

// A service on another machine cannot redirect a client to the client's own machine either.
func TestRedirectInsideIsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id := s.pushed(random(snapSize, 78))
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if isGet(r) {
			http.Redirect(w, r, s.public+r.URL.RequestURI(), http.StatusTemporaryRedirect)
		}
		return isGet(r)
	})
	o := quick()
	o.Remote, o.Plain = true, true
	o.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "storage.example" {
			t.Errorf("a request to %s", r.URL.Host)
		}
		r.URL.Host = strings.TrimPrefix(s.public, "http://")
		return http.DefaultTransport.RoundTrip(r)
	})}
	there := elsewhere{s.client(), s.public, "http://storage.example"}
	_, _, err := transfer.Download(t.Context(), there, id, target(t), o)
	wantCode(t, err, snap.CodeUsage)
}

// A name is checked by the address to which it resolves for the connection. So a
// name that resolves to an internal address is refused too.
func TestNamesThatLeadInsideAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.public, "http://"), ":")
	for _, remote := range []bool{true, false} {
		o := quick()
		o.Remote = remote
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:"+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transfer.Transport(o).RoundTrip(req)
		if err == nil {
			answer.Body.Close()
		}
		if refused := snap.CodeOf(err) == snap.CodeUsage; refused != remote {
			t.Errorf("remote %v: %v", remote, err)
		}
	}
}
