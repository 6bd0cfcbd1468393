package transfer_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/transfer"
)

// A service whose clock is an hour away from its storage's signs URLs that the
// storage refuses, again and again. That is told as what it is, at once, and
// the push goes on when the clock is right.
func TestClocksOfServiceAndStorageDiffer(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 76)
	file, req := writeFile(t, data)
	id := s.pushed(random(snapSize, 77))
	var asked atomic.Int32
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut && !isGet(r) {
			return false
		}
		asked.Add(1)
		// As S3 says it (Amazon S3 API reference, error responses).
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the server's time is too large.</Message></Error>`)
		return true
	})
	o := quick()
	o.Jobs = 1
	_, err := transfer.Upload(t.Context(), s.client(), file, req, o)
	wantCode(t, err, snap.CodeUnavailable)
	_, _, pullErr := transfer.Download(t.Context(), s.client(), id, target(t), o)
	wantCode(t, pullErr, snap.CodeUnavailable)
	for _, err := range []error{err, pullErr} {
		if !strings.Contains(err.Error(), "clocks of the service and of its storage") {
			t.Errorf("%v, want it to name the clocks", err)
		}
	}
	if n := asked.Load(); n > 6 {
		t.Errorf("the storage was asked %d times", n)
	}
	s.breakBy(nil)
	if up, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil || up.Moved != req.Size {
		t.Errorf("with the clock set right: %+v, %v", up, err)
	}
}

// Retry-After is seconds or a date (RFC 9110, 10.2.3). A date counts from the
// answer's own, so that this machine's clock has no part in it.
func TestRetryAfterADate(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(1000, 78))
	there := time.Now().Add(-time.Hour).UTC()
	var once atomic.Bool
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || once.Swap(true) {
			return false
		}
		w.Header().Set("Date", there.Format(http.TimeFormat))
		w.Header().Set("Retry-After", there.Add(23*time.Second).Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	var waited []time.Duration
	o := quick()
	o.Wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil {
		t.Fatal(err)
	}
	if len(waited) != 1 || waited[0] != 23*time.Second {
		t.Errorf("waited %v, want 23s once", waited)
	}
}
