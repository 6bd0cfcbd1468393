package blob

import (
	"context"
	"sync"
	"time"
)

// Tasks holds work on uploads that may take longer than the request that started it. A later
// request for the same upload joins the work, which continues even if nobody waits for it. The zero
// value is ready to use.
type Tasks struct {
	mu      sync.Mutex
	running map[string]*task
}

type task struct {
	began time.Time
	done  chan struct{}
	err   error // valid once done is closed
}

// Join starts the work on an upload, unless it is already running, and waits until the work ends or
// limit has passed since it started. It returns false if the work is still running. The work's
// context does not end with ctx.
func (t *Tasks) Join(ctx context.Context, upload string, limit time.Duration,
	work func(context.Context) error) (ended bool, err error) {
	r := t.begin(context.WithoutCancel(ctx), upload, work)
	left := limit - time.Since(r.began)
	if left <= 0 {
		return false, nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-r.done:
		return true, r.err
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C:
		return false, nil
	}
}

func (t *Tasks) begin(ctx context.Context, upload string, work func(context.Context) error) *task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.running[upload]; r != nil {
		return r
	}
	r := &task{began: time.Now(), done: make(chan struct{})}
	if t.running == nil {
		t.running = map[string]*task{}
	}
	t.running[upload] = r
	go func() {
		r.err = work(ctx)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.running, upload)
		close(r.done)
	}()
	return r
}
