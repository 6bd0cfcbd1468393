package blob

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// ranged requests ranges of an object of ten bytes.
func ranged(header string, more ...string) *httptest.ResponseRecorder {
	object := []byte("0123456789")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header["Range"] = []string{header}
	for i := 0; i+1 < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"it"`)
	http.ServeContent(w, withoutEmptySuffixes(r, int64(len(object))), "", time.Time{}, bytes.NewReader(object))
	return w
}

// RFC 9110 section 14.1.2: the last 0 bytes cannot be satisfied.
func TestTheLastZeroBytesAreNoRange(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]struct {
		status int
		body   string
	}{
		"bytes=-0":      {http.StatusRequestedRangeNotSatisfiable, ""},
		"bytes= -00 ":   {http.StatusRequestedRangeNotSatisfiable, ""},
		"bytes=-0,-0":   {http.StatusRequestedRangeNotSatisfiable, ""},
		"bytes=-0,2-3":  {http.StatusPartialContent, "23"},
		"bytes=2-3, -0": {http.StatusPartialContent, "23"},
		"bytes=-01":     {http.StatusPartialContent, "9"},
		"bytes=0-0":     {http.StatusPartialContent, "0"},
		"bytes=-10":     {http.StatusPartialContent, "0123456789"},
		"bytes=10-":     {http.StatusRequestedRangeNotSatisfiable, ""},
	} {
		w := ranged(header)
		if w.Code != want.status || want.body != "" && w.Body.String() != want.body {
			t.Errorf("%s: %d %q, want %d %q", header, w.Code, w.Body, want.status, want.body)
		}
		if span := w.Header().Get("Content-Range"); w.Code == http.StatusRequestedRangeNotSatisfiable &&
			span != "bytes */10" {
			t.Errorf("%s: Content-Range %q", header, span)
		}
	}
	if w := ranged("bytes=-0", "If-Range", `"another"`); w.Code != http.StatusOK || w.Body.Len() != 10 {
		t.Errorf("with an If-Range that does not match: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// FuzzRange checks that, for any Range header, a response with a single range has at least one byte
// and exactly the bytes that it announces.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=-0", "bytes=0-0,-0", "bytes=-00, 1-", "bytes=- 0", "bytes=-+0", "bytes=",
		"bytes=,-0", "bytes=--0", "bytes=-0-", "bytes=9-,-1", "octets=-0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		w := ranged(header)
		span := w.Header().Get("Content-Range")
		if w.Code != http.StatusPartialContent || strings.HasPrefix(w.Header().Get("Content-Type"), "multipart/") {
			return
		}
		var from, to, size int
		if n, err := fmt.Sscanf(span, "bytes %d-%d/%d", &from, &to, &size); n != 3 || err != nil || from > to ||
			to >= size ||
			w.Body.String() != "0123456789"[from:to+1] {
			t.Fatalf("%q: %q with %q", header, span, w.Body)
		}
	})
}
