package transfer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/blob"
	"snap/internal/transfer"
)

// service is the part of the cloud service that a transfer talks to, with a real
// store and real HTTP. Tests can make its requests fail.
type service struct {
	t      testing.TB
	server *httptest.Server
	store  blob.Store
	folder *blob.Folder
	dir    string // of the folder store
	public string // the base of its URLs

	mu      sync.Mutex
	pushes  map[string]*push // by ID
	gone    bool             // snapshots are no longer visible
	serial  int              // counts download URLs; only the newest is valid
	pulls   int
	fault   func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered the request
	partLen int64
}

type push struct {
	api.PushRequest
	upload string
	done   bool
}

var testSecret = []byte("0123456789abcdef")

func newService(t testing.TB) *service {
	s := &service{t: t, pushes: map[string]*push{}, partLen: 1 << 20, dir: t.TempDir()}
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.server.Close)
	s.public = s.server.URL
	s.restart()
	return s
}

// restart opens the store again, as a new process of the service would.
func (s *service) restart() {
	folder, err := blob.OpenFolder(s.dir, s.public, testSecret, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folder, s.store = folder, folder
}

// use sets the store for the requests that begin from now on.
func (s *service) use(store blob.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = store
}

// opened returns the store and folder of the last restart. Requests that began before it may still
// run.
func (s *service) opened() (blob.Store, *blob.Folder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store, s.folder
}

func (s *service) client() *api.Client {
	c, err := api.New(api.Options{BaseURL: s.public, Mount: api.MountAgent, Token: api.StaticToken("key")})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// breakBy makes f handle requests, to inject failures, until breakBy is called with nil.
func (s *service) breakBy(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault == nil || !fault(w, r) {
		s.pass(w, r)
	}
}

// pass handles a request without a fault.
func (s *service) pass(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	store, folder := s.opened()
	if folder != nil {
		mux.Handle(blob.PartsPath, folder.Handler())
	}
	mux.HandleFunc("GET /bytes/{id}/{serial}", func(w http.ResponseWriter, r *http.Request) { s.get(w, r, store) })
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots", answer(s.begin))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/parts", answer(s.parts))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/complete", answer(s.complete))
	mux.HandleFunc("POST "+api.MountAgent+"/snapshots/{id}/pull", answer(s.pull))
	mux.ServeHTTP(w, r)
}

func answer[In, Out any](f func(r *http.Request, in In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		_ = json.NewDecoder(r.Body).Decode(&in)
		out, err := f(r, in)
		if err != nil {
			fail(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(out)
	}
}

func fail(w http.ResponseWriter, err error) {
	code := snap.CodeOf(err)
	w.WriteHeader(code.Info().Status)
	_ = json.NewEncoder(w).Encode(api.Problem{Code: code, Detail: err.Error(), Status: code.Info().Status})
}

func (s *service) begin(r *http.Request, in api.PushRequest) (api.UploadPlan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ""
	for known, p := range s.pushes {
		if reflect.DeepEqual(p.PushRequest, in) {
			id = known
		}
	}
	if id == "" {
		id = snap.NewSnapshotID()
		upload, err := s.store.Begin(r.Context(), id, in.Size, s.partLen)
		if err != nil {
			return api.UploadPlan{}, err
		}
		s.pushes[id] = &push{PushRequest: in, upload: upload}
	}
	p := s.pushes[id]
	if p.done {
		return api.UploadPlan{ID: id, Exists: true}, nil
	}
	parts, err := s.store.Parts(r.Context(), id, p.upload)
	if errors.Is(err, snap.ErrNotFound) {
		// The request that completed the upload may not have recorded it yet.
		if s.store.Complete(r.Context(), id, p.upload, p.Size, p.SHA256) == nil {
			p.done = true
			return api.UploadPlan{ID: id, Exists: true}, nil
		}
		delete(s.pushes, id)
	}
	plan := api.UploadPlan{ID: id, PartSize: s.partLen, Parts: int((in.Size + s.partLen - 1) / s.partLen)}
	for _, have := range parts {
		plan.Present = append(plan.Present, api.PartRef(have))
	}
	return plan, err
}

func (s *service) find(r *http.Request) (string, *push, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	p := s.pushes[id]
	if p == nil {
		return "", nil, snap.ErrNotFound
	}
	return id, p, nil
}

func (s *service) parts(r *http.Request, in api.PartsRequest) (out api.PartsResponse, err error) {
	id, p, err := s.find(r)
	if err != nil {
		return out, err
	}
	store, _ := s.opened()
	for _, spec := range in.Parts {
		signed, err := store.SignPart(r.Context(), id, p.upload, blob.Part{Number: spec.Number, CRC64: spec.CRC64},
			time.Hour)
		if err != nil {
			return out, err
		}
		out.URLs = append(out.URLs, api.SignedURL{Number: spec.Number, Method: signed.Method, URL: signed.URL,
			Headers: signed.Headers, ExpiresAt: signed.Expires})
	}
	return out, nil
}

func (s *service) complete(r *http.Request, _ struct{}) (api.Snapshot, error) {
	id, p, err := s.find(r)
	if err != nil {
		return api.Snapshot{}, err
	}
	store, _ := s.opened()
	if err := store.Complete(r.Context(), id, p.upload, p.Size, p.SHA256); err != nil {
		return api.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.done = true
	return s.record(id), nil
}

func (s *service) record(id string) api.Snapshot {
	p := s.pushes[id]
	return api.Snapshot{ID: id, Target: p.Target, Name: p.Name, Type: p.Type, Engine: p.Engine, Size: p.Size,
		SHA256: p.SHA256}
}

func (s *service) pull(r *http.Request, _ struct{}) (api.PullResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pushes[r.PathValue("id")]
	if p == nil || !p.done || s.gone {
		return api.PullResponse{}, snap.ErrNotFound
	}
	s.pulls++
	s.serial++
	return api.PullResponse{Snapshot: s.record(r.PathValue("id")),
		URL: fmt.Sprintf("%s/bytes/%s/%d", s.public, r.PathValue("id"), s.serial)}, nil
}

func (s *service) get(w http.ResponseWriter, r *http.Request, store blob.Store) {
	s.mu.Lock()
	gone, stale := s.gone, r.PathValue("serial") != fmt.Sprint(s.serial)
	s.mu.Unlock()
	switch {
	case gone:
		fail(w, snap.ErrNotFound)
	case stale:
		fail(w, snap.Forbidden("this URL has expired", ""))
	default:
		store.Serve(w, r, r.PathValue("id"), "etag")
	}
}

// listed returns the IDs of complete snapshots. It checks the checksum of each, because a listed
// snapshot must never be corrupt.
func (s *service) listed() []string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, p := range s.pushes {
		if !p.done {
			continue
		}
		ids = append(ids, id)
		w := httptest.NewRecorder()
		s.store.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil), id, "etag")
		if got := sumOf(w.Body.Bytes()); got != p.SHA256 {
			s.t.Errorf("the listed snapshot %s has the SHA-256 %s, want %s", id, got, p.SHA256)
		}
	}
	return ids
}

// Helpers that keep the tests short.

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func random(size int, seed uint64) []byte {
	data := make([]byte, size)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	_, _ = rand.NewChaCha8(key).Read(data)
	return data
}

func writeFile(t testing.TB, data []byte) (path string, req api.PushRequest) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shop.snap")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, api.PushRequest{
		Target: "shop", Name: "shop-20260102T030405Z", Type: snap.TypeSnapshot, Engine: snap.SQLite,
		Size: int64(len(data)), SHA256: sumOf(data),
	}
}

// pushed pushes data as a snapshot and returns the ID.
func (s *service) pushed(data []byte) string {
	s.t.Helper()
	file, req := writeFile(s.t, data)
	up, err := transfer.Upload(context.Background(), s.client(), file, req, quick())
	if err != nil {
		s.t.Fatal(err)
	}
	return up.ID
}

// quick returns options that do not wait between attempts and that fetch small pieces.
func quick() transfer.Options {
	o := transfer.Options{Jobs: 4, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	return transfer.InPieces(o, testPiece)
}

const testPiece = 256 << 10

// answerNonsense sends a response that is not HTTP.
func answerNonsense(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("nonsense\r\n\r\n"))
		conn.Close()
	}
}

func wantCode(t testing.TB, err error, code snap.Code) {
	t.Helper()
	if snap.CodeOf(err) != code {
		t.Fatalf("error %v (%q), want code %q", err, snap.CodeOf(err), code)
	}
}

func wantFile(t testing.TB, path string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sumOf(got) != sumOf(data) {
		t.Fatalf("%s differs from the pushed data", path)
	}
	for _, left := range []string{path + ".part", path + ".part.journal"} {
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left over", left)
		}
	}
}

// damageUploads flips a byte of the received parts, as a failing disk does.
func (s *service) damageUploads() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "uploads", "*", "data"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no upload to damage: %v", err)
	}
	for _, file := range files {
		flip(s.t, file, s.partLen+5)
	}
}

func flip(t testing.TB, file string, at int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	if _, err := f.ReadAt(one, at); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 0x10
	if _, err := f.WriteAt(one, at); err != nil {
		t.Fatal(err)
	}
}
