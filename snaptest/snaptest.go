// Package snaptest gives Go tests databases of their own, made from a snapshot that snapcli has on
// this machine:
//
//	var shop = snaptest.For("shop", snaptest.Sanitized())
//
//	func TestCheckout(t *testing.T) {
//		t.Parallel()
//		db, err := sql.Open("pgx", shop.URL(t))
//		...
//	}
//
// The target and its databases come from snapcli's configuration. The first test loads the snapshot
// into a template, and every test gets a copy of it. The copy is dropped when the test ends, or by
// the next snapcli command if the test process was killed. While tests run, copies for later tests
// are made in advance.
package snaptest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"snap"
	"snap/internal/local"
)

// Pool makes databases for the tests of a process. It is safe for concurrent use. Create a Pool
// with [For].
type Pool struct {
	target string
	ahead  int
	o      local.CloneOptions

	refilling sync.Mutex // held while copies are made in advance
}

// Option configures [For].
type Option func(*Pool)

// Sanitized restricts a pool to masked snapshots.
func Sanitized() Option { return func(p *Pool) { p.o.Type = snap.TypeSanitized } }

// Snapshot selects the snapshot with this name instead of the latest one.
func Snapshot(name string) Option { return func(p *Pool) { p.o.Snapshot = name } }

// Ahead sets how many copies are made in advance. The default is 2.
func Ahead(n int) Option { return func(p *Pool) { p.ahead = n } }

// For returns a pool of databases with the latest snapshot of a target. It connects to nothing yet.
func For(target string, options ...Option) *Pool {
	p := &Pool{target: target, ahead: 2}
	for _, set := range options {
		set(p)
	}
	return p
}

// URL returns the URL, including the password, of a database that only this test uses. The database
// is dropped when the test and its subtests end. URL fails the test if there is no snapshot or no
// server.
func (p *Pool) URL(t testing.TB) string {
	t.Helper()
	agent, err := local.Open(local.Options{})
	if err != nil {
		t.Fatal(explain(err))
	}
	b, err := agent.Borrow(context.WithoutCancel(t.Context()), p.target, p.o, nil)
	if err != nil {
		t.Fatal(explain(err))
	}
	stop := p.refill(agent)
	t.Cleanup(func() {
		stop()
		if err := b.Return(context.Background()); err != nil {
			t.Error(explain(err))
		}
	})
	url, err := agent.SecretURL(t.Context(), b.Cloned)
	if err != nil {
		t.Fatal(explain(err))
	}
	return url
}

// Setenv sets DATABASE_URL to the URL of a database that only this test uses. Like t.Setenv, it
// cannot be used in parallel tests.
func (p *Pool) Setenv(t testing.TB) {
	t.Helper()
	t.Setenv("DATABASE_URL", p.URL(t))
}

// refill begins to make copies in advance, unless another test is already making some. The returned
// function stops it.
func (p *Pool) refill(agent *local.Agent) (stop func()) {
	if p.ahead <= 0 || !p.refilling.TryLock() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.refilling.Unlock()
		_, _ = agent.WarmClones(ctx, p.target, p.ahead, p.o, nil) // if this fails, the next test makes its own copy
	}()
	return func() {
		cancel()
		<-done
	}
}

// explain returns an error's sentence and hint.
func explain(err error) string {
	var e *snap.Error
	if errors.As(err, &e) && e.Hint != "" {
		return err.Error() + "; " + e.Hint
	}
	return err.Error()
}
