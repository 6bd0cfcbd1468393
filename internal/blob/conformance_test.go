package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/crc64nvme"

	"snap"
	"snap/internal/blob"
	"snap/internal/servertest"
)

// partSize is the minimum size that S3 accepts for a part other than the last.
const partSize = 5 << 20

// site is a store under test, with an address at which its objects are served.
type site struct {
	blob.Store
	get string // URL prefix that serves an object by its key
}

func newFolder(t *testing.T) site {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	folder, err := blob.OpenFolder(t.TempDir(), server.URL, []byte("0123456789abcdef"), nil)
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle(blob.PartsPath, folder.Handler())
	return serve(mux, server, folder)
}

func newS3(t *testing.T) site {
	t.Helper()
	store, err := blob.OpenS3(t.Context(), withPrefix(servertest.S3(t)), nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return serve(mux, server, store)
}

func withPrefix(bucket string) string { return strings.Replace(bucket, "?", "/some/prefix?", 1) }

func serve(mux *http.ServeMux, server *httptest.Server, s blob.Store) site {
	mux.HandleFunc("/get/{key...}", func(w http.ResponseWriter, r *http.Request) {
		s.Serve(w, r, r.PathValue("key"), "the-etag")
	})
	return site{Store: s, get: server.URL + "/get/"}
}

// TestConformance checks that both stores fulfil the same contract.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) site{"folder": newFolder, "s3": newS3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for rule, check := range conformance() {
				t.Run(rule, func(t *testing.T) {
					t.Parallel()
					check(t, open(t))
				})
			}
		})
	}
}

func conformance() map[string]func(*testing.T, site) {
	return map[string]func(*testing.T, site){
		"an object arrives in parts, in any order, and is served whole and in ranges": checkRoundTrip,
		"a small object is one part":                     checkSmall,
		"an upload is resumed by what is present":        checkResume,
		"completing early tells that parts are missing":  checkIncomplete,
		"completing twice succeeds":                      checkCompleteTwice,
		"a part that lies about its checksum is refused": checkLyingPart,
		"a part URL serves nothing but its part":         checkNarrowURL,
		"an aborted upload is gone":                      checkAbort,
		"pending uploads are listed":                     checkListUploads,
		"what is missing is not found":                   checkMissing,
		"an object can be deleted":                       checkDelete,
		"keys that are no names are refused":             checkKeys,
		"small objects are written, read and listed":     checkSmallObjects,
		"objects are copied as streams, verified":        checkCopies,
		"storage answers a ping":                         checkPing,
	}
}

func checkRoundTrip(t *testing.T, s site) {
	data := random(3*partSize - 12345)
	id := begin(t, s, "acme/one.snap", data)
	for _, n := range []int{3, 1, 2} {
		s.put(t, "acme/one.snap", id, data, n)
	}
	mustBe(t, s.Complete(t.Context(), "acme/one.snap", id, int64(len(data)), sum(data)), nil)
	if size, err := s.Stat(t.Context(), "acme/one.snap"); err != nil || size != int64(len(data)) {
		t.Errorf("Stat = %d, %v; want %d", size, err, len(data))
	}
	if got := s.read(t, "acme/one.snap", "", http.StatusOK); !bytes.Equal(got, data) {
		t.Error("the object differs from the uploaded data")
	}
	head, err := http.Head(s.get + "acme/one.snap")
	mustBe(t, err, nil)
	if head.Body.Close(); head.StatusCode != http.StatusOK || head.ContentLength != int64(len(data)) {
		t.Errorf("HEAD: status %d, %d bytes; want 200, %d", head.StatusCode, head.ContentLength, len(data))
	}
	if got := s.read(t, "acme/one.snap", "bytes=5242870-5242999", http.StatusPartialContent); !bytes.Equal(got,
		data[5242870:5243000]) {
		t.Error("a range over two parts differs from the uploaded data")
	}
	if got := s.read(t, "acme/one.snap", "bytes=999999999-",
		http.StatusRequestedRangeNotSatisfiable); bytes.Contains(got,
		data[:100]) {
		t.Error("a range beyond the end returned bytes")
	}
}

func checkSmall(t *testing.T, s site) {
	data := []byte("x")
	id := begin(t, s, "small", data)
	s.put(t, "small", id, data, 1)
	mustBe(t, s.Complete(t.Context(), "small", id, 1, sum(data)), nil)
	if got := s.read(t, "small", "", http.StatusOK); string(got) != "x" {
		t.Errorf("read %q", got)
	}
}

func checkResume(t *testing.T, s site) {
	data := random(2*partSize + 1)
	id := begin(t, s, "k", data)
	if parts, err := s.Parts(t.Context(), "k", id); err != nil || len(parts) != 0 {
		t.Fatalf("Parts = %v, %v; want none", parts, err)
	}
	s.put(t, "k", id, data, 2)
	want := partOf(data, 2)
	parts, err := s.Parts(t.Context(), "k", id)
	if err != nil || len(parts) != 1 || parts[0] != want {
		t.Fatalf("Parts = %v, %v; want [%v]", parts, err, want)
	}
	s.put(t, "k", id, data, 2) // again, as after a lost response
	s.put(t, "k", id, data, 1)
	s.put(t, "k", id, data, 3)
	mustBe(t, s.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
}

func checkIncomplete(t *testing.T, s site) {
	data := random(2 * partSize)
	id := begin(t, s, "k", data)
	s.put(t, "k", id, data, 1)
	mustBe(t, s.Complete(t.Context(), "k", id, int64(len(data)), sum(data)),
		&snap.Error{Code: snap.CodeUploadIncomplete})
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("an object of an incomplete upload is visible: %v", err)
	}
	s.put(t, "k", id, data, 2)
	mustBe(t, s.Complete(t.Context(), "k", id, int64(len(data)), sum(data)), nil)
}

func checkCompleteTwice(t *testing.T, s site) {
	data := random(100)
	id := begin(t, s, "k", data)
	s.put(t, "k", id, data, 1)
	for range 2 {
		mustBe(t, s.Complete(t.Context(), "k", id, 100, sum(data)), nil)
	}
	mustBe(t, s.Abort(t.Context(), "k", id), nil)
	if _, err := s.Stat(t.Context(), "k"); err != nil {
		t.Errorf("aborting a completed upload removed the object: %v", err)
	}
}

func checkLyingPart(t *testing.T, s site) {
	data := random(1000)
	id := begin(t, s, "k", data)
	signed, err := s.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	wrong := bytes.Clone(data)
	wrong[500] ^= 1
	if status := send(t, signed, wrong); status < 400 || status >= 500 {
		t.Errorf("status %d for wrong bytes, want a refusal", status)
	}
	if parts, err := s.Parts(t.Context(), "k", id); err != nil || len(parts) != 0 {
		t.Errorf("Parts = %v, %v; want none", parts, err)
	}
	s.put(t, "k", id, data, 1)
	if status := send(t, signed, wrong); status < 400 || status >= 500 {
		t.Errorf("status %d for wrong bytes over an uploaded part, want a refusal", status)
	}
	mustBe(t, s.Complete(t.Context(), "k", id, 1000, sum(data)), nil)
	if got := s.read(t, "k", "", http.StatusOK); !bytes.Equal(got, data) {
		t.Error("wrong bytes reached the object")
	}
}

func checkNarrowURL(t *testing.T, s site) {
	data := random(1000)
	id := begin(t, s, "k", data)
	signed, err := s.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	for what, altered := range map[string]blob.Signed{
		"another method": {Method: http.MethodGet, URL: signed.URL, Headers: signed.Headers},
		"a DELETE":       {Method: http.MethodDelete, URL: signed.URL, Headers: signed.Headers},
		"an altered URL": {Method: signed.Method, URL: alter(signed.URL), Headers: signed.Headers},
		"another signature": {Method: signed.Method, URL: signed.URL[:len(signed.URL)-6] + "abcdef",
			Headers: signed.Headers},
	} {
		if status := send(t, altered, data); status < 400 || status >= 500 {
			t.Errorf("%s: status %d, want a refusal", what, status)
		}
	}
	if status := send(t, signed, data[:999]); status < 400 {
		t.Errorf("a shorter part: status %d, want a refusal", status)
	}
	longer := random(2000)
	lying := partOfSize(longer)
	lying.Size = 1000
	announced, err := s.SignPart(t.Context(), "k", id, lying, time.Hour)
	mustBe(t, err, nil)
	if status := send(t, announced, longer); status < 400 || status >= 500 {
		t.Errorf("a longer part with its own checksum: status %d, want a refusal", status)
	}
	if status := send(t, signed, data); status != http.StatusOK {
		t.Errorf("the signed request itself: status %d", status)
	}
}

// alter changes the content of a part URL without changing its signature.
func alter(url string) string {
	if strings.Contains(url, "partNumber=1") {
		return strings.Replace(url, "partNumber=1", "partNumber=2", 1)
	}
	at := strings.LastIndex(url, "/") + 20
	return url[:at] + string(url[at]^1) + url[at+1:]
}

func checkAbort(t *testing.T, s site) {
	data := random(1000)
	id := begin(t, s, "k", data)
	signed, err := s.SignPart(t.Context(), "k", id, partOf(data, 1), time.Hour)
	mustBe(t, err, nil)
	for range 2 {
		mustBe(t, s.Abort(t.Context(), "k", id), nil)
	}
	if status := send(t, signed, data); status != http.StatusNotFound {
		t.Errorf("a part of an aborted upload: status %d, want 404", status)
	}
	if _, err := s.Parts(t.Context(), "k", id); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("Parts of an aborted upload: %v, want not found", err)
	}
	mustBe(t, s.Complete(t.Context(), "k", id, 1000, sum(data)), snap.ErrNotFound)
}

func checkListUploads(t *testing.T, s site) {
	id := begin(t, s, "a/b", []byte("one"))
	done := begin(t, s, "c", []byte("two"))
	s.put(t, "c", done, []byte("two"), 1)
	mustBe(t, s.Complete(t.Context(), "c", done, 3, sum([]byte("two"))), nil)
	pending, err := s.ListUploads(t.Context())
	if err != nil || len(pending) != 1 || pending[0].Key != "a/b" || pending[0].Upload != id {
		t.Fatalf("ListUploads = %v, %v; want the one of a/b", pending, err)
	}
	if age := time.Since(pending[0].Created); age < -time.Hour || age > time.Hour {
		t.Errorf("its age is %v", age)
	}
}

func checkMissing(t *testing.T, s site) {
	if _, err := s.Stat(t.Context(), "nothing"); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("Stat: %v, want not found", err)
	}
	if _, err := s.Parts(t.Context(), "nothing", "0123456789abcdef0123456789abcdef"); !errors.Is(err,
		snap.ErrNotFound) {
		t.Errorf("Parts: %v, want not found", err)
	}
	mustBe(t, s.Delete(t.Context(), "nothing"), nil)
	s.read(t, "nothing", "", http.StatusNotFound)
}

func checkDelete(t *testing.T, s site) {
	data := random(10)
	id := begin(t, s, "k", data)
	s.put(t, "k", id, data, 1)
	mustBe(t, s.Complete(t.Context(), "k", id, 10, sum(data)), nil)
	mustBe(t, s.Delete(t.Context(), "k"), nil)
	if _, err := s.Stat(t.Context(), "k"); !errors.Is(err, snap.ErrNotFound) {
		t.Errorf("Stat of a deleted object: %v, want not found", err)
	}
}

func checkKeys(t *testing.T, s site) {
	for _, key := range []string{"", "../up", "a b", "/root", "ü", strings.Repeat("x", 200)} {
		if _, err := s.Begin(t.Context(), key, 1, partSize); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
	if _, err := s.Begin(t.Context(), "k", 0, partSize); err == nil {
		t.Error("an empty object was accepted")
	}
}

func checkSmallObjects(t *testing.T, s site) {
	for _, content := range []string{"first", "second"} {
		mustBe(t, s.Write(t.Context(), "records/b/1.json", []byte(content)), nil)
		if got, err := s.Read(t.Context(), "records/b/1.json"); err != nil || string(got) != content {
			t.Errorf("Read = %q, %v; want %q", got, err, content)
		}
	}
	mustBe(t, s.Write(t.Context(), "records/a/2.json", []byte("x")), nil)
	mustBe(t, s.Write(t.Context(), "other", bytes.Repeat([]byte("x"), 1<<20+1)), nil)
	if _, err := s.Read(t.Context(), "other"); err == nil {
		t.Error("a large object was read whole")
	}
	_, err := s.Read(t.Context(), "records/b/missing")
	mustBe(t, err, snap.ErrNotFound)
	keys, err := s.List(t.Context(), "records/")
	if err != nil || !slices.Equal(keys, []string{"records/a/2.json", "records/b/1.json"}) {
		t.Errorf("List = %v, %v", keys, err)
	}
	if pending, err := s.ListUploads(t.Context()); err != nil || len(pending) != 0 {
		t.Errorf("ListUploads = %v, %v; want none", pending, err)
	}
}

// An object that is copied from one store to another is read and written as a
// stream. Afterwards it is either complete and correct, or absent.
func checkCopies(t *testing.T, s site) {
	ctx, data := t.Context(), random(3<<20+17)
	put := func(content []byte, sha256 string) error {
		return s.Put(ctx, "acme/copied", bytes.NewReader(content), int64(len(data)), sha256)
	}
	mustBe(t, put(data[1:], sum(data)), &snap.Error{Code: snap.CodeChecksumMismatch})
	_, err := s.Open(ctx, "acme/copied")
	mustBe(t, err, snap.ErrNotFound)
	mustBe(t, put(data, sum(data)), nil)
	mustBe(t, put(data, sum(data)), nil)
	wrong := append(bytes.Clone(data[1:]), 0)
	for _, content := range [][]byte{wrong, append(bytes.Clone(data), 0)} { // the object stays as it is
		mustBe(t, put(content, sum(data)), &snap.Error{Code: snap.CodeChecksumMismatch})
	}
	r, err := s.Open(ctx, "acme/copied")
	mustBe(t, err, nil)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes of %d, %v", len(got), len(data), err)
	}
	mustBe(t, blob.Verify(ctx, s, "acme/copied", int64(len(data)), sum(data)), nil)
	mustBe(t, blob.Verify(ctx, s, "acme/copied", int64(len(data)), sum(data[1:])),
		&snap.Error{Code: snap.CodeChecksumMismatch})
	mustBe(t, blob.Verify(ctx, s, "acme/none", 1, sum(nil)), snap.ErrNotFound)
	large := random(17 << 20) // more than a part
	mustBe(t, s.Put(ctx, "acme/large", bytes.NewReader(large), int64(len(large)), sum(data)),
		&snap.Error{Code: snap.CodeChecksumMismatch})
	pending, err := s.ListUploads(ctx)
	if err != nil || len(pending) > 0 {
		t.Errorf("unfinished uploads of an object with a wrong checksum: %v, %v", pending, err)
	}
	_, err = s.Open(ctx, "acme/large")
	mustBe(t, err, snap.ErrNotFound)
	ended, end := context.WithCancel(ctx)
	end()
	mustBe(t, s.Put(ended, "acme/ended", bytes.NewReader(data), int64(len(data)), sum(data)), context.Canceled)
}

func checkPing(t *testing.T, s site) { mustBe(t, s.Ping(t.Context()), nil) }

// Helpers that keep the tests short.

func begin(t *testing.T, s site, key string, data []byte) string {
	t.Helper()
	id, err := s.Begin(t.Context(), key, int64(len(data)), partSize)
	mustBe(t, err, nil)
	return id
}

func (s site) put(t *testing.T, key, id string, data []byte, n int) {
	t.Helper()
	signed, err := s.SignPart(t.Context(), key, id, partOf(data, n), time.Hour)
	mustBe(t, err, nil)
	if status := send(t, signed, cut(data, n)); status != http.StatusOK {
		t.Fatalf("put part %d: status %d", n, status)
	}
}

func (s site) read(t *testing.T, key, span string, want int) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.get+key, nil)
	mustBe(t, err, nil)
	if span != "" {
		req.Header.Set("Range", span)
	}
	res, err := http.DefaultClient.Do(req)
	mustBe(t, err, nil)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	mustBe(t, err, nil)
	if res.StatusCode != want {
		t.Fatalf("GET %s %s: status %d, want %d", key, span, res.StatusCode, want)
	}
	return body
}

func send(t *testing.T, signed blob.Signed, body []byte) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), signed.Method, signed.URL, bytes.NewReader(body))
	mustBe(t, err, nil)
	for name, value := range signed.Headers {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	mustBe(t, err, nil)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

func cut(data []byte, n int) []byte {
	return data[(n-1)*partSize : min(n*partSize, len(data))]
}

func partOf(data []byte, n int) blob.Part {
	piece := cut(data, n)
	crc := binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(piece))
	return blob.Part{Number: n, Size: int64(len(piece)), CRC64: base64.StdEncoding.EncodeToString(crc)}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// random returns incompressible bytes, the same in every run.
func random(size int) []byte {
	data := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = source.Read(data)
	return data
}

func mustBe(t *testing.T, err, want error) {
	t.Helper()
	if want == nil && err != nil || !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// partOfSize describes all of data as one part.
func partOfSize(data []byte) blob.Part {
	crc := binary.BigEndian.AppendUint64(nil, crc64nvme.Checksum(data))
	return blob.Part{Number: 1, Size: int64(len(data)), CRC64: base64.StdEncoding.EncodeToString(crc)}
}
