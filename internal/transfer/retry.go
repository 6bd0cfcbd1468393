package transfer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/disk"
)

// maxAttempts is how often a part, a range or a call to the service is tried before the transfer
// fails. For a range, the count restarts after an attempt that received bytes.
const maxAttempts = 8

const runAgain = "run the same command again: it resumes where it stopped"

var errStalled = errors.New("no bytes were transferred")

// refusal is an error response from the object store.
type refusal struct {
	status  int
	code    string // of a problem document, or of S3's XML
	message string // of S3's XML
	after   time.Duration
	host    string
}

func (r *refusal) Error() string {
	if r.code == "" {
		return fmt.Sprintf("%s responded with status %d", r.host, r.status)
	}
	return fmt.Sprintf("%s responded with status %d (%s)", r.host, r.status, r.code)
}

// newRefusal reads the reason from the response. It never keeps the URL, which grants access.
func newRefusal(res *http.Response) *refusal {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 16<<10))
	r := &refusal{status: res.StatusCode, host: res.Request.URL.Host, after: retryAfter(res.Header)}
	var problem api.Problem
	var s3 struct{ Code, Message string }
	if json.Unmarshal(text, &problem) == nil {
		r.code = string(problem.Code)
	} else if xml.Unmarshal(text, &s3) == nil {
		r.code, r.message = s3.Code, strings.TrimSuffix(s3.Message, ".")
	}
	return r
}

// retryAfter parses the Retry-After header as seconds or a date (RFC 9110, 10.2.3). It returns at
// most a minute, and 0 if there is no valid header. A date is relative to the response's own Date.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	seconds, err := strconv.Atoi(text)
	after := time.Duration(seconds) * time.Second
	if err != nil {
		after = untilDate(text, h.Get("Date"))
	}
	return max(0, min(after, time.Minute))
}

// untilDate returns the time between two dates of a response, or 0 if one is invalid.
func untilDate(then, now string) time.Duration {
	to, err := http.ParseTime(then)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(now)
	if err != nil {
		return 0
	}
	return to.Sub(from)
}

// rejectsURL reports whether the object store says that the URL is invalid or expired, or that its
// object does not exist. Only the service knows the reason.
func (r *refusal) rejectsURL() bool {
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone},
		r.status) || r.code == "ExpiredToken" || r.code == "TokenRefreshRequired"
}

// clocksDiffer reports whether the object store says that the URL was signed with a clock that
// differs from its own, or too long ago. If a fresh URL gets the same response, the service's clock
// and the store's differ. The client's clock does not matter.
func (r *refusal) clocksDiffer() bool {
	switch r.code {
	case "RequestTimeTooSkewed", "RequestNotYetValid":
		return true
	case "AccessDenied": // S3 has no separate code for these two cases
		return r.message == "Request has expired" || r.message == "Request is not valid yet"
	}
	return false
}

// maxTries returns how many attempts are worthwhile after this response.
func (r *refusal) maxTries() int {
	if r.clocksDiffer() {
		return 2
	}
	switch r.status {
	case http.StatusInsufficientStorage, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed,
		http.StatusNotImplemented:
		return 1
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return 3 // a bit error in transit
	}
	return maxAttempts
}

// pause returns how long to wait before a retry. It grows with n, which counts attempts from 1.
func pause(n int, err error) time.Duration {
	var r *refusal
	if errors.As(err, &r) && r.after > 0 {
		return r.after
	}
	d := min(250*time.Millisecond<<(n-1), 15*time.Second)
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads retries; no secret depends on it
}

// isTemporary reports whether an error of a call to the service may be temporary.
func isTemporary(err error) bool {
	return slices.Contains([]snap.Code{snap.CodeUnreachable, snap.CodeUnavailable, snap.CodeRateLimited},
		snap.CodeOf(err))
}

// retry repeats a call to the service a limited number of times.
func retry[T any](ctx context.Context, o Options, call func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		out, err := call()
		if err == nil || !isTemporary(err) || n == maxAttempts {
			return out, err
		}
		if err := o.Wait(ctx, pause(n, err)); err != nil {
			return out, err
		}
	}
}

// Interrupted returns an error of code interrupted if the context of a transfer ended, otherwise
// err. The argument what names the transfer.
func Interrupted(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &snap.Error{Code: snap.CodeInterrupted, Detail: what + " was interrupted", Hint: runAgain,
		Cause: context.Cause(ctx)}
}

// forUser converts the error that stopped a transfer to one for the user.
func forUser(ctx context.Context, what string, err error) error {
	var known *snap.Error
	var r *refusal
	var untrusted *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Interrupted(ctx, what, err)
	case errors.As(err, &known):
		return err
	case disk.Full(err):
		return &snap.Error{Code: snap.CodeStorageFull, Detail: "the disk of this machine is full",
			Hint: "free some space, then " + runAgain, Cause: err}
	case errors.As(err, &r):
		return r.forUser(what)
	case errors.As(err, &untrusted):
		return &snap.Error{Code: snap.CodeUnreachable,
			Detail: what + " stopped: the certificate of the object store is not trusted: " + untrusted.Err.Error(),
			Hint:   "set cloud.ca_file, or SSL_CERT_FILE, to a file with the certificate of its authority",
			Cause:  untrusted}
	}
	network := isNetwork(err)
	var broken *url.Error
	if errors.As(err, &broken) {
		err = broken.Err // without the URL, which grants access
	}
	if network {
		return &snap.Error{Code: snap.CodeUnreachable,
			Detail: what + " stopped: the connection to the object store failed repeatedly", Hint: runAgain, Cause: err}
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (r *refusal) forUser(what string) error {
	e := &snap.Error{Code: snap.CodeUnavailable, Detail: what + " stopped: " + r.Error(), Hint: runAgain, Cause: r}
	switch r.status {
	case http.StatusInsufficientStorage:
		e.Code, e.Detail = snap.CodeStorageFull, what+" stopped: the object store is full"
		e.Hint = "free some space there, or ask its operator to; then " + runAgain
	case http.StatusRequestEntityTooLarge:
		e.Code, e.Hint = snap.CodeTooLarge, ""
	case http.StatusForbidden:
		if r.clocksDiffer() {
			e.Detail = what + " stopped: the object store's clock differs too much from the clock with which the " +
				"request was signed"
			e.Hint = "ask the service's operator to synchronize both clocks with NTP (with a storage profile, this " +
				"machine signs), then " + runAgain
		}
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		e.Code = snap.CodeChecksumMismatch
	}
	return e
}
