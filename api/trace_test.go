package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"snap/api"
)

// TestTraceParent checks that a traceparent (W3C Trace Context, section 3.2) is sent unchanged, and
// that an invalid one is not sent.
func TestTraceParent(t *testing.T) {
	t.Parallel()
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for given, want := range map[string]string{
		good: good, "": "", "x": "", good + "-x": "", "01" +
			good[2:]: "", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "", good + "\r\nX: y": "",
	} {
		sent := "nothing came"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = r.Header.Get("Traceparent")
			_, _ = w.Write([]byte(`{"items":[]}`))
		}))
		client, err := api.New(api.Options{BaseURL: server.URL, Token: api.StaticToken("x"), TraceParent: given})
		if err == nil {
			_, err = client.Snapshots(t.Context(), api.ListOptions{})
		}
		server.Close()
		if err != nil || sent != want {
			t.Errorf("%q was sent as %q, %v", given, sent, err)
		}
	}
}
