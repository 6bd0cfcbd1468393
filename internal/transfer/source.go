package transfer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/minio/crc64nvme"

	"snap"
	"snap/api"
)

// source is a presigned URL for a snapshot's bytes. It is renewed when the object store refuses it.
type source struct {
	service Service
	id      string
	options Options

	mu    sync.Mutex
	url   string
	etags map[string]string // the first ETag from each host
}

// current returns the URL to use.
func (s *source) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// renew requests a new URL to replace one that was refused. The service's response decides whether
// access has ended.
func (s *source) renew(ctx context.Context, refused string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url != refused {
		return nil // another connection has renewed it
	}
	got, err := retry(ctx, s.options, func() (api.PullResponse, error) { return s.service.Pull(ctx, s.id) })
	if err == nil {
		s.url = got.URL
	}
	return err
}

// etag returns the object's ETag at a host: the first strong one that was received.
func (s *source) etag(host, received string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etags == nil {
		s.etags = map[string]string{}
	}
	if s.etags[host] == "" && !strings.HasPrefix(received, "W/") {
		s.etags[host] = received
	}
	return s.etags[host]
}

// forget drops the ETag of a host whose object has changed. The checksum of the whole file shows
// whether the new object is right.
func (s *source) forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.etags, host)
}

// fetch fetches one piece into content and returns its checksum. After a connection breaks, it
// resumes at the next missing byte.
func (d *downloader) fetch(ctx context.Context, n int, content []byte) (uint64, error) {
	span := &piece{offset: int64(n) * d.piece, size: d.size(n), content: content, sum: crc64nvme.New()}
	for tried := 1; ; {
		from, before := d.source.current(), span.got
		err := d.get(ctx, from, span)
		d.moved.Add(span.got - before)
		if err == nil {
			return span.sum.Sum64(), nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if span.got > before {
			tried = 0
		}
		tried++
		var r *refusal
		answered := errors.As(err, &r)
		if answered && tried > r.maxTries() || !answered && !isNetwork(err) || tried > maxAttempts {
			return 0, err
		}
		if answered && r.rejectsURL() {
			if err := d.source.renew(ctx, from); err != nil {
				return 0, err
			}
		}
		if !answered || !r.rejectsURL() || tried > 2 {
			if err := d.Wait(ctx, pause(tried, err)); err != nil {
				return 0, err
			}
		}
	}
}

// maxHops is the maximum number of requests in a chain of redirects.
const maxHops = 3

// get requests the remainder of a piece. It follows redirects itself, so that the If-Match
// condition for one host does not reach another.
func (d *downloader) get(ctx context.Context, from string, p *piece) error {
	ctx, alive, stop := d.watch(ctx)
	defer stop()
	for range maxHops {
		if err := d.checkURL(from); err != nil {
			return err
		}
		res, err := d.request(ctx, from, p)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if res.StatusCode/100 != 3 {
			defer res.Body.Close()
			return d.readResponse(res, p, alive)
		}
		next, err := res.Location()
		res.Body.Close()
		if err != nil {
			return &snap.Error{Code: snap.CodeUnavailable, Detail: res.Request.URL.Host +
				" redirects the download without an address",
				Hint: "tell its operator"}
		}
		from = next.String()
	}
	return &snap.Error{Code: snap.CodeUnavailable,
		Detail: "the download is redirected too many times", Hint: "tell the operator of the object store"}
}

func (d *downloader) request(ctx context.Context, from string, p *piece) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.offset+p.got, p.offset+p.size-1))
	if etag := d.source.etag(req.URL.Host, ""); etag != "" {
		req.Header.Set("If-Match", etag)
	}
	res, err := d.HTTP.Do(req)
	var broken *url.Error
	if errors.As(err, &broken) {
		broken.URL = req.URL.Host // the whole URL grants access
	}
	return res, err
}

// readResponse reads a response into the piece.
func (d *downloader) readResponse(res *http.Response, p *piece, alive func()) error {
	switch res.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		if p.offset+p.got > 0 || res.ContentLength != p.size {
			return &snap.Error{Code: snap.CodeUnavailable, Detail: res.Request.URL.Host + " does not serve ranges",
				Hint: "check any proxy in between"}
		}
	case http.StatusPreconditionFailed:
		d.source.forget(res.Request.URL.Host)
		return newRefusal(res)
	default:
		return newRefusal(res)
	}
	if span := res.Header.Get("Content-Range"); span != "" && span != p.contentRange(d.want.Size) {
		return &refusal{status: res.StatusCode, code: "not the requested range: " + span, host: res.Request.URL.Host}
	}
	d.source.etag(res.Request.URL.Host, res.Header.Get("ETag"))
	return p.read(res.Body, func(n int) { alive(); d.meter.done.Add(int64(n)) })
}

// piece is one range being fetched. It keeps the bytes received, so that a broken connection loses
// nothing.
type piece struct {
	offset, size, got int64
	content           []byte
	sum               hash.Hash64
}

func (p *piece) contentRange(total int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", p.offset+p.got, p.offset+p.size-1, total)
}

// read reads the body until the piece is complete.
func (p *piece) read(body io.Reader, count func(n int)) error {
	for p.got < p.size {
		n, err := body.Read(p.content[p.got:p.size])
		if n > 0 {
			p.sum.Write(p.content[p.got : p.got+int64(n)])
			p.got += int64(n)
			count(n)
		}
		if err != nil && p.got < p.size {
			return errors.Join(errCutShort, err)
		}
	}
	return nil
}
