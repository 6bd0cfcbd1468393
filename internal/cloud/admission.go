package cloud

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"snap"
	"snap/api"
	"snap/internal/limit"
)

// admission limits requests before any work is done for them: each address has a rate, and each
// class of requests has a gate. Health checks are never limited. Sign-in has a gate of its own, so
// that people can sign in while the API is overloaded.
type admission struct {
	limiter *limit.Limiter
	all     limit.Rate // of each address
	signIns limit.Rate
	keys    limit.Rate // of each credential

	requests  *gate
	signIn    *gate
	transfers *gate

	bodies   atomic.Int64 // bytes of request bodies in memory that wait for a gate
	refusals func(why string)
}

// maxBody is the most bytes of one request's body, unless it is a part of a snapshot. maxBodies is
// the most bytes of all bodies that wait for their gate.
const (
	maxBody   = 1 << 20
	maxBodies = 64 << 20
)

func newAdmission(l Limits, shared *limit.Limiter, refusals func(why string)) *admission {
	queued, wait := bound(l.QueuedRequests, defaultQueued), l.queueWait()
	return &admission{
		limiter:   shared,
		all:       rate(l.RequestsPerAddress, defaultPerAddress),
		signIns:   rate(l.SignInRequestsPerAddress, defaultSignIns),
		keys:      rate(l.RequestsPerCredential, defaultPerCredential),
		requests:  newGate(bound(l.ConcurrentRequests, atOnce()), queued, wait),
		signIn:    newGate(bound(l.ConcurrentSignIns, atOnce()), queued, wait),
		transfers: newGate(bound(l.ConcurrentTransfers, defaultTransfers), 0, wait),
		refusals:  refusals,
	}
}

// The classes of requests.
const (
	classHealth   = "health"
	classRequest  = "request"
	classSignIn   = "sign_in"
	classTransfer = "transfer"
)

// classOf returns the class of a request path.
func classOf(path string) string {
	switch {
	case path == "/healthz" || path == "/readyz":
		return classHealth
	case strings.HasPrefix(path, "/blobs/"):
		return classTransfer
	case strings.HasPrefix(path, "/auth/") || strings.HasPrefix(path, "/.well-known/") || path == api.PathAuthConfig:
		return classSignIn
	}
	return classRequest
}

// admitted wraps a handler in the admission.
func (s *Service) admitted(next http.Handler) http.Handler {
	a := s.admission
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class := classOf(r.URL.Path)
		if class == classHealth {
			next.ServeHTTP(w, r)
			return
		}
		if err := a.address(r, s.address(r), class); err != nil {
			a.refusals("rate")
			s.writeError(w, r, err)
			return
		}
		if class == classTransfer {
			s.transferred(w, r, next)
			return
		}
		s.gated(w, r, next, class)
	})
}

// address counts a request against the rate of its address.
func (a *admission) address(r *http.Request, address, class string) error {
	wait := a.limiter.Allow(r.Context(), "address:"+address, a.all)
	if wait == 0 && class == classSignIn {
		wait = a.limiter.Allow(r.Context(), "signin:"+address, a.signIns)
	}
	if wait > 0 {
		return tooOften("from your address", wait)
	}
	return nil
}

// credential counts a request against the rate of its credential.
func (a *admission) credential(r *http.Request, c snap.Caller) error {
	name := "credential:" + string(c.Credential.Kind) + ":" + strconv.FormatInt(c.Credential.ID, 10)
	if wait := a.limiter.Allow(r.Context(), name, a.keys); wait > 0 {
		a.refusals("rate")
		return tooOften("with this credential", wait)
	}
	return nil
}

// transferred serves requests that transfer bytes. It limits how many run at once, but not how long
// a transfer takes while bytes move.
func (s *Service) transferred(w http.ResponseWriter, r *http.Request, next http.Handler) {
	leave, err := s.admission.transfers.enter(r.Context())
	if err != nil {
		s.admission.refusals("overload")
		s.writeError(w, r, busy())
		return
	}
	defer leave()
	next.ServeHTTP(newMoving(w, r, stall), r)
}

// gated serves all other requests. A request takes a place when it has arrived completely and
// returns it when its answer begins, so a client that sends or reads slowly holds no place.
func (s *Service) gated(w http.ResponseWriter, r *http.Request, next http.Handler, class string) {
	a := s.admission
	release, err := a.arrived(r)
	if err == nil {
		defer release()
		g := a.requests
		if class == classSignIn {
			g = a.signIn
		}
		var leave func()
		if leave, err = g.enter(r.Context()); err == nil {
			out := &leaving{ResponseWriter: w, leave: sync.OnceFunc(leave)}
			defer out.leave()
			next.ServeHTTP(out, r)
			return
		}
	}
	if errors.Is(err, errBusy) {
		a.refusals("overload")
		err = busy()
	}
	s.writeError(w, r, err)
}

var errBody = &snap.Error{Code: snap.CodeTooLarge, Detail: "the body of the request has more than 1 MiB",
	Hint: "send the bytes of snapshots to the URLs that /snapshots/{id}/parts returns"}

// arrived reads a request's body into memory, where it stays until release is called. It fails with
// too_large, and with errBusy when all waiting bodies together are too large.
func (a *admission) arrived(r *http.Request) (release func(), err error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return func() {}, nil
	}
	if r.ContentLength > maxBody {
		return nil, errBody
	}
	var body bytes.Buffer
	var held int64
	release = func() { a.bodies.Add(-held) }
	piece := make([]byte, 4<<10)
	for {
		n, err := r.Body.Read(piece)
		held += int64(n)
		if total := a.bodies.Add(int64(n)); total > maxBodies {
			release()
			return nil, errBusy
		}
		body.Write(piece[:n])
		if held > maxBody {
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

// leaving is a response writer that returns the request's place when the answer begins.
type leaving struct {
	http.ResponseWriter
	leave func()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *leaving) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetReadDeadline does nothing. The whole request has arrived, so a deadline would only end the
// watch for a disconnected client, and with it the connection.
func (*leaving) SetReadDeadline(time.Time) error { return nil }

// WriteHeader implements http.ResponseWriter.
func (w *leaving) WriteHeader(status int) {
	w.leave()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *leaving) Write(p []byte) (int, error) {
	w.leave()
	return w.ResponseWriter.Write(p)
}
