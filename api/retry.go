package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"snap"
)

// A request that may be sent twice is repeated, up to maxAttempts times in all, if the service asks
// for it (503 with a short Retry-After, for example while its database is unavailable or a replica
// is being replaced), or if the connection broke before the response was complete. A refused
// connection or an unknown host is reported at once. A request that only reads and gets no response
// within [Options.ReadTimeout] is sent once more, so that a frozen replica costs only seconds.
// Other requests that get no response are not sent again.
const (
	maxAttempts   = 3
	maxRetryAfter = 5 * time.Second
	readTimeout   = 10 * time.Second // by default
)

// timedOut reports whether a request got no response in time.
func timedOut(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// repeatable reports whether a request may be sent twice without further effect: it only reads,
// changes a share, or asks for the URL of a pull.
func repeatable(method, target string) bool {
	path, _, _ := strings.Cut(target, "?")
	return method == http.MethodGet || strings.HasSuffix(path, "/pull") || strings.Contains(path, "/snapshots/") &&
		(strings.Contains(path, "/share") || strings.HasSuffix(path, "/unshare"))
}

// temporaryError is an error after which a request may be repeated. after is how long to wait
// before the second attempt; the wait before the third is twice as long.
type temporaryError struct {
	error
	after time.Duration
}

// Unwrap returns the error that the caller gets.
func (e temporaryError) Unwrap() error { return e.error }

// markUnavailable marks the error of a 503 response as temporary if the service asks for another
// attempt soon. It returns other errors unchanged.
func markUnavailable(res *http.Response, err error) error {
	seconds, parseErr := strconv.Atoi(res.Header.Get("Retry-After"))
	after := time.Duration(seconds) * time.Second
	if res.StatusCode != http.StatusServiceUnavailable || parseErr != nil || seconds < 0 || after > maxRetryAfter {
		return err
	}
	return temporaryError{err, after}
}

// markDisconnected marks err as temporary if the connection ended before the response was complete.
// It returns err unchanged if there was no connection or the request timed out.
func markDisconnected(err, cause error) error {
	var op *net.OpError
	switch {
	case snap.CodeOf(err) != snap.CodeUnreachable, errors.As(cause, &op) && op.Op == "dial", timedOut(cause):
		return err
	case errors.Is(cause, syscall.ECONNRESET), errors.Is(cause, syscall.EPIPE), strings.HasSuffix(cause.Error(), "EOF"):
		return temporaryError{err, 200 * time.Millisecond}
	}
	return err
}

// retry calls send. While send fails temporarily and mayRepeat is true, retry waits and calls it
// again, up to maxAttempts times in all.
func (c *Client) retry(ctx context.Context, mayRepeat bool, send func() (int, error)) (status int, err error) {
	for n := 1; ; n++ {
		status, err = send()
		var temporary temporaryError
		if !errors.As(err, &temporary) {
			return status, err
		}
		if !mayRepeat || n == maxAttempts {
			return status, temporary.error
		}
		if waitErr := c.wait(ctx, time.Duration(n)*temporary.after); ctx.Err() != nil {
			return 0, c.unreachable(ctx, waitErr)
		} else if waitErr != nil {
			return status, temporary.error
		}
	}
}

// Wait pauses for d. If ctx is done first, Wait returns its error at once.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
