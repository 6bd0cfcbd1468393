package loadcontrol

import (
	"cmp"
	"io"
	"net/http"
	"time"
)

// Response forwards a response to another ResponseWriter. It records the status and the length of
// the response, and can call a function before it sends bytes.
type Response struct {
	http.ResponseWriter
	Status int   // 0 until the response begins
	Bytes  int64 // bytes of the body that were sent

	Before func()    // called before the status and before every piece of the body; may be nil
	Piece  int64     // the size of a piece; 0 is 1 MiB
	Copy   io.Writer // receives a copy of the body; may be nil
	// Arrived says that the whole request has arrived. Read deadlines are then ignored, because a
	// read deadline would only close the connection, and keep the server from noticing that the
	// client disconnected.
	Arrived bool
}

// Unwrap lets http.ResponseController reach the connection.
func (w *Response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetReadDeadline implements the method that http.ResponseController looks for.
func (w *Response) SetReadDeadline(t time.Time) error {
	if w.Arrived {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}

func (w *Response) begin(status int) {
	if w.Status == 0 {
		w.Status = status
	}
	if w.Before != nil {
		w.Before()
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *Response) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *Response) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	if w.Copy != nil {
		_, _ = w.Copy.Write(p)
	}
	n, err := w.ResponseWriter.Write(p)
	w.Bytes += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom. It copies piece by piece, or everything at once if Before is
// nil. For each piece, it uses the connection's fast path for files, unless Copy is set.
func (w *Response) ReadFrom(src io.Reader) (total int64, err error) {
	if w.Copy != nil {
		src = io.TeeReader(src, w.Copy)
	}
	limit := int64(1) << 62
	if l, ok := src.(*io.LimitedReader); ok {
		src, limit = l.R, l.N
	}
	piece := cmp.Or(w.Piece, 1<<20)
	if w.Before == nil {
		piece = limit
	}
	for limit > 0 {
		w.begin(http.StatusOK)
		n, err := io.Copy(w.ResponseWriter, &io.LimitedReader{R: src, N: min(piece, limit)})
		w.Bytes, total, limit = w.Bytes+n, total+n, limit-n
		if err != nil || n < piece {
			return total, err
		}
	}
	return total, nil
}

// stallTimeout is how long a transfer may go without sending a byte.
const stallTimeout = time.Minute

// WithStallTimeout returns a writer for a response that may take any time in total. A write fails
// when no bytes could be sent for the timeout. WithStallTimeout first clears the deadline that an
// earlier request set on the connection.
func WithStallTimeout(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Response {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{})
	return &Response{ResponseWriter: w, Before: func() {
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
		if r.Context().Err() != nil { // end the response to a canceled request
			_ = control.SetWriteDeadline(time.Unix(1, 0))
		}
	}}
}
