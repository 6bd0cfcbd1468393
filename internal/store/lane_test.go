package store_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// endingContext ends after a number of calls that ask whether it has ended.
type endingContext struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func (c *endingContext) asked() {
	if c.left.Add(-1) <= 0 {
		c.cancel()
	}
}

func (c *endingContext) Done() <-chan struct{} {
	c.asked()
	return c.Context.Done()
}

func (c *endingContext) Err() error {
	c.asked()
	return c.Context.Err()
}

// A service that stops while it takes a lane gives the lane back, at every step, so that the next
// replica sends at once.
func TestLanesAreReturnedAtAStop(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleOwner)
		_, err := w.AddWebhook(w.ctx, alice, store.Webhook{URL: "https://hooks.test", Secrets: [][]byte{{1}},
			Events: []snap.AuditAction{snap.AuditPushed}})
		w.ok(err)
		for range 3 {
			w.push(alice, "shop", snap.TypeSnapshot)
		}
		w.sequence()
		stopped := 0
		for asks := int64(1); ; asks++ {
			lanes, err := w.Lanes(w.ctx)
			if w.ok(err); len(lanes) != 1 {
				t.Fatalf("stopped after %d questions, %d lanes wait", asks-1, len(lanes))
			}
			inner, cancel := context.WithCancel(w.ctx)
			ctx := &endingContext{Context: inner, cancel: cancel}
			ctx.left.Store(asks)
			l, held, err := w.ClaimLane(ctx, lanes[0], time.Minute, 10)
			cancel()
			if err == nil {
				if !held || len(l.Messages) != 3 || stopped < 5 {
					t.Errorf("held %v with %d messages, stopped %d times before", held, len(l.Messages), stopped)
				}
				return
			}
			stopped++
		}
	})
}
