package transfer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// rebuildTimeout is how long the service may take to rebuild a file after the delta has arrived.
const rebuildTimeout = 10 * time.Minute

// SendDelta sends a delta of size bytes to a presigned URL, once. It returns when the service has
// rebuilt and verified the snapshot's file.
func SendDelta(ctx context.Context, url string, delta io.Reader, size int64, o Options) error {
	o.stallTimeout = rebuildTimeout
	res, err := o.withDefaults().exchange(ctx, http.MethodPut, url, delta, size)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		return newRefusal(res)
	}
	return nil
}

// FetchDelta downloads a delta of size bytes from a presigned URL, once, and writes it to w. An
// object store may redirect the request.
func FetchDelta(ctx context.Context, url string, size int64, w io.Writer, o Options) error {
	o = o.withDefaults()
	for range maxHops {
		res, err := o.exchange(ctx, http.MethodGet, url, nil, 0)
		if err != nil {
			return err
		}
		if res.StatusCode/100 != 3 {
			return receive(res, size, w)
		}
		next, err := res.Location()
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
		url = next.String()
	}
	return errors.New("the delta was redirected too many times")
}

// receive writes a response of size bytes to w.
func receive(res *http.Response, size int64, w io.Writer) error {
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return newRefusal(res)
	}
	n, err := io.Copy(w, io.LimitReader(res.Body, size+1))
	if err == nil && n != size {
		err = errors.New("the delta does not have the announced size")
	}
	return err
}

// exchange sends one request. Its context ends if no byte of the body is transferred for a while.
func (o Options) exchange(ctx context.Context, method, url string, body io.Reader, size int64) (*http.Response, error) {
	if err := o.checkURL(url); err != nil {
		return nil, err
	}
	ctx, alive, stop := o.watch(ctx)
	if body != nil {
		body = &countingReader{r: body, alive: alive, total: new(atomic.Int64)}
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		stop()
		return nil, err
	}
	req.ContentLength = size
	res, err := o.HTTP.Do(req)
	if err != nil {
		cause := context.Cause(ctx)
		stop()
		return nil, errors.Join(cause, err)
	}
	res.Body = &watchedBody{res.Body, alive, stop}
	return res, nil
}

// watchedBody is a response body. Closing it ends the request.
type watchedBody struct {
	io.ReadCloser
	alive, stop func()
}

func (w *watchedBody) Read(p []byte) (int, error) {
	w.alive()
	return w.ReadCloser.Read(p)
}

func (w *watchedBody) Close() error {
	defer w.stop()
	return w.ReadCloser.Close()
}
