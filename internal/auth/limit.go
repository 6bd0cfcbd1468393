package auth

import (
	"sync"
	"time"
)

// An address may fail this often within the window before it is told to wait.
// Every replica counts for itself: a write to the database for every wrong key
// would serve an attacker.
const (
	maxFailures   = 60
	failureWindow = time.Minute
	maxTracked    = 100_000 // addresses, so that a flood does not fill the memory
)

// limiter counts events by key in fixed windows.
type limiter struct {
	max    int
	window time.Duration
	now    func() time.Time

	mu    sync.Mutex
	since time.Time
	count map[string]int
}

func newLimiter(max int, window time.Duration, now func() time.Time) *limiter {
	return &limiter{max: max, window: window, now: now, count: map[string]int{}}
}

// charge counts one event and reports whether the key is still within its limit.
func (l *limiter) charge(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.since) >= l.window || len(l.count) >= maxTracked {
		l.since = now
		clear(l.count)
	}
	l.count[key]++
	return l.count[key] <= l.max
}
