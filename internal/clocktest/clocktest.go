// Package clocktest provides a clock for tests. It is separate from the package that starts the
// service, so that a test that needs only the time does not compile the whole service.
package clocktest

import (
	"sync"
	"time"
)

// Clock is a clock that tests move. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// New returns a clock that shows this time until it is moved.
func New(start time.Time) *Clock { return &Clock{now: start.UTC()} }

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
