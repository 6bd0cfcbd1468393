package local

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// oftenPercent is how much the heap may grow between two collections while [collectOften] applies.
const oftenPercent = 50

var collecting struct {
	sync.Mutex
	users  int
	before int // the percentage to restore
}

// collectOften makes this process collect garbage more often, until all callers have called the
// function that it returned to them. The last of these calls also collects, because the heap could
// otherwise double before the next collection. collectOften does nothing if the environment sets
// GOGC.
func collectOften() (done func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	c := &collecting
	c.Lock()
	defer c.Unlock()
	if c.users++; c.users == 1 {
		c.before = debug.SetGCPercent(oftenPercent)
	}
	return func() {
		c.Lock()
		defer c.Unlock()
		if c.users--; c.users == 0 {
			runtime.GC()
			debug.SetGCPercent(c.before)
		}
	}
}
