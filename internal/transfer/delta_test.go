package transfer_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"snap/internal/transfer"
)

// A delta is fetched from where the object store redirects to. It must have exactly the announced
// number of bytes.
func TestFetchDelta(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/delta", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345")) })
	mux.Handle("/moved", http.RedirectHandler("/delta", http.StatusTemporaryRedirect))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusTemporaryRedirect))
	mux.HandleFunc("/nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) })
	mux.Handle("/file", http.RedirectHandler("file:///etc/hostname", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		path string
		size int64
		ok   bool
	}{
		{"/delta", 5, true}, {"/moved", 5, true}, {"/moved", 4, false}, {"/delta", 6, false}, {"/round", 5, false},
		{"/nowhere", 5, false}, {"/file", 5, false}, {"/absent", 5, false},
	} {
		var got bytes.Buffer
		err := transfer.FetchDelta(t.Context(), server.URL+c.path, c.size, &got, transfer.Options{Plain: true})
		if (err == nil) != c.ok || c.ok && got.String() != "12345" {
			t.Errorf("%s of %d bytes: %q, %v", c.path, c.size, got.String(), err)
		}
		if int64(got.Len()) > c.size+1 {
			t.Errorf("%s: %d bytes were written, of %d announced", c.path, got.Len(), c.size)
		}
	}
	// A remote service cannot send a client to an address of its own machine.
	err := transfer.FetchDelta(t.Context(), server.URL+"/delta", 5, new(bytes.Buffer),
		transfer.Options{Plain: true, Remote: true})
	if err == nil {
		t.Error("a delta was fetched from this machine for a remote service")
	}
}
