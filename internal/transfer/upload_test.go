package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/transfer"
)

func TestUploadSendsTheWholeFileAndReportsProgress(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(5<<20+77, 1)
	file, req := writeFile(t, data)
	o := quick()
	var last int64
	o.Progress = func(done, total int64) {
		if last = done; total != req.Size || done > total {
			t.Errorf("progress %d of %d", done, total)
		}
	}
	up, err := transfer.Upload(t.Context(), s.client(), file, req, o)
	if err != nil || up.Moved != req.Size || up.Exists {
		t.Fatalf("%+v, %v; want all bytes moved", up, err)
	}
	if last != req.Size {
		t.Errorf("the last progress is %d, want %d", last, req.Size)
	}
	if ids := s.listed(); len(ids) != 1 || ids[0] != up.ID {
		t.Errorf("listed %v, want %s", ids, up.ID)
	}
}

// A push that the service refuses reports no progress.
func TestRefusedUploadReportsNoProgress(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(1<<20, 9))
	s.breakBy(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	o := quick()
	o.Progress = func(done, _ int64) {
		if done > 0 {
			t.Errorf("progress: %d bytes", done)
		}
	}
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, o); err == nil {
		t.Error("the push succeeded")
	}
}

// An unchanged snapshot moves no bytes, and the result reports that.
func TestUploadAgainMovesNothing(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(3<<20, 2))
	first, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	if err != nil {
		t.Fatal(err)
	}
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			t.Error("bytes were sent again")
		}
		return false
	})
	again, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	if err != nil || again.ID != first.ID || again.Moved != 0 || !again.Exists {
		t.Fatalf("%+v, %v; want it to exist and nothing moved", again, err)
	}
}

// A killed process is simulated by a context that ends. The next process continues from the parts
// that the service has.
func TestUploadResumesFromWhatArrived(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(8<<20, 3)
	file, req := writeFile(t, data)
	ctx, kill := context.WithCancel(t.Context())
	var arrived atomic.Int32
	landed := make(chan struct{})
	once := sync.OnceFunc(func() { close(landed) })
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		if arrived.Add(1) > 3 {
			<-landed // otherwise no part may have arrived before the kill
			kill()
			panic(http.ErrAbortHandler)
		}
		s.pass(w, r)
		once()
		return true
	})
	_, err := transfer.Upload(ctx, s.client(), file, req, quick())
	wantCode(t, err, snap.CodeInterrupted)
	s.breakBy(nil)
	s.restart()
	up, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	if err != nil {
		t.Fatal(err)
	}
	if up.Moved > 7<<20 || up.Moved == 0 {
		t.Errorf("%d bytes were sent after the interruption, want at most 7 of 8 MiB", up.Moved)
	}
	s.listed()
}

func TestUploadOutlastsPassingFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]func(w http.ResponseWriter){
		"a connection that is reset":  func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"an internal error":           func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"a service that is not there": func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"too many requests":           func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"a URL that has expired":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) },
		"a part that is damaged":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnprocessableEntity) },
		"a response that is not HTTP": answerNonsense,
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			file, req := writeFile(t, random(6<<20, 4))
			var seen sync.Map
			s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPut {
					return false
				}
				body, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
				if _, again := seen.LoadOrStore(string(body), true); again {
					r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))
					return false
				}
				fault(w)
				return true
			})
			up, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
			if err != nil || up.Moved != req.Size {
				t.Fatalf("%+v, %v", up, err)
			}
			s.listed()
		})
	}
}

// A part has arrived once the response says so, even if the response breaks off after its header.
func TestUploadSendsNoPartTwice(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(3<<20, 22))
	var sent atomic.Int32
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		sent.Add(1)
		answer := httptest.NewRecorder()
		s.pass(answer, r)
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(answer.Code)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	up, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	if err != nil || up.Moved != req.Size || sent.Load() != 3 {
		t.Fatalf("%+v, %d parts sent, want 3: %v", up, sent.Load(), err)
	}
	s.listed()
}

func TestUploadWaitsForRetryAfter(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(1000, 5))
	var once sync.Once
	s.breakBy(func(w http.ResponseWriter, r *http.Request) (broken bool) {
		if r.Method == http.MethodPut {
			once.Do(func() {
				broken = true
				w.Header().Set("Retry-After", "17")
				w.WriteHeader(http.StatusServiceUnavailable)
			})
		}
		return broken
	})
	o := quick()
	var waited []time.Duration
	o.Wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil {
		t.Fatal(err)
	}
	if len(waited) != 1 || waited[0] != 17*time.Second {
		t.Errorf("waited %v, want 17s once", waited)
	}
}

func TestUploadGivesUpOnWhatDoesNotPass(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]snap.Code{
		http.StatusInsufficientStorage:   snap.CodeStorageFull,
		http.StatusRequestEntityTooLarge: snap.CodeTooLarge,
		http.StatusBadGateway:            snap.CodeUnavailable,
		http.StatusForbidden:             snap.CodeUnavailable,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			file, req := writeFile(t, random(1000, 6))
			s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut {
					w.WriteHeader(status)
				}
				return r.Method == http.MethodPut
			})
			_, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
			wantCode(t, err, code)
			if strings.Contains(err.Error(), blob.PartsPath) {
				t.Errorf("the error contains the presigned URL: %v", err)
			}
			if e, ok := errors.AsType[*snap.Error](err); !ok || strings.Contains(e.Detail+e.Hint, "service") {
				t.Errorf("the error of the object store speaks of a service: %v, %s", err, e.Hint)
			}
			if len(s.listed()) != 0 {
				t.Error("an incomplete push is listed")
			}
		})
	}
}

// A snapshot that has changed on the disk since it was created is never listed,
// even if the object store cannot verify the whole file.
func TestUploadRefusesADamagedFile(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(3<<20, 7)
	file, req := writeFile(t, data)
	data[1<<20] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	wantCode(t, err, snap.CodeCorrupt)
	_, err = transfer.Upload(t.Context(), s.client(), file+"x", req, quick())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	req.Size--
	_, err = transfer.Upload(t.Context(), s.client(), file, req, quick())
	wantCode(t, err, snap.CodeCorrupt)
	if len(s.listed()) != 0 {
		t.Error("a damaged snapshot is listed")
	}
}

// The service's own disk may lose confirmed parts. The client sends the changed parts again.
func TestUploadSendsAgainWhatTheServiceLost(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(4<<20, 8))
	var once sync.Once
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/complete") {
			once.Do(func() { s.damageUploads(); s.restart() })
		}
		return false
	})
	up, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	if err != nil || up.Moved != 5<<20 {
		t.Fatalf("%+v, %v; want 4 MiB and one part again", up, err)
	}
	s.listed()
}

// The service's own error is reported if the bytes never have the announced checksum.
func TestUploadReportsChecksumsThatNeverMatch(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(1000, 9))
	rounds := 0
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/complete") {
			return false
		}
		rounds++
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"code":"checksum_mismatch","detail":"the bytes differ","hint":"check the file"}`)
		return true
	})
	_, err := transfer.Upload(t.Context(), s.client(), file, req, quick())
	wantCode(t, err, snap.CodeChecksumMismatch)
	if !strings.Contains(err.Error(), "the bytes differ") || rounds != 3 {
		t.Errorf("%v after %d rounds", err, rounds)
	}
}

// If the service has removed an upload, it is started again.
func TestUploadBeginsAgainWhenItWasCollected(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(4<<20, 9))
	var puts atomic.Int32
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && puts.Add(1) == 3 {
			s.mu.Lock()
			defer s.mu.Unlock()
			for id, p := range s.pushes {
				if err := s.store.Abort(r.Context(), id, p.upload); err != nil {
					t.Error(err)
				}
				delete(s.pushes, id)
			}
		}
		return false
	})
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, quick()); err != nil {
		t.Fatal(err)
	}
	if len(s.listed()) != 1 {
		t.Error("the snapshot is not listed")
	}
}

// Several pushes of the same snapshot at the same time all succeed, and it is listed once.
func TestTwoUploadsAtOnceDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s := newService(t)
	file, req := writeFile(t, random(16<<20, 10))
	var both sync.WaitGroup
	for range 3 {
		both.Go(func() {
			if _, err := transfer.Upload(t.Context(), s.client(), file, req, transfer.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if len(s.listed()) != 1 {
		t.Error("the snapshot is not listed once")
	}
}

// A client with many connections requests the URLs of at most 100 parts at once, because the
// service signs no more.
func TestUploadWithManyConnections(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.partLen = 1 << 10
	file, req := writeFile(t, random(600<<10, 11))
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/parts") {
			var ask api.PartsRequest
			text, err := io.ReadAll(r.Body)
			if err = errors.Join(err, json.Unmarshal(text, &ask)); err != nil || len(ask.Parts) > 100 {
				t.Errorf("URLs for %d parts were requested at once: %v", len(ask.Parts), err)
			}
			r.Body = io.NopCloser(bytes.NewReader(text))
		}
		return false
	})
	o := quick()
	o.Jobs = 100
	if _, err := transfer.Upload(t.Context(), s.client(), file, req, o); err != nil {
		t.Fatal(err)
	}
	s.listed()
}

// A certificate that is not trusted does not become trusted by trying again.
func TestUploadToAnObjectStoreThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := newService(t)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	folder, err := blob.OpenFolder(s.dir, untrusted.URL, testSecret, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.use(folder)
	file, req := writeFile(t, random(1000, 12))
	o := quick()
	o.Wait = func(context.Context, time.Duration) error { t.Error("it was tried again"); return nil }
	_, err = transfer.Upload(t.Context(), s.client(), file, req, o)
	wantCode(t, err, snap.CodeUnreachable)
	if !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), blob.PartsPath) {
		t.Errorf("error %v, want one about the certificate and without the presigned URL", err)
	}
}
