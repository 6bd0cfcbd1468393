package loadcontrol

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"snap"
)

// gate limits how many requests of one class are worked on at once. A limited number of further
// requests wait briefly. The rest are refused at once and asked to retry, so that an overloaded
// service keeps its throughput. A nil gate limits nothing.
type gate struct {
	slots   chan struct{}
	waiting atomic.Int64
	most    int64         // of waiting requests
	wait    time.Duration // maximum waiting time
}

// newGate returns a gate for at requests at once, or nil if at is 0.
func newGate(at, most int, wait time.Duration) *gate {
	if at <= 0 {
		return nil
	}
	return &gate{slots: make(chan struct{}, at), most: int64(most), wait: wait}
}

// errBusy refuses a request that there is no room for.
var errBusy = errors.New("the service is overloaded")

// enter waits for a place. It fails with errBusy, and with the context's error when the client has
// disconnected.
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
	if g.waiting.Add(1) > g.most {
		return nil, errBusy
	}
	patience := time.NewTimer(g.wait)
	defer patience.Stop()
	select {
	case g.slots <- struct{}{}:
		return g.leave, nil
	case <-patience.C:
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
func tooOften(what string, wait time.Duration) error {
	return &snap.Error{
		Code:       snap.CodeRateLimited,
		Detail:     "too many requests " + what,
		Hint:       "wait as long as Retry-After says, and send fewer requests",
		RetryAfter: wait,
	}
}
