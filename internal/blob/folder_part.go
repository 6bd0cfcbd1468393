package blob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/crc64nvme"

	"snap"
)

// maxStall is how long the upload of a part may go without receiving a byte.
const maxStall = time.Minute

// maxSilence is how long a second request for a part waits for a first one that sends nothing. The
// client has probably given up on the first request, and the second one is its next attempt.
const maxSilence = time.Second

// writer is a request that is writing a part.
type writer struct {
	body *timedBody
	end  context.CancelFunc
	done chan struct{}
}

// partTicket is the content of a part URL: it allows the PUT of one part of one upload, of this
// size and checksum.
type partTicket struct {
	Upload  string `json:"u"`
	Number  int    `json:"n"`
	Size    int64  `json:"s"`
	CRC64   string `json:"c"`
	Expires int64  `json:"e"` // seconds since 1970
}

// uploadPart is the purpose of the tokens in part URLs.
const uploadPart = "upload part"

// errExpiredURL is the error for a part URL that is forged, altered or expired. It does not
// distinguish these cases.
var errExpiredURL = &snap.Error{
	Code:   snap.CodeForbidden,
	Detail: "this upload URL is not valid or has expired",
	Hint:   "request another one",
}

func openPartTicket(secret []byte, token string, now time.Time) (t partTicket, err error) {
	if !OpenToken(secret, uploadPart, token, &t) || now.Unix() >= t.Expires {
		return partTicket{}, errExpiredURL
	}
	return t, nil
}

// Handler serves the PUT of parts below /blobs/parts/. The token in the URL is the only
// authorization.
func (f *Folder) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+PartsPath+"{token}", func(w http.ResponseWriter, r *http.Request) {
		if err := f.putPart(w, r); err != nil {
			f.writeProblem(w, r, err)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}

func (f *Folder) putPart(w http.ResponseWriter, r *http.Request) error {
	t, err := openPartTicket(f.secret, r.PathValue("token"), f.now())
	if err != nil {
		return err
	}
	if r.ContentLength != t.Size {
		return snap.Invalid(fmt.Sprintf("this URL is for a part of %d bytes", t.Size),
			"send exactly that many bytes, with Content-Length")
	}
	u, err := f.upload(t.Upload)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	body := &timedBody{body: r.Body, control: http.NewResponseController(w), moved: time.Now()}
	defer context.AfterFunc(ctx, body.stop)()
	p := Part{Number: t.Number, Size: t.Size, CRC64: t.CRC64}
	have, release, err := u.acquire(ctx, p, &writer{body: body, end: cancel, done: make(chan struct{})})
	if err != nil {
		return err
	}
	defer release()
	if have {
		return receive(io.Discard, body, p)
	}
	part := &arrivingPart{Reader: body, left: p.Size, all: &f.arriving}
	f.arriving.Add(p.Size)
	defer part.end()
	if err := f.requireRoom(0); err != nil {
		return err
	}
	return u.write(part, p)
}

// arrivingPart is a part or an object that is being received. It subtracts the bytes that have been
// read from the folder's number of arriving bytes, because from then on they use space on the disk.
type arrivingPart struct {
	io.Reader
	left int64
	all  *atomic.Int64
}

// Read implements io.Reader.
func (a *arrivingPart) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	read := min(int64(n), a.left)
	a.left -= read
	a.all.Add(-read)
	return n, err
}

func (a *arrivingPart) end() {
	a.all.Add(-a.left)
	a.left = 0
}

// acquire makes a request the only writer of a part. It returns have = true if this part has
// already arrived and need not be written.
func (u *upload) acquire(ctx context.Context, p Part, w *writer) (have bool, release func(), err error) {
	for {
		other, have, err := u.claim(p, w)
		if err != nil || have {
			return have, func() {}, err
		}
		if other == nil {
			return false, func() { u.release(p.Number, w) }, nil
		}
		if err := other.yield(ctx); err != nil {
			return false, nil, err
		}
	}
}

// claim registers the writer, unless the part has arrived or has another writer.
func (u *upload) claim(p Part, w *writer) (other *writer, have bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.gone:
		return nil, false, snap.ErrNotFound
	case u.confirmed[p.Number] == p:
		return nil, true, nil
	case u.sealed:
		return nil, false, &snap.Error{Code: snap.CodeUnavailable, Detail: "the upload is being completed"}
	case u.busy[p.Number] != nil:
		return u.busy[p.Number], false, nil
	}
	if _, ok := u.confirmed[p.Number]; ok {
		u.digest.rewind()
	}
	delete(u.confirmed, p.Number)
	delete(u.older, p.Number)
	u.busy[p.Number] = w
	return nil, false, nil
}

// yield waits for the writer to end. If the writer sends nothing, yield ends it.
func (w *writer) yield(ctx context.Context) error {
	ticker := time.NewTicker(maxSilence / 10)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if w.body.idle() > maxSilence {
				w.end()
			}
		}
	}
}

func (u *upload) release(n int, w *writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, n)
	close(w.done)
}

// write writes a part to its position in the file and confirms it if its checksum is right.
func (u *upload) write(body io.Reader, p Part) error {
	data, err := os.OpenFile(u.data(), os.O_WRONLY, 0)
	if err != nil {
		return diskError("open the upload", err)
	}
	defer data.Close()
	offset, _ := u.head.span(p.Number)
	if err := receive(io.NewOffsetWriter(data, offset), body, p); err != nil {
		return err
	}
	if err := appendJournal(u.journal(), p); err != nil {
		return diskError("record the part", err)
	}
	u.mu.Lock()
	u.confirmed[p.Number] = p
	u.mu.Unlock()
	u.hashInBackground()
	return nil
}

// receive copies a part and compares its size and checksum.
func receive(to io.Writer, body io.Reader, p Part) error {
	sum := crc64nvme.New()
	buffer := make([]byte, 128<<10)
	var size int64
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			sum.Write(buffer[:n])
			size += int64(n)
			if _, err := to.Write(buffer[:n]); err != nil {
				return diskError("write the part", err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &snap.Error{Code: snap.CodeUnavailable, Detail: "the part ended early", Hint: "send it again",
				Cause: err}
		}
	}
	if size != p.Size || base64.StdEncoding.EncodeToString(sum.Sum(nil)) != p.CRC64 {
		return &snap.Error{Code: snap.CodeChecksumMismatch, Detail: "the part does not have the announced checksum",
			Hint: "send it again"}
	}
	return nil
}

// timedBody is a request body that fails if no byte arrives for maxStall, or immediately after it is
// stopped.
type timedBody struct {
	body    io.Reader
	control *http.ResponseController

	mu      sync.Mutex
	stopped bool
	moved   time.Time // when the last byte arrived
}

func (s *timedBody) Read(p []byte) (int, error) {
	if !s.extend() {
		return 0, context.Canceled
	}
	n, err := s.body.Read(p)
	if n > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.moved = time.Now()
	}
	return n, err
}

// idle returns how long ago the last byte arrived.
func (s *timedBody) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.moved)
}

// extend moves the read deadline of the socket, and returns false if the body was stopped. A
// socket's deadline follows the real clock.
func (s *timedBody) extend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		_ = s.control.SetReadDeadline(time.Now().Add(maxStall))
	}
	return !s.stopped
}

func (s *timedBody) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	_ = s.control.SetReadDeadline(time.Unix(1, 0))
}
