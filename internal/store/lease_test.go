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

// A process that stops ends its own leases, so that another one takes over its work at once.
func TestStoppedProcessEndsItsLeases(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.ok(w.RecordRunning(w.ctx, "one"))
		for work, holder := range map[string]string{"retention": "one", "prune": "two"} {
			_, err := w.Lease(w.ctx, work, holder, time.Hour)
			w.ok(err)
		}
		w.ok(w.RecordStopped(w.ctx, "one"))
		for work, want := range map[string]bool{"retention": true, "prune": false} {
			if held, err := w.Lease(w.ctx, work, "three", time.Hour); err != nil || held != want {
				t.Errorf("another process takes over %s: %v, %v; want %v", work, held, err, want)
			}
		}
		if n, _, err := w.Running(w.ctx); err != nil || n != 0 {
			t.Errorf("%d processes run, %v", n, err)
		}
	})
}
