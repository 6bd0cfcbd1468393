package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/minio/crc64nvme"

	"snap"
)

// stall is how long a part may bring no byte.
const stall = time.Minute

// writer is a request that is writing a part. A later one for the same part
// ends it, because that is the sender who gave up and tries again.
type writer struct {
	end  context.CancelFunc
	done chan struct{}
}

// Handler serves the PUT of parts below /blobs/parts/. The token in the URL is
// the whole permission.
func (f *Folder) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+PartsPath+"{token}", func(w http.ResponseWriter, r *http.Request) {
		if err := f.putPart(w, r); err != nil {
			writeProblem(w, err)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	return mux
}

func (f *Folder) putPart(w http.ResponseWriter, r *http.Request) error {
	g, err := openGrant(f.secret, r.PathValue("token"), f.now())
	if err != nil {
		return err
	}
	if r.ContentLength != g.Size {
		return snap.Invalid(fmt.Sprintf("the part has %d bytes", g.Size), "send them with Content-Length")
	}
	u, err := f.upload(g.Upload)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	body := &steady{body: r.Body, control: http.NewResponseController(w)}
	defer context.AfterFunc(ctx, body.stop)()
	p := Part{Number: g.Number, Size: g.Size, CRC64: g.CRC64}
	have, release, err := u.acquire(ctx, p, cancel)
	if err != nil {
		return err
	}
	defer release()
	if have {
		return receive(io.Discard, body, p)
	}
	return u.write(body, p)
}

// acquire makes the caller the one writer of a part. It reports true when
// this very part has landed already, so that nothing need be written.
func (u *upload) acquire(ctx context.Context, p Part, end context.CancelFunc) (have bool, release func(), err error) {
	for {
		u.mu.Lock()
		if u.gone {
			u.mu.Unlock()
			return false, nil, snap.ErrNotFound
		}
		if u.landed[p.Number] == p {
			u.mu.Unlock()
			return true, func() {}, nil
		}
		if u.sealed {
			u.mu.Unlock()
			return false, nil, &snap.Error{Code: snap.CodeConflict, Detail: "the upload is being completed"}
		}
		other := u.busy[p.Number]
		if other == nil {
			break
		}
		u.mu.Unlock()
		other.end()
		select {
		case <-other.done:
		case <-ctx.Done():
			return false, nil, ctx.Err()
		}
	}
	defer u.mu.Unlock()
	if _, ok := u.landed[p.Number]; ok {
		u.digest.rewind()
	}
	delete(u.landed, p.Number)
	delete(u.older, p.Number)
	mine := &writer{end: end, done: make(chan struct{})}
	u.busy[p.Number] = mine
	return false, func() { u.release(p.Number, mine) }, nil
}

func (u *upload) release(n int, w *writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.busy, n)
	close(w.done)
}

// write brings a part into its place and confirms it when it has its checksum.
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
		return diskError("note the part", err)
	}
	u.mu.Lock()
	u.landed[p.Number] = p
	u.mu.Unlock()
	u.follow()
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
			return &snap.Error{Code: snap.CodeInvalid, Detail: "the part ended early", Hint: "send it again", Cause: err}
		}
	}
	if size != p.Size || crcText(sum.Sum64()) != p.CRC64 {
		return &snap.Error{Code: snap.CodeChecksumMismatch, Detail: "the part does not have the announced checksum", Hint: "send it again"}
	}
	return nil
}

// steady is a request body that fails when no byte comes for a while, or at
// once when it is stopped.
type steady struct {
	body    io.Reader
	control *http.ResponseController

	mu      sync.Mutex
	stopped bool
}

func (s *steady) Read(p []byte) (int, error) {
	if !s.extend() {
		return 0, context.Canceled
	}
	return s.body.Read(p)
}

// extend moves the deadline of the socket, so it goes by the real clock.
func (s *steady) extend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		_ = s.control.SetReadDeadline(time.Now().Add(stall))
	}
	return !s.stopped
}

func (s *steady) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	_ = s.control.SetReadDeadline(time.Unix(1, 0))
}
