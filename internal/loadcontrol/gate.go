package loadcontrol

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"snap"
)

// gate limits how many requests of one class are served concurrently. A limited number of further
// requests wait briefly. The rest are refused immediately and asked to retry, so that an overloaded
// service keeps its throughput. A nil gate limits nothing.
type gate struct {
	slots      chan struct{} // a semaphore
	waiting    atomic.Int64
	maxWaiting int64
	wait       time.Duration // maximum waiting time
}

// newGate returns a gate for this number of concurrent requests, or nil if the number is 0.
func newGate(concurrent, maxWaiting int, wait time.Duration) *gate {
	if concurrent <= 0 {
		return nil
	}
	return &gate{slots: make(chan struct{}, concurrent), maxWaiting: int64(maxWaiting), wait: wait}
}

// errBusy means that there is no room for a request.
var errBusy = errors.New("the service is overloaded")

// enter waits until the request can be served. It fails with errBusy if there is no room, and with
// the context's error if the client has disconnected.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.maxWaiting {
		return nil, errBusy
	}
	timeout := time.NewTimer(g.wait)
	defer timeout.Stop()
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	case <-timeout.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (g *gate) leave() { <-g.slots }

// busy returns the error for a request that was refused. Its delay is random, so that the clients
// do not all retry at the same moment.
func busy() error {
	return &snap.Error{
		Code:   snap.CodeUnavailable,
		Detail: "the service is overloaded",
		Hint:   "try again in a few seconds",
		//nolint:gosec // it only spreads the retries
		RetryAfter: time.Second + time.Duration(rand.Int64N(int64(2*time.Second))),
		Cause:      errBusy,
	}
}

// tooOften returns the error for a client that exceeds a rate.
func tooOften(source string, wait time.Duration) error {
	return &snap.Error{
		Code:       snap.CodeRateLimited,
		Detail:     "too many requests " + source,
		Hint:       "wait as long as Retry-After says, and send fewer requests",
		RetryAfter: wait,
	}
}
