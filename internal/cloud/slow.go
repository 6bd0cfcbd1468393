package cloud

import (
	"io"
	"net/http"
	"time"
)

// stall is how long an answer may go without sending a byte.
const stall = time.Minute

// moving lets an answer take any time, as long as its bytes keep moving.
type moving struct {
	http.ResponseWriter
	control *http.ResponseController
	r       *http.Request
	stall   time.Duration
}

// newMoving returns the writer for an answer. It clears the deadline of an earlier request on the
// connection.
func newMoving(w http.ResponseWriter, r *http.Request, stall time.Duration) *moving {
	m := &moving{w, http.NewResponseController(w), r, stall}
	_ = m.control.SetWriteDeadline(time.Time{})
	return m
}

// Unwrap lets http.ResponseController reach the connection.
func (w *moving) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// more sets the deadline for the next bytes. An answer that was ended keeps a deadline in the past.
func (w *moving) more() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall))
	if w.r.Context().Err() != nil {
		_ = w.control.SetWriteDeadline(time.Unix(1, 0))
	}
}

// Write sets the deadline and writes.
func (w *moving) Write(p []byte) (int, error) {
	w.more()
	return w.ResponseWriter.Write(p)
}

// ReadFrom copies in pieces that are small enough for a slow connection.
func (w *moving) ReadFrom(src io.Reader) (int64, error) {
	return copyPieces(w.ResponseWriter, src, 1<<20, w.more)
}

// copyPieces copies in pieces of this many bytes, each by the connection's fast path, and calls
// before ahead of each piece.
func copyPieces(dst io.Writer, src io.Reader, piece int64, before func()) (total int64, err error) {
	limit := int64(1) << 62
	if l, ok := src.(*io.LimitedReader); ok {
		src, limit = l.R, l.N
	}
	for limit > 0 {
		before()
		n, err := io.Copy(dst, &io.LimitedReader{R: src, N: min(piece, limit)})
		total, limit = total+n, limit-n
		if err != nil || n < piece {
			return total, err
		}
	}
	return total, nil
}
