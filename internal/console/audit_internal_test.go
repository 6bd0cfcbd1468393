package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"snap"
)

// A verification that runs out of time names the command that has no time limit.
func TestVerificationOutOfTime(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, Prefix+"/audit", nil)
	s := &Server{o: Options{PublicURL: "http://127.0.0.1",
		API: func(w http.ResponseWriter, r *http.Request, _ *snap.Caller) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		}}}
	client, err := s.client(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.verifyAudit(&visit{r: r, api: client})
	if known := (*snap.Error)(nil); !errors.As(err, &known) || known.Code != snap.CodeUnavailable ||
		!strings.Contains(known.Hint, "snapcli cloud audit --verify") {
		t.Errorf("%v", err)
	}
}
