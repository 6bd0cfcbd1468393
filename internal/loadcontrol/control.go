// Package loadcontrol limits the load that the service accepts, before any work is done for a
// request.
//
// Every address and every credential has a rate limit, and every class of requests has a gate that
// bounds how many of them run at once. Health checks are never limited. Sign-in has a gate of its
// own, so that people can sign in while the API is overloaded. A refused client is asked to retry.
package loadcontrol

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"snap"
	"snap/internal/limit"
)

// Class is a class of requests, which share a gate.
type Class int

// The classes.
const (
	Request  Class = iota // a request of the API, or for a page
	SignIn                // a request of the auth service
	Transfer              // the bytes of a snapshot, or an export of the audit log
	Health                // a health check, which is never limited
)

// Limits bounds the load. Zero means no limit, except for Queued and Wait.
type Limits struct {
	// Requests per minute, counted across all replicas.
	PerAddress, SignInsPerAddress, PerCredential limit.Rate
	// Concurrent requests in this process.
	Requests, SignIns, Transfers int
	// Queued is how many requests of a class may wait at its gate, and Wait is how long they may
	// wait. Transfers never wait.
	Queued int
	Wait   time.Duration
}

// Options holds the arguments of [New] other than the limits.
type Options struct {
	Limiter *limit.Limiter
	Class   func(*http.Request) Class
	Address func(*http.Request) string // returns the client's address
	// Refused counts a refusal, for a reason: "rate" or "overload".
	Refused func(reason string)
	// Fail responds to a request with an error.
	Fail func(http.ResponseWriter, *http.Request, error)
}

// Control limits requests. It is safe for concurrent use.
type Control struct {
	Options
	limits    Limits
	requests  *gate
	signIns   *gate
	transfers *gate
	bodies    atomic.Int64 // bytes of request bodies in memory
}

// New returns the control for these limits.
func New(l Limits, o Options) *Control {
	return &Control{Options: o, limits: l,
		requests:  newGate(l.Requests, l.Queued, l.Wait),
		signIns:   newGate(l.SignIns, l.Queued, l.Wait),
		transfers: newGate(l.Transfers, 0, l.Wait),
	}
}

// Wrap returns a handler that applies the limits and then calls next.
func (c *Control) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		class := c.Class(r)
		if class == Health {
			next.ServeHTTP(w, r)
			return
		}
		if err := c.countAddress(r, class); err != nil {
			c.refuse(w, r, "rate", err)
			return
		}
		switch class {
		case Transfer:
			c.serveTransfer(w, r, next)
		case SignIn:
			c.serveGated(w, r, next, c.signIns)
		default:
			c.serveGated(w, r, next, c.requests)
		}
	})
}

func (c *Control) refuse(w http.ResponseWriter, r *http.Request, reason string, err error) {
	c.Refused(reason)
	c.Fail(w, r, err)
}

// countAddress counts a request against the rates of its address.
func (c *Control) countAddress(r *http.Request, class Class) error {
	address := c.Address(r)
	wait := c.Limiter.Allow(r.Context(), "address:"+address, c.limits.PerAddress)
	if wait == 0 && class == SignIn {
		wait = c.Limiter.Allow(r.Context(), "signin:"+address, c.limits.SignInsPerAddress)
	}
	if wait > 0 {
		return tooOften("from your address", wait)
	}
	return nil
}

// CountCredential counts a request against the rate of the caller's credential. It fails with
// rate_limited.
func (c *Control) CountCredential(ctx context.Context, caller snap.Caller) error {
	name := "credential:" + string(caller.Credential.Kind) + ":" + strconv.FormatInt(caller.Credential.ID, 10)
	if wait := c.Limiter.Allow(ctx, name, c.limits.PerCredential); wait > 0 {
		c.Refused("rate")
		return tooOften("with this credential", wait)
	}
	return nil
}

// serveTransfer limits how many transfers run at once, but not how long one takes while bytes move.
func (c *Control) serveTransfer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	leave, err := c.transfers.enter(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	defer leave()
	next.ServeHTTP(WithStallTimeout(w, r, stallTimeout), r)
}

// serveGated serves a request that is not a transfer. A request enters the gate when it has arrived
// completely and leaves it when its response begins, so a slow client does not keep other requests
// waiting.
func (c *Control) serveGated(w http.ResponseWriter, r *http.Request, next http.Handler, g *gate) {
	release, err := c.readBody(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	defer release()
	leave, err := g.enter(r.Context())
	if err != nil {
		c.fail(w, r, err)
		return
	}
	out := &Response{ResponseWriter: w, Before: sync.OnceFunc(leave), Arrived: true}
	defer out.Before()
	next.ServeHTTP(out, r)
}

// fail responds to a request that was not served, and counts it as refused if the service is busy.
func (c *Control) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errBusy) {
		c.refuse(w, r, "overload", busy())
		return
	}
	c.Fail(w, r, err)
}
