package transfer

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// put sends one part to its URL.
func (u *uploader) put(ctx context.Context, p part) error {
	ctx, alive, stop := u.watch(ctx)
	defer stop()
	body := &countingReader{r: io.NewSectionReader(u.file, p.offset, p.size), alive: alive, total: &u.meter.done}
	req, err := http.NewRequestWithContext(ctx, p.url.Method, p.url.URL, body)
	if err != nil {
		return err
	}
	req.ContentLength = p.size
	for name, value := range p.url.Headers {
		req.Header.Set(name, value)
	}
	res, err := u.HTTP.Do(req)
	if err != nil {
		body.undo()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body.undo()
		return newRefusal(res)
	}
	// The part has arrived. The rest of the response is read so that the connection can be reused.
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	return nil
}

// countingReader counts the bytes of a body that are read. undo subtracts them and stops the
// counting, because the transport may still be reading when the response arrives.
type countingReader struct {
	r     io.Reader
	alive func()
	total *atomic.Int64
	own   atomic.Int64
	off   atomic.Bool
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if n > 0 && !c.off.Load() {
		c.alive()
		c.own.Add(int64(n))
		c.total.Add(int64(n))
	}
	return n, err
}

func (c *countingReader) undo() {
	c.off.Store(true)
	c.total.Add(-c.own.Swap(0))
}
