package blob

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"snap"
)

// head is the announcement of an upload.
type head struct {
	Key      string    `json:"key"`
	Size     int64     `json:"size"`
	PartSize int64     `json:"part_size"`
	Created  time.Time `json:"created"`
}

// parts returns the number of parts.
func (h head) parts() int { return int((h.Size + h.PartSize - 1) / h.PartSize) }

// span returns the position of part n. A size of 0 means that there is no such part.
func (h head) span(n int) (offset, size int64) {
	if n < 1 || n > h.parts() {
		return 0, 0
	}
	offset = int64(n-1) * h.PartSize
	return offset, min(h.PartSize, h.Size-offset)
}

// upload is one upload of a folder.
type upload struct {
	id   string
	dir  string
	head head

	ending sync.Mutex // held by Complete and Abort
	digest digest

	mu        sync.Mutex
	confirmed map[int]Part    // confirmed, or hashed again, by this process
	older     map[int]Part    // confirmed by an earlier process
	busy      map[int]*writer // being written now
	sealed    bool            // no further part is accepted
	gone      bool            // completed or aborted
}

func newUpload(id, dir string, h head) *upload {
	return &upload{id: id, dir: dir, head: h, confirmed: map[int]Part{}, older: map[int]Part{},
		busy: map[int]*writer{}}
}

func (u *upload) data() string    { return filepath.Join(u.dir, "data") }
func (u *upload) journal() string { return filepath.Join(u.dir, "journal") }

// Begin implements [Store]. It fails with storage_full if the disk does not have enough free space
// for the whole object, but allocates none: only the parts that arrive use space.
func (f *Folder) Begin(_ context.Context, key string, size, partSize int64) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if size < 1 || partSize < 1 {
		return "", snap.Invalid("an object must have at least one byte", "")
	}
	if err := f.requireRoom(size); err != nil {
		return "", err
	}
	var random [16]byte
	rand.Read(random[:]) // never fails; see crypto/rand
	id := hex.EncodeToString(random[:])
	h := head{Key: key, Size: size, PartSize: partSize, Created: f.now().UTC()}
	u := newUpload(id, filepath.Join(f.uploadsDir(), id), h)
	if err := f.create(u); err != nil {
		return "", diskError("begin the upload", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uploads[id] = u
	return id, nil
}

// create creates the upload's folder under another name and then renames it, so that a folder with
// the upload's name is always complete.
func (f *Folder) create(u *upload) (err error) {
	making := filepath.Join(f.uploadsDir(), ".new-"+u.id)
	if err := os.Mkdir(making, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(making)
		}
	}()
	text, err := json.Marshal(u.head)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"head": text, "journal": nil} {
		if err := os.WriteFile(filepath.Join(making, name), content, 0o600); err != nil {
			return err
		}
	}
	data, err := os.OpenFile(filepath.Join(making, "data"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(data.Truncate(u.head.Size), data.Close()); err != nil {
		return err
	}
	return rename(making, u.dir)
}

// upload returns an upload by its ID. It loads an upload of an earlier process from the disk.
func (f *Folder) upload(id string) (*upload, error) {
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != 16 {
		return nil, snap.ErrNotFound
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.uploads[id]; u != nil {
		return u, nil
	}
	dir := filepath.Join(f.uploadsDir(), id)
	h, err := readHead(dir)
	if err != nil {
		return nil, err
	}
	u := newUpload(id, dir, h)
	if u.older, err = readJournal(u.journal(), h); err != nil {
		return nil, diskError("read the journal of parts", err)
	}
	f.uploads[id] = u
	return u, nil
}

func (f *Folder) uploadOf(key, id string) (*upload, error) {
	u, err := f.upload(id)
	if err == nil && u.head.Key != key {
		return nil, snap.ErrNotFound
	}
	return u, err
}

func readHead(dir string) (head, error) {
	text, err := os.ReadFile(filepath.Join(dir, "head"))
	if err != nil {
		return head{}, diskError("look up the upload", err)
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil || h.Size < 1 || h.PartSize < 1 {
		return head{}, fmt.Errorf("the head of an upload is damaged: %w", snap.ErrNotFound)
	}
	return h, nil
}

// SignPart implements [Store].
func (f *Folder) SignPart(_ context.Context, key, id string, p Part, life time.Duration) (Signed, error) {
	u, err := f.uploadOf(key, id)
	if err != nil {
		return Signed{}, err
	}
	_, size := u.head.span(p.Number)
	if size == 0 || p.Size != 0 && p.Size != size {
		detail := fmt.Sprintf("the upload has no part %d", p.Number)
		if p.Size != 0 {
			detail += fmt.Sprintf(" of %d bytes", p.Size)
		}
		return Signed{}, snap.Invalid(detail, "")
	}
	until := f.now().Add(life).Truncate(time.Second)
	token := SignToken(f.secret, uploadPart, partTicket{Upload: id, Number: p.Number, Size: size, CRC64: p.CRC64,
		Expires: until.Unix()})
	return Signed{Method: "PUT", URL: f.public + PartsPath + token, Expires: until}, nil
}

// maxRecheckWait is how long Parts waits while the parts that an earlier process confirmed are
// hashed again.
const maxRecheckWait = 2 * time.Second

// Parts implements [Store]. Parts that an earlier process confirmed are hashed again, but a request
// waits only briefly for that. In a large upload, a part that is not yet hashed counts as present;
// Complete verifies it.
func (f *Folder) Parts(ctx context.Context, key, id string) ([]Part, error) {
	u, err := f.uploadOf(key, id)
	if err != nil {
		return nil, err
	}
	if u.unverified() {
		if _, err := f.rechecks.Join(ctx, id, f.recheckWait, u.resume); err != nil {
			return nil, err
		}
	}
	return u.present(), nil
}

// resume hashes again the parts that an earlier process confirmed, and then continues with the hash
// of the whole object.
func (u *upload) resume(ctx context.Context) error {
	err := u.recheck(ctx)
	u.hashInBackground()
	return err
}

func (u *upload) unverified() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.older) > 0
}

// present lists the parts that have arrived, including those that are not yet hashed again, by
// number.
func (u *upload) present() []Part {
	u.mu.Lock()
	defer u.mu.Unlock()
	parts := make([]Part, 0, len(u.confirmed)+len(u.older))
	parts = slices.AppendSeq(parts, maps.Values(u.confirmed))
	parts = slices.AppendSeq(parts, maps.Values(u.older))
	slices.SortFunc(parts, func(a, b Part) int { return a.Number - b.Number })
	return parts
}

// Abort implements [Store].
func (f *Folder) Abort(_ context.Context, key, id string) error {
	u, err := f.uploadOf(key, id)
	if errors.Is(err, snap.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	u.ending.Lock()
	defer u.ending.Unlock()
	return f.drop(u)
}

// drop ends an upload and removes its files.
func (f *Folder) drop(u *upload) error {
	u.mu.Lock()
	u.sealed, u.gone = true, true
	u.mu.Unlock()
	f.mu.Lock()
	delete(f.uploads, u.id)
	f.mu.Unlock()
	return diskError("remove the upload", os.RemoveAll(u.dir))
}

// ListUploads implements [Store]. It also removes the remains of uploads whose creation was
// interrupted.
func (f *Folder) ListUploads(context.Context) ([]Pending, error) {
	entries, err := os.ReadDir(f.uploadsDir())
	if err != nil {
		return nil, diskError("list the uploads", err)
	}
	var pending []Pending
	for _, e := range entries {
		dir := filepath.Join(f.uploadsDir(), e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			if info, err := e.Info(); err == nil && f.now().Sub(info.ModTime()) > time.Hour {
				os.RemoveAll(dir)
			}
			continue
		}
		if h, err := readHead(dir); err == nil {
			pending = append(pending, Pending{Key: h.Key, Upload: e.Name(), Created: h.Created})
		}
	}
	return pending, nil
}
