package store_test

import (
	"testing"
	"time"
)

// A lease has one holder at a time, who can extend it. It ends when its time is over.
func TestLeasesHaveOneHolder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		for _, step := range []struct {
			after  time.Duration
			holder string
			held   bool
		}{
			{0, "one", true},
			{59 * time.Second, "two", false},
			{0, "one", true}, // extended by a minute
			{59 * time.Second, "two", false},
			{time.Second, "two", true},
			{0, "one", false},
		} {
			w.clock.Advance(step.after)
			held, err := w.Lease(w.ctx, "work", step.holder, time.Minute)
			w.ok(err)
			if held != step.held {
				t.Errorf("%s holds the lease: %v, want %v", step.holder, held, step.held)
			}
		}
	})
}
