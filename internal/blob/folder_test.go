package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/blob"
)

// house is a folder store that can be opened again, as another process would do.
type house struct {
	site
	t      *testing.T
	dir    string
	now    time.Time
	server *httptest.Server
	folder *blob.Folder
}

func newHouse(t *testing.T) *house {
	h := &house{t: t, dir: t.TempDir(), now: time.Now()}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key, ok := strings.CutPrefix(r.URL.Path, "/get/"); ok {
			h.folder.Serve(w, r, key, "the-etag")
			return
		}
		h.folder.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(h.server.Close)
	h.open()
	return h
}

func (h *house) open() {
	folder, err := blob.OpenFolder(h.dir, h.server.URL, []byte("0123456789abcdef"), func() time.Time { return h.now })
	mustBe(h.t, err, nil)
	h.folder = folder
	h.site = site{Store: folder, get: h.server.URL + "/get/"}
}

// damage flips a byte of the one file that matches.
func (h *house) damage(pattern string, at int64) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, pattern))
	if err != nil || len(files) != 1 {
		h.t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	mustBe(h.t, err, nil)
	defer f.Close()
	one := make([]byte, 1)
	_, err = f.ReadAt(one, at)
	mustBe(h.t, err, nil)
	_, err = f.WriteAt([]byte{one[0] ^ 1}, at)
	mustBe(h.t, err, nil)
}

// A folder that cannot be created is a mistake in the configuration, not a snapshot that is absent.
func TestFolderThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(file, "blobs"), "/proc/absent/blobs"} {
		_, err := blob.OpenFolder(dir, "http://127.0.0.1", make([]byte, 32), time.Now)
		if snap.CodeOf(err) != snap.CodeUsage || errors.Is(err, snap.ErrNotFound) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// The error for a part that does not exist names its size only if the request has one.
func TestFolderHasNoSuchPart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := begin(t, h.site, "k", random(partSize))
	for want, p := range map[string]blob.Part{
		"the upload has no part 2":            {Number: 2},
		"the upload has no part 1 of 5 bytes": {Number: 1, Size: 5},
	} {
		if _, err := h.SignPart(t.Context(), "k", id, p, time.Hour); snap.CodeOf(err) != snap.CodeInvalid ||
			err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFolderGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(3*partSize - 1)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	h.put(t, "k", id, data, 3)
	h.open()
	parts, err := h.Parts(t.Context(), "k", id)
	if err != nil || len(parts) != 2 || parts[0] != partOf(data, 1) || parts[1] != partOf(data, 3) {
		t.Fatalf("Parts = %v, %v", parts, err)
	}
	h.put(t, "k", id, data, 2)
	h.open()
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
	h.open()
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
	if got := h.read(t, "k", "", http.StatusOK); !bytes.Equal(got, data) {
		t.Error("the object differs from the uploaded data")
	}
	left, err := os.ReadDir(filepath.Join(h.dir, "uploads"))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// A part that an earlier process confirmed counts as missing if a power cut removed
// it or the disk changed it.
func TestFolderDoesNotTrustWhatAnEarlierProcessLeft(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(2 * partSize)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	h.put(t, "k", id, data, 2)
	h.damage("uploads/*/data", partSize+100)
	h.open()
	parts, err := h.Parts(t.Context(), "k", id)
	if err != nil || len(parts) != 1 || parts[0].Number != 1 {
		t.Fatalf("Parts = %v, %v; want the first", parts, err)
	}
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)),
		&snap.Error{Code: snap.CodeUploadIncomplete})
	h.put(t, "k", id, data, 2)
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
}

// Requests do not wait until a large upload of an earlier process has been hashed again. A part
// that is not hashed yet counts as present, and Complete verifies it.
func TestFolderListsALargeUploadWithoutReadingItFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(2 * partSize)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	h.put(t, "k", id, data, 2)
	h.damage("uploads/*/data", partSize+100)
	h.open()
	release := blob.HoldFolder(h.Store, id)
	if parts, err := h.Parts(t.Context(), "k", id); err != nil || len(parts) != 2 {
		t.Fatalf("Parts = %v, %v; want both", parts, err)
	}
	release()
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)),
		&snap.Error{Code: snap.CodeUploadIncomplete})
	if parts, err := h.Parts(t.Context(), "k", id); err != nil || len(parts) != 1 || parts[0].Number != 1 {
		t.Fatalf("Parts = %v, %v; want the first", parts, err)
	}
	h.put(t, "k", id, data, 2)
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
}

// Complete finds a byte that changed on the disk before it was hashed, even if this process
// confirmed every part.
func TestFolderVerifiesTheWhole(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(3 * partSize)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 2)
	h.put(t, "k", id, data, 3)
	h.damage("uploads/*/data", 2*partSize+5)
	h.put(t, "k", id, data, 1)
	mismatch := &snap.Error{Code: snap.CodeChecksumMismatch}
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), mismatch)
	if parts, err := h.Parts(t.Context(), "k", id); err != nil || len(parts) != 2 {
		t.Errorf("Parts = %v, %v; want all but the one that changed", parts, err)
	}
	h.put(t, "k", id, data, 3)
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(random(7))), mismatch)
	if parts, err := h.Parts(t.Context(), "k", id); err != nil || len(parts) != 0 {
		t.Errorf("Parts = %v, %v; want none: the announced checksum is of other bytes", parts, err)
	}
	if _, err := h.Stat(t.Context(), "k"); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("an object that was not verified is visible: %v", err)
	}
}

// A process can be killed between any two steps of Complete.
func TestFolderCompletesAfterACrashInTheMiddle(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(1000)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	mustBe(t, h.Complete(t.Context(), "k", id, 1000, sum(data)), nil)
	// A crash after the rename leaves the upload without its data.
	dir := filepath.Join(h.dir, "uploads", id)
	mustBe(t, os.Mkdir(dir, 0o700), nil)
	mustBe(t, os.WriteFile(filepath.Join(dir, "head"),
		[]byte(`{"key":"k","size":1000,"part_size":5242880}`), 0o600), nil)
	mustBe(t, os.WriteFile(filepath.Join(dir, "journal"), nil, 0o600), nil)
	h.open()
	mustBe(t, h.Complete(t.Context(), "k", id, 1000, sum(data)), nil)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the remains of the upload were not removed: %v", err)
	}
}

func TestFolderPassesOverATornJournal(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(2*partSize - 9)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	journal := filepath.Join(h.dir, "uploads", id, "journal")
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY, 0)
	mustBe(t, err, nil)
	_, err = f.WriteString(`{"n":2,"crc64` + strings.Repeat("\x00", 100<<10)) // longer than a bufio.Scanner reads
	mustBe(t, errors.Join(err, f.Close()), nil)
	h.open()
	h.put(t, "k", id, data, 2)
	h.open()
	if parts, err := h.Parts(t.Context(), "k", id); err != nil || len(parts) != 2 {
		t.Fatalf("Parts = %v, %v; want both", parts, err)
	}
	h.open()
	mustBe(t, h.Abort(t.Context(), "k", id), nil)
}

// The remains of an interrupted Begin are removed after an hour. Uploads whose Begin finished stay.
func TestFolderRemovesWhatACrashLeftUnknown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	begin(t, h.site, "k", []byte("x"))
	half := filepath.Join(h.dir, "uploads", ".new-0123")
	mustBe(t, os.Mkdir(half, 0o700), nil)
	for _, step := range []struct {
		after time.Duration
		stays bool
	}{{0, true}, {2 * time.Hour, false}} {
		h.now = h.now.Add(step.after)
		if pending, err := h.ListUploads(t.Context()); err != nil || len(pending) != 1 {
			t.Errorf("ListUploads = %v, %v; want the one begun", pending, err)
		}
		if _, err := os.Stat(half); (err == nil) != step.stays {
			t.Errorf("after %v: %v", step.after, err)
		}
	}
}

func TestFolderPartURLExpires(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(100)
	id := begin(t, h.site, "k", data)
	signed, err := h.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	h.now = signed.Expires
	if status := send(t, signed, data); status != http.StatusForbidden {
		t.Errorf("status %d after the expiry, want 403", status)
	}
	h.now = signed.Expires.Add(-time.Second)
	if status := send(t, signed, data); status != http.StatusOK {
		t.Errorf("status %d before the expiry, want 200", status)
	}
}

// A sender that gives up and tries again does not have to wait for its first attempt,
// which may hang.
func TestFolderTakesTheNewestSenderOfAPart(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(partSize)
	id := begin(t, h.site, "k", data)
	signed, err := h.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	hanging, hang := io.Pipe()
	defer hang.Close()
	var first sync.WaitGroup
	first.Go(func() {
		req, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, hanging)
		if err != nil {
			t.Error(err)
			return
		}
		req.ContentLength = int64(len(data))
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				t.Error("the hanging request succeeded")
			}
		}
	})
	_, err = hang.Write(random(100_000)) // wrong bytes in the part's position, until the second request
	mustBe(t, err, nil)
	if status := send(t, signed, data); status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
	hang.CloseWithError(io.ErrUnexpectedEOF)
	first.Wait()
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
}

func TestFolderServesConditionalRanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(1000)
	id := begin(t, h.site, "k", data)
	h.put(t, "k", id, data, 1)
	mustBe(t, h.Complete(t.Context(), "k", id, 1000, sum(data)), nil)
	for _, c := range []struct {
		header, value string
		status, size  int
	}{
		{"If-Range", `"the-etag"`, http.StatusPartialContent, 10},
		{"If-Range", `"another"`, http.StatusOK, 1000},
		{"If-Match", `"the-etag"`, http.StatusPartialContent, 10},
		{"If-Match", `"another"`, http.StatusPreconditionFailed, 0},
		{"If-None-Match", `"the-etag"`, http.StatusNotModified, 0},
	} {
		req := httptest.NewRequest(http.MethodGet, "/get/k", nil)
		req.Header.Set("Range", "bytes=10-19")
		req.Header.Set(c.header, c.value)
		w := httptest.NewRecorder()
		h.folder.Serve(w, req, "k", "the-etag")
		if w.Code != c.status || w.Body.Len() != c.size {
			t.Errorf("%s %s: status %d with %d bytes, want %d with %d", c.header, c.value, w.Code, w.Body.Len(),
				c.status,
				c.size)
		}
	}
}

// The response ends when the request's context ends. A service uses this to stop a
// download after access has ended.
func TestFolderCutsAnAnswerOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	data := random(24 << 20) // more than the sockets hold
	id, err := h.Begin(t.Context(), "k", int64(len(data)), int64(len(data)))
	mustBe(t, err, nil)
	whole := partOfSize(data)
	signed, err := h.SignPart(t.Context(), "k", id, whole, time.Hour)
	mustBe(t, err, nil)
	if status := send(t, signed, data); status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	mustBe(t, h.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
	ended, cut := make(chan context.CancelFunc, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancel(r.Context())
		ended <- end
		h.folder.Serve(cutWriter{w, cut}, r.WithContext(ctx), "k", "the-etag")
	}))
	defer server.Close()
	res, err := http.Get(server.URL)
	mustBe(t, err, nil)
	defer res.Body.Close()
	(<-ended)()
	<-cut // the end of a context is noticed a little later
	if n, err := io.Copy(io.Discard, res.Body); err == nil || n == int64(len(data)) {
		t.Errorf("%d bytes arrived, %v; want the answer to end early", n, err)
	}
}

// cutWriter closes cut once the write deadline is set.
type cutWriter struct {
	http.ResponseWriter
	cut chan struct{}
}

// ReadFrom keeps the way that sends a file without copying it.
func (w cutWriter) ReadFrom(r io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, r) }

func (w cutWriter) SetWriteDeadline(t time.Time) error {
	defer close(w.cut)
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}

func TestFolderNeedsASecret(t *testing.T) {
	t.Parallel()
	if _, err := blob.OpenFolder(t.TempDir(), "http://127.0.0.1", []byte("short"), nil); err == nil {
		t.Error("a short secret was accepted")
	}
}

func TestPartSizeKeepsTheCountInBounds(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 16 << 20, 100 << 30, 1 << 40, 5 << 40} {
		part := blob.PartSize(size)
		if count := (size + part - 1) / part; count > 9000 || part < 16<<20 || part > 5<<30 {
			t.Errorf("%d bytes in %d parts of %d", size, count, part)
		}
	}
}
