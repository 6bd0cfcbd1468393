package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/transfer"
)

// snapSize is the size of a few full pieces and a short one.
const snapSize = 4*testPiece + 4321

func isGet(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/bytes/") }

func target(t testing.TB) string { return filepath.Join(t.TempDir(), "pulled.snap") }

func TestDownloadFetchesTheWholeFileAndReportsProgress(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, size := range []int{1, testPiece, snapSize} {
		data := random(size, uint64(size))
		file := target(t)
		o := quick()
		var last int64
		o.Progress = func(done, total int64) {
			if last = done; total != int64(size) || done > total {
				t.Errorf("progress %d of %d", done, total)
			}
		}
		id := s.pushed(data)
		got, moved, err := transfer.Download(t.Context(), s.client(), id, file, o)
		if err != nil || moved != int64(size) || got.Snapshot.ID != id || last != int64(size) {
			t.Fatalf("%v, moved %d, progress %d: %v", got.Snapshot, moved, last, err)
		}
		wantFile(t, file, data)
		if _, moved, err = transfer.Download(t.Context(), s.client(), id, file, o); err != nil || moved != 0 {
			t.Errorf("again: moved %d, %v; want nothing moved", moved, err)
		}
	}
}

func TestDownloadResumesWhatLanded(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 10)
	id, file := s.pushed(data), target(t)
	interruptAfter(t, s, id, file, 3)
	other := transfer.InPieces(quick(), testPiece/2) // as with another value of --jobs; pieces that arrived still count
	_, moved, err := transfer.Download(t.Context(), s.client(), id, file, other)
	if err != nil || moved > 3*testPiece || moved == 0 {
		t.Fatalf("moved %d after the interruption, %v; want at most 3 of 5 pieces", moved, err)
	}
	wantFile(t, file, data)
}

// interruptAfter pulls until n requests have been answered, and then stops as if killed.
func interruptAfter(t *testing.T, s *service, id, file string, n int32) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	var served atomic.Int32
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if isGet(r) && served.Add(1) > n {
			kill()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	defer s.breakBy(nil)
	o := quick()
	o.Jobs = 1
	_, _, err := transfer.Download(ctx, s.client(), id, file, o)
	wantCode(t, err, snap.CodeInterrupted)
}

// Bytes that an earlier process left are always verified.
func TestDownloadFetchesAgainWhatChangedOnTheDisk(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 11)
	id, file := s.pushed(data), target(t)
	interruptAfter(t, s, id, file, 3)
	flip(t, file+".part", 1000)
	if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err != nil {
		t.Fatal(err)
	}
	wantFile(t, file, data)
}

// After a crash, the journal can list any number of pieces whose bytes never reached the disk.
func TestDownloadFetchesAgainAllThatACrashLost(t *testing.T) {
	t.Parallel()
	const pieces, size = 300, 1000
	s := newService(t)
	data := random(pieces*size, 21)
	id, file := s.pushed(data), target(t)
	journal := fmt.Sprintf(`{"sha256":%q,"size":%d,"piece":%d}`+"\n", sumOf(data), len(data), size)
	for n := range pieces {
		journal += fmt.Sprintf(`{"n":%d,"crc":1}`+"\n", n)
	}
	err := errors.Join(os.WriteFile(file+".part", make([]byte, len(data)), 0o600),
		os.WriteFile(file+".part.journal", []byte(journal), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	_, moved, err := transfer.Download(t.Context(), s.client(), id, file, transfer.InPieces(quick(), size))
	if err != nil || moved != int64(len(data)) {
		t.Fatalf("moved %d: %v", moved, err)
	}
	wantFile(t, file, data)
}

// A journal that a crash truncated, or that belongs to another snapshot, does no harm.
func TestDownloadSurvivesADamagedJournal(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(journal string) error{
		"torn line":   func(j string) error { return appendTo(j, `{"n":4,"cr`) },
		"wrong piece": func(j string) error { return appendTo(j, `{"n":4000000,"crc":1}`+"\n") },
		"wrong sum":   func(j string) error { return appendTo(j, `{"n":4,"crc":1}`+"\n") },
		"empty":       func(j string) error { return os.Truncate(j, 0) },
		"missing":     os.Remove,
		"alone":       func(j string) error { return os.Remove(strings.TrimSuffix(j, ".journal")) },
		"of another": func(j string) error {
			return os.WriteFile(j,
				[]byte(`{"sha256":"x","size":1,"piece":1}`+"\n"), 0o600)
		},
		"tiny pieces":   func(j string) error { return inPieces(j, "1") },
		"huge pieces":   func(j string) error { return inPieces(j, "1000000000000") },
		"not a journal": func(j string) error { return os.WriteFile(j, random(5000, 1), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			data := random(snapSize, 12)
			id, file := s.pushed(data), target(t)
			interruptAfter(t, s, id, file, 2)
			if err := damage(file + ".part.journal"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err != nil {
				t.Fatal(err)
			}
			wantFile(t, file, data)
		})
	}
}

// inPieces changes the size of the pieces in a journal.
func inPieces(journal, size string) error {
	text, err := os.ReadFile(journal)
	text = regexp.MustCompile(`"piece":\d+`).ReplaceAll(text, []byte(`"piece":`+size))
	return errors.Join(err, os.WriteFile(journal, text, 0o600))
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func TestDownloadOutlastsPassingFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w http.ResponseWriter){
		"a connection that is reset": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"an internal error":          func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"too many requests":          func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"an answer that breaks off": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("x"))
			panic(http.ErrAbortHandler)
		},
		"another range than asked for": func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 7-99/100")
			w.WriteHeader(http.StatusPartialContent)
		},
		"a changed object":            func(w http.ResponseWriter) { w.WriteHeader(http.StatusPreconditionFailed) },
		"a response that is not HTTP": answerNonsense,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			data := random(snapSize, 13)
			id, file := s.pushed(data), target(t)
			var seen sync.Map
			s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
				if _, again := seen.LoadOrStore(r.Header.Get("Range"), true); again || !isGet(r) {
					return false
				}
				fault(w)
				return true
			})
			if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err != nil {
				// The checksum of the whole file reveals the wrong byte of the answer that breaks
				// off. The other faults are visible in the response.
				t.Fatal(err)
			}
			wantFile(t, file, data)
		})
	}
}

// If a URL expires during the download, a new one is requested once for all
// connections.
func TestDownloadAsksForAnotherURLWhenItExpires(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 14)
	id, file := s.pushed(data), target(t)
	var served atomic.Int32
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if isGet(r) && served.Add(1) == 2 {
			s.mu.Lock()
			s.serial++ // every URL issued so far has expired
			s.mu.Unlock()
		}
		return false
	})
	if _, _, err := transfer.Download(t.Context(), s.client(), id, file, quick()); err != nil {
		t.Fatal(err)
	}
	wantFile(t, file, data)
	if s.pulls != 2 {
		t.Errorf("%d URLs were requested, want 2", s.pulls)
	}
}

// undescribed is a service whose descriptions of snapshots are empty.
type undescribed struct{ transfer.Service }

func (undescribed) Pull(context.Context, string) (api.PullResponse, error) {
	return api.PullResponse{}, nil
}

// A description that is not valid can also come from a storage profile.
func TestDownloadNeedsASizeAndAHash(t *testing.T) {
	t.Parallel()
	_, _, err := transfer.Download(t.Context(), undescribed{}, "a", filepath.Join(t.TempDir(), "a"), quick())
	wantCode(t, err, snap.CodeInternal)
	if e, ok := errors.AsType[*snap.Error](err); !ok || strings.Contains(e.Detail, "service") ||
		!strings.Contains(e.Hint, "storage profile") {
		t.Errorf("%+v", e)
	}
}

// SPEC 5.3: an unshared snapshot behaves as if it did not exist, even in the middle of a download. No
// bytes of it remain.
func TestDownloadStopsWhenTheRightEnds(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, file := s.pushed(random(snapSize, 15)), target(t)
	var served atomic.Int32
	s.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if isGet(r) && served.Add(1) == 3 {
			s.mu.Lock()
			s.gone = true
			s.mu.Unlock()
		}
		return false
	})
	_, _, err := transfer.Download(t.Context(), s.client(), id, file, quick())
	if !errors.Is(err, snap.ErrNotFound) {
		t.Fatalf("error %v, want not found", err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// A byte that changes in transit is detected and fetched again.
func TestDownloadFetchesWrongBytesAgain(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 16)
	id, file := s.pushed(data), target(t)
	var once sync.Once
	s.breakBy(func(w http.ResponseWriter, r *http.Request) (broken bool) {
		if isGet(r) {
			once.Do(func() { broken = true; s.serveWrong(w, r) })
		}
		return broken
	})
	_, moved, err := transfer.Download(t.Context(), s.client(), id, file, quick())
	if err != nil || moved != 2*snapSize {
		t.Fatalf("moved %d, %v; want everything twice", moved, err)
	}
	wantFile(t, file, data)
}

// A byte that is wrong in the object store is reported, and no file remains that could
// be mistaken for a snapshot.
func TestDownloadReportsWhatIsCorrupt(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, file := s.pushed(random(snapSize, 17)), target(t)
	objects, err := filepath.Glob(filepath.Join(s.dir, "objects", "*", "*"))
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v, %v", objects, err)
	}
	flip(t, objects[0], snapSize-1)
	_, _, err = transfer.Download(t.Context(), s.client(), id, file, quick())
	wantCode(t, err, snap.CodeCorrupt)
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestTwoDownloadsAtOnceDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 18)
	id, file := s.pushed(data), target(t)
	var both sync.WaitGroup
	var total atomic.Int64
	for range 2 {
		both.Go(func() {
			_, moved, err := transfer.Download(t.Context(), s.client(), id, file, quick())
			total.Add(moved)
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	wantFile(t, file, data)
	if total.Load() != snapSize {
		t.Errorf("%d bytes moved, want %d: the second uses what the first fetched", total.Load(), snapSize)
	}
}

func TestDownloadKeepsAnotherFileOfTheName(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, file := s.pushed(random(1000, 19)), target(t)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := transfer.Download(t.Context(), s.client(), id, file, quick())
	wantCode(t, err, snap.CodeConflict)
	if kept, _ := os.ReadFile(file); string(kept) != "mine" {
		t.Error("the file was changed")
	}
}

// A URL may redirect to another host, as the service does with S3. The request to that host has no
// credentials and no Referer.
func TestDownloadFollowsARedirectWithNothingButTheRange(t *testing.T) {
	t.Parallel()
	s, elsewhere := newService(t), newService(t)
	data := random(snapSize, 20)
	id, file := s.pushed(data), target(t)
	there := elsewhere.pushed(data)
	got, err := elsewhere.client().Pull(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	var conditions []string
	elsewhere.breakBy(func(_ http.ResponseWriter, r *http.Request) bool {
		conditions = append(conditions, r.Header.Get("If-Match"))
		for _, name := range []string{"Authorization", "X-Api-Key", "Referer"} {
			if r.Header.Get(name) != "" {
				t.Errorf("%s was sent to the other host", name)
			}
		}
		return false
	})
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		first := r.Header.Get("Range") == fmt.Sprintf("bytes=0-%d", testPiece-1) // has this host's ETag
		if isGet(r) && !first {
			http.Redirect(w, r, got.URL, http.StatusTemporaryRedirect)
		}
		return isGet(r) && !first
	})
	o := quick()
	o.Jobs = 1
	if _, _, err := transfer.Download(t.Context(), s.client(), id, file, o); err != nil {
		t.Fatal(err)
	}
	wantFile(t, file, data)
	if len(conditions) < 2 || conditions[0] != "" || conditions[1] == "" {
		t.Errorf("If-Match at the other host: %q, want none in the first request only", conditions)
	}
}

func TestDownloadDoesNotFollowWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id, file := s.pushed(random(1000, 21)), target(t)
	s.breakBy(func(w http.ResponseWriter, r *http.Request) bool {
		if isGet(r) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}
		return isGet(r)
	})
	_, _, err := transfer.Download(t.Context(), s.client(), id, file, quick())
	wantCode(t, err, snap.CodeUnavailable)
}

// lyingService describes snapshots incorrectly.
type lyingService struct{ transfer.Service }

func (lyingService) Pull(context.Context, string) (api.PullResponse, error) {
	return api.PullResponse{Snapshot: api.Snapshot{Size: -1}}, nil
}

func TestDownloadRefusesNonsense(t *testing.T) {
	t.Parallel()
	_, _, err := transfer.Download(t.Context(), lyingService{}, "snap_x", target(t), quick())
	wantCode(t, err, snap.CodeInternal)
}

// serveWrong serves a range with one byte changed.
func (s *service) serveWrong(w http.ResponseWriter, r *http.Request) {
	flipped := &flipper{ResponseWriter: w}
	store, _ := s.opened()
	store.Serve(flipped, r, r.URL.Path[len("/bytes/"):strings.LastIndex(r.URL.Path, "/")], "etag")
}

type flipper struct {
	http.ResponseWriter
	done bool
}

func (f *flipper) Write(p []byte) (int, error) {
	if !f.done && len(p) > 10 {
		f.done = true
		p = append([]byte(nil), p...)
		p[7] ^= 1
	}
	return f.ResponseWriter.Write(p)
}
