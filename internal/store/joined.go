package store

import (
	"context"
	"sync"
)

// joined lets callers who wait at the same time share one read. A read serves
// only those who came before it began: who comes while one is running waits for
// the next. So everyone gets what was true after they asked, and however many
// ask, no more than two reads pass before they are answered.
type joined[T any] struct {
	read func() (T, error)

	mu      sync.Mutex
	running bool
	next    *round[T] // of those who came since the running read began
}

// round is one read and those who wait for it.
type round[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// get returns what a read found that began after the call, or the context's
// error.
func (j *joined[T]) get(ctx context.Context) (T, error) {
	j.mu.Lock()
	if j.next == nil {
		j.next = &round[T]{done: make(chan struct{})}
	}
	mine := j.next
	if !j.running {
		j.running = true
		go j.run()
	}
	j.mu.Unlock()
	select {
	case <-mine.done:
		return mine.value, mine.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// run reads until nobody waits.
func (j *joined[T]) run() {
	for {
		j.mu.Lock()
		now := j.next
		j.next = nil
		j.running = now != nil
		j.mu.Unlock()
		if now == nil {
			return
		}
		now.value, now.err = j.read()
		close(now.done)
	}
}
