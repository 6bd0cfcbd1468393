package transfer_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"snap/internal/servertest"
	"snap/internal/transfer"
)

// If an object store receives some bytes of a part, or sends only the header of a response, and
// then hangs, the request is canceled and repeated.
func TestTransfersOutlastAStorageThatHangs(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	s := newService(t)
	released := make(chan struct{})
	defer close(released)
	var seen sync.Map
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut && !isGet(r) {
			return false
		}
		if _, again := seen.LoadOrStore(r.Method, true); again {
			return false
		}
		if r.Method == http.MethodPut {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
		} else {
			w.Header().Set("Content-Length", r.Header.Get("Range")[len("bytes=0-"):])
			w.WriteHeader(http.StatusPartialContent)
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-released:
		case <-r.Context().Done():
		}
		return true
	})
	data := random(snapSize, 60)
	file, req := writeFile(t, data)
	o := transfer.Impatient(quick(), 2*time.Second)
	o.Jobs = 1
	up, err := transfer.Upload(t.Context(), s.client(), file, req, o)
	if err != nil || up.Moved != req.Size {
		t.Fatalf("%+v, %v", up, err)
	}
	pulled := target(t)
	if _, _, err := transfer.Download(t.Context(), s.client(), up.ID, pulled, o); err != nil {
		t.Fatal(err)
	}
	wantFile(t, pulled, data)
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		if _, ok := seen.Load(method); !ok {
			t.Errorf("no %s hung", method)
		}
	}
}
