package signin

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// A request that its client canceled is not reported as a failure of the database.
func TestFaultOfCanceledRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/auth/account", nil)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := &Service{log: slog.New(slog.NewTextHandler(&log, nil))}
	known := s.fault(r, ctx.Err())
	if text := known.Error() + log.String(); strings.Contains(text, "database") || !strings.Contains(text, "canceled") {
		t.Errorf("the error and the log: %s", text)
	}
}
