package transfer_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"snap"
	"snap/internal/transfer"
)

// If an object store refuses a part in the middle and closes the connection with most of it unread,
// the client still gets the response.
func TestUploadHearsARefusalInTheMiddleOfAPart(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		status int
		body   string
		want   snap.Code
		tries  int32
	}{
		"a full disk":         {http.StatusInsufficientStorage, "", snap.CodeStorageFull, 1},
		"a limit of the size": {http.StatusRequestEntityTooLarge, "", snap.CodeTooLarge, 1},
		"a URL of another day": {http.StatusForbidden,
			"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", snap.CodeUnavailable, 2},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			s.partLen = 16 << 20
			file, req := writeFile(t, random(16<<20, 80))
			var tries atomic.Int32
			s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut {
					return false
				}
				tries.Add(1)
				_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				defer conn.Close() // unread bytes make this reset the connection
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
					c.status, http.StatusText(c.status), len(c.body), c.body)
				return true
			})
			_, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
			wantCode(t, err, c.want)
			if n := tries.Load(); n != c.tries {
				t.Errorf("tried %d times, want %d: %v", n, c.tries, err)
			}
		})
	}
}
