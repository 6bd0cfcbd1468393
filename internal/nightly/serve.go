package nightly

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Serve takes a turn of every task at every tick until ctx ends, and then waits for the runs to
// stop. Tasks run at the same time, each target once. trouble receives errors that prevented a turn,
// each once until it changes.
func (a *Agent) Serve(ctx context.Context, ticks <-chan time.Time, tasks func() []Task,
	trouble func(target string, err error)) {
	s := server{agent: a, working: map[string]bool{}, last: map[string]string{}, trouble: trouble}
	defer s.wait.Wait()
	for {
		for _, t := range tasks() {
			s.start(ctx, t)
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
	}
}

// server knows the targets that are being worked on.
type server struct {
	agent   *Agent
	trouble func(string, error)
	wait    sync.WaitGroup

	mu      sync.Mutex
	working map[string]bool
	last    map[string]string // last error by target
}

// start takes a turn unless one is being taken.
func (s *server) start(ctx context.Context, t Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[t.Target] {
		return
	}
	s.working[t.Target] = true
	s.wait.Go(func() {
		_, err := s.agent.Turn(ctx, t)
		s.ended(ctx, t.Target, err)
	})
}

func (s *server) ended(ctx context.Context, target string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working[target] = false
	text := ""
	if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		text = err.Error()
	}
	if text != "" && text != s.last[target] {
		s.trouble(target, err)
	}
	s.last[target] = text
}
