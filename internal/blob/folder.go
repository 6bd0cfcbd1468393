package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snap"
	"snap/internal/disk"
)

// PartsPath is the path below the public URL at which a [Folder]'s handler accepts parts.
const PartsPath = "/blobs/parts/"

// Folder is a [Store] in a folder on the local disk, for one process at a time.
//
//	objects/3f/acme%2Fsnap_7h2k    an object, below two digits of its key's hash
//	uploads/<id>/head              the announcement: key, size and size of a part
//	uploads/<id>/data              the future object, with holes where parts are missing
//	uploads/<id>/journal           the parts that have arrived, one on each line
//
// A killed process loses nothing that it has confirmed. A part that an earlier process confirmed is
// hashed again before the upload is completed, so that after a power cut no bytes are accepted that
// never reached the disk.
type Folder struct {
	dir         string
	public      string
	secret      []byte
	now         func() time.Time
	recheckWait time.Duration // maxRecheckWait, except in tests
	rechecks    Tasks         // rehashing of the parts that an earlier process confirmed
	leave       int64         // bytes that uploads must leave free on the disk
	arriving    atomic.Int64  // bytes that are still to come, of the parts and objects that are being received
	unexpected  func(context.Context, error)

	mu      sync.Mutex
	uploads map[string]*upload
}

// OpenFolder opens the store in dir, and creates dir if it does not exist. Part URLs
// are {publicURL}/blobs/parts/<token>; secret signs the tokens.
func OpenFolder(dir, publicURL string, secret []byte, now func() time.Time) (*Folder, error) {
	if len(secret) < 16 {
		return nil, fmt.Errorf("the secret that signs upload URLs has %d bytes; it needs at least 16", len(secret))
	}
	if now == nil {
		now = time.Now
	}
	f := &Folder{
		dir: dir, public: strings.TrimRight(publicURL, "/"), secret: secret, now: now, recheckWait: maxRecheckWait,
		uploads: map[string]*upload{},
	}
	err := os.MkdirAll(dir, 0o700)
	for _, sub := range []string{f.objectsDir(), f.uploadsDir()} {
		if err == nil {
			err = makeDir(sub)
		}
	}
	switch {
	case disk.Full(err):
		return nil, storageFull(err)
	case err != nil:
		return nil, snap.Usage("cannot create the folders of the object store: "+err.Error(),
			"check the folder's parent and its permissions, or choose another folder")
	}
	return f, nil
}

func (f *Folder) objectsDir() string { return filepath.Join(f.dir, "objects") }
func (f *Folder) uploadsDir() string { return filepath.Join(f.dir, "uploads") }

// object returns the path of a key's object.
func (f *Folder) object(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(f.objectsDir(), hex.EncodeToString(sum[:1]), url.PathEscape(key))
}

// checkKey refuses a key unless it is a valid S3 key and, once escaped, a file name without
// separators.
func checkKey(key string) error {
	ok := key != "" && len(key) <= 160 && !strings.Contains(key, "..") && !strings.HasPrefix(key, "/")
	for _, r := range key {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./", r))
	}
	if !ok {
		return fmt.Errorf("%q is not a valid object key", key)
	}
	return nil
}

// OnUnexpected calls a function with each error that a response reports as internal, without
// details. Call it before the first request.
func (f *Folder) OnUnexpected(do func(context.Context, error)) { f.unexpected = do }

func (f *Folder) writeProblem(w http.ResponseWriter, r *http.Request, err error) {
	if !errors.As(err, new(*snap.Error)) && f.unexpected != nil {
		f.unexpected(r.Context(), err)
	}
	writeProblem(w, err)
}

// Serve implements [Store].
func (f *Folder) Serve(w http.ResponseWriter, r *http.Request, key, etag string) {
	file, err := os.Open(f.object(key))
	if err != nil {
		f.writeProblem(w, r, diskError("open the object", err))
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		f.writeProblem(w, r, diskError("open the object", err))
		return
	}
	// A deadline in the past is the only way to also stop a sendfile.
	stop := context.AfterFunc(r.Context(), func() {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
	})
	defer stop()
	h := w.Header()
	h.Set("ETag", `"`+strings.Trim(etag, `"`)+`"`)
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "private, no-store")
	http.ServeContent(w, withoutEmptySuffixes(r, info.Size()), "", time.Time{}, file)
}

// Stat implements [Store].
func (f *Folder) Stat(_ context.Context, key string) (int64, error) {
	info, err := os.Stat(f.object(key))
	if err != nil {
		return 0, diskError("look up the object", err)
	}
	return info.Size(), nil
}

// Delete implements [Store].
func (f *Folder) Delete(_ context.Context, key string) error {
	path := f.object(key)
	err := os.Remove(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = disk.SyncDir(filepath.Dir(path))
	}
	return diskError("delete the object", err)
}

// Ping implements [Store]. It writes and removes a small file.
func (f *Folder) Ping(context.Context) error {
	probe, err := os.CreateTemp(f.uploadsDir(), ".ping-*")
	if err == nil {
		_, err = probe.WriteString("ping")
		probe.Close()
		os.Remove(probe.Name())
	}
	if err == nil {
		return nil
	}
	return &snap.Error{Code: snap.CodeUnavailable, Detail: "the service cannot write to its blob folder",
		Hint: "check data_dir and its disk", Cause: err}
}
