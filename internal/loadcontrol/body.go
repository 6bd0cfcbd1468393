package loadcontrol

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"snap"
)

// maxBody is the maximum size of one request's body in bytes, unless it is a part of a snapshot.
// maxBodies is the maximum size of all bodies in memory together.
const (
	maxBody   = 1 << 20
	maxBodies = 64 << 20
)

var errBody = &snap.Error{Code: snap.CodeTooLarge, Detail: "the request body is larger than 1 MiB",
	Hint: "send the bytes of snapshots to the URLs that /snapshots/{id}/parts returns"}

// readBody reads a request's body into memory. Its bytes count towards maxBodies until release is
// called. readBody fails with too_large if the body is larger than maxBody, and with errBusy if all
// bodies in memory together would be larger than maxBodies.
func (c *Control) readBody(r *http.Request) (release func(), err error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return func() {}, nil
	}
	if r.ContentLength > maxBody {
		return nil, errBody
	}
	var body bytes.Buffer
	var size int64
	release = func() { c.bodies.Add(-size) }
	piece := make([]byte, 4<<10)
	for {
		n, err := r.Body.Read(piece)
		size += int64(n)
		if c.bodies.Add(int64(n)) > maxBodies {
			release()
			return nil, errBusy
		}
		body.Write(piece[:n])
		if size > maxBody {
			release()
			return nil, errBody
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			release()
			return nil, &snap.Error{Code: snap.CodeInvalid, Detail: "the body of the request did not arrive completely",
				Cause: err}
		}
	}
	r.Body = io.NopCloser(&body)
	return release, nil
}
