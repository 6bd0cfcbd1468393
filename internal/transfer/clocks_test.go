package transfer_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"snap"
	"snap/internal/blob"
	"snap/internal/servertest"
	"snap/internal/transfer"
)

// If the clock of a service differs by an hour from that of its object store, the
// object store refuses every URL that the service signs. The error reports this at
// once, and the push resumes when the clock is right.
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
		// The response has S3's form (Amazon S3 API reference, error responses).
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w,
			`<?xml version="1.0" encoding="UTF-8"?><Error><Code>RequestTimeTooSkewed</Code><Message>`+
				`The difference between the request time and the server's time is too large.</Message></Error>`)
		return true
	})
	o := quick()
	o.Jobs = 1
	_, err := transfer.Upload(t.Context(), s.client(), file, req, o)
	wantCode(t, err, snap.CodeUnavailable)
	_, _, pullErr := transfer.Download(t.Context(), s.client(), id, target(t), o)
	wantCode(t, pullErr, snap.CodeUnavailable)
	for _, err := range []error{err, pullErr} {
		if !strings.Contains(err.Error(), "the object store's clock differs") {
			t.Errorf("%v, want it to name the clock", err)
		}
	}
	if n := asked.Load(); n > 6 {
		t.Errorf("the object store was asked %d times", n)
	}
	s.breakBy(nil)
	if up, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil || up.Moved != req.Size {
		t.Errorf("with the clock set right: %+v, %v", up, err)
	}
}

// A real S3 server refuses signatures of a service whose clock is an hour behind its own, and accepts
// them when the clock is right.
func TestClocksOfServiceAndS3Differ(t *testing.T) {
	t.Parallel()
	s := newS3Service(t, servertest.S3(t))
	right, _ := s.opened()
	late := &late{Store: right, t: t}
	data := random(6<<20, 79)
	file, req := writeFile(t, data)
	o := quick()
	o.Jobs = 1

	s.use(late)
	_, pushErr := transfer.Upload(t.Context(), s.client(), file, req, o)
	s.use(right)
	up, err := transfer.Upload(t.Context(), s.client(), file, req, o)
	if err != nil || up.Moved != req.Size {
		t.Fatalf("with the clock set right: %+v, %v", up, err)
	}
	s.use(late)
	_, _, pullErr := transfer.Download(t.Context(), s.client(), up.ID, target(t), o)
	for _, err := range []error{pushErr, pullErr} {
		wantCode(t, err, snap.CodeUnavailable)
		if !strings.Contains(err.Error(), "the object store's clock differs") {
			t.Errorf("%v, want it to name the clock", err)
		}
	}
	s.use(right)
	path := target(t)
	if _, _, err := transfer.Download(t.Context(), s.client(), up.ID, path, o); err != nil {
		t.Fatalf("with the clock set right: %v", err)
	}
	wantFile(t, path, data)
}

// late is the store of a service whose clock is an hour behind.
type late struct {
	blob.Store
	t *testing.T
}

func (l *late) SignPart(ctx context.Context, key, upload string, p blob.Part, life time.Duration) (signed blob.Signed,
	err error) {
	l.behind(func() { signed, err = l.Store.SignPart(ctx, key, upload, p, life) })
	return signed, err
}

func (l *late) Serve(w http.ResponseWriter, r *http.Request, key, etag string) {
	answer := httptest.NewRecorder()
	l.behind(func() { l.Store.Serve(answer, r, key, etag) })
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
}

// behind calls f under the late clock. That is the clock of a synctest bubble, in
// which time only passes while all goroutines wait. f must not wait for anything.
func (l *late) behind(f func()) {
	then := time.Now().Add(-time.Hour).Round(0)
	synctest.Test(l.t, func(*testing.T) {
		<-time.After(time.Until(then))
		f()
	})
}

// Retry-After has seconds or a date (RFC 9110, 10.2.3). A date is relative to the
// response's own Date, so this machine's clock does not matter.
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
