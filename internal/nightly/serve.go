package nightly

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Serve starts a turn of every task at every tick until ctx ends, and then waits for the runs to
// stop. Tasks run concurrently, but a target has only one turn at a time. report receives the
// errors that prevented a turn; an error that repeats is reported once.
func (a *Agent) Serve(ctx context.Context, ticks <-chan time.Time, tasks func() []Task,
	report func(target string, err error)) {
	s := server{agent: a, working: map[string]bool{}, last: map[string]string{}, report: report}
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

// server tracks the targets that are being worked on.
type server struct {
	agent  *Agent
	report func(string, error)
	wait   sync.WaitGroup

	mu      sync.Mutex
	working map[string]bool
	last    map[string]string // last error by target
}

// start starts a turn of a task unless one is running.
func (s *server) start(ctx context.Context, t Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.working[t.Target] {
		return
	}
	s.working[t.Target] = true
	s.wait.Go(func() {
		_, err := s.agent.Turn(ctx, t)
		s.finish(ctx, t.Target, err)
	})
}

func (s *server) finish(ctx context.Context, target string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working[target] = false
	text := ""
	if err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		text = err.Error()
	}
	if text != "" && text != s.last[target] {
		s.report(target, err)
	}
	s.last[target] = text
}
