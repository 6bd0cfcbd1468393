package cloud_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// Changes are effective immediately, with several replicas (SPEC 3, 5.3 rule 4). Somebody can see a
// snapshot because of the org-wide share, their role, account, key or session, or a share with
// another organization that expires. Once that reason has ended, no request that begins later, at
// any process, sees the snapshot. Concurrent callers ask three processes over one PostgreSQL while
// one of the processes, and then the database, is killed and restarted.
func TestRevocationIsImmediateAcrossProcesses(t *testing.T) {
	t.Parallel()
	database, crash := servertest.CrashingPostgres(t)
	dir := t.TempDir()
	setup := cloudtest.Start(t, cloudtest.Options{DatabaseURL: database, DataDir: dir})
	s := &site{Cloud: setup, t: t, began: time.Now()}
	for range 3 {
		s.replicas = append(s.replicas, startReplica(t, database, dir, setup.URL))
	}
	s.began = time.Now()
	levers := s.levers()
	var running sync.WaitGroup
	var stop atomic.Bool
	for caller := range 6 {
		random := rand.New(rand.NewPCG(7, uint64(caller)))
		running.Go(func() {
			for asked := 0; !stop.Load() || asked < 40; asked++ {
				l := levers[random.IntN(len(levers))]
				r := s.replicas[random.IntN(3)]
				l.pull(r, random)
				for { // a caller without a response asks again once a process is running
					if _, err := r.client(api.MountAgent, s.owner).Me(context.Background()); !unanswered(err) {
						break
					}
				}
			}
		})
	}
	s.replicas[0].kill()
	s.replicas[0].start()
	crash()
	s.replicas[1].kill()
	s.replicas[1].start()
	stop.Store(true)
	running.Wait()
	for _, l := range levers {
		l.checkForever(s.replicas)
		l.judge(t)
	}
}

// site is a service of several processes.
type site struct {
	*cloudtest.Cloud
	t        *testing.T
	replicas []*replica
	began    time.Time
	owner    string // key of the organization's owner
	users    int
}

// lever is one reason for which somebody can see a snapshot, with the attempts of concurrent
// callers and the responses to them.
type lever struct {
	name string
	set  func(r *replica, on bool) error // if nil, only time sets it
	once bool                            // it can be ended but not restored
	look func(r *replica, door int) error
	end  time.Time // when time ends it

	began         time.Time
	mu            sync.Mutex
	used          bool // mayEnd was called
	operations    []porcupine.Operation
	looks, writes int
	wrong         []error
}

// pull sets the lever, or looks.
func (l *lever) pull(r *replica, random *rand.Rand) {
	if l.set != nil && random.IntN(3) == 0 && l.mayEnd() {
		l.write(r, !l.once && random.IntN(2) == 0)
		return
	}
	l.see(r, random.IntN(3))
}

// mayEnd reports whether the lever may be set. A lever that cannot be restored may be set only
// once.
func (l *lever) mayEnd() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.used
	l.used = true
	return !l.once || first
}

// checkForever ends the lever for good, and then asks every process.
func (l *lever) checkForever(replicas []*replica) {
	if l.set != nil {
		l.write(replicas[0], false)
	}
	for l.end.After(time.Now()) {
		l.see(replicas[0], 0)
	}
	for _, r := range replicas {
		l.see(r, 0)
	}
}

// write sets the lever. If no response came, the change may have been made, at any time
// from then on.
func (l *lever) write(r *replica, on bool) {
	called := time.Since(l.began)
	err := l.set(r, on)
	returned := time.Since(l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil || l.once && snap.CodeOf(err) == snap.CodeNotFound: // ended before
		l.writes++
	case unanswered(err) || store.Unavailable(err):
		returned = time.Hour
	default:
		l.wrong = append(l.wrong, fmt.Errorf("set to %v: %w", on, err))
		returned = time.Hour
	}
	l.operations = append(l.operations, porcupine.Operation{ClientId: len(l.operations), Input: change{on},
		Call: int64(called), Return: int64(returned)})
}

// see looks for the snapshot through one of the doors. A look without a response has no result. The
// replicas limit only requests with invalid credentials, so the code rate_limited is a refusal.
func (l *lever) see(r *replica, door int) {
	called := time.Since(l.began)
	err := l.look(r, door)
	returned := time.Since(l.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && !slices.Contains([]snap.Code{snap.CodeNotFound, snap.CodeUnauthenticated, snap.CodeRateLimited},
		snap.CodeOf(err)) {
		if !unanswered(err) {
			l.wrong = append(l.wrong, fmt.Errorf("look through door %d: %w", door, err))
		}
		return
	}
	l.looks++
	l.operations = append(l.operations, porcupine.Operation{ClientId: len(l.operations), Output: err == nil,
		Call: int64(called), Return: int64(returned)})
}

// change is the input of an operation that sets the lever. A look has no input.
type change struct{ on bool }

// judge checks that the history is that of a single switch: every look sees the latest setting.
func (l *lever) judge(t *testing.T) {
	t.Helper()
	for _, err := range l.wrong {
		t.Errorf("%s: %v", l.name, err)
	}
	if l.looks < 5 || l.set != nil && l.writes == 0 {
		t.Errorf("%s: only %d looks and %d writes were answered", l.name, l.looks, l.writes)
	}
	if !l.end.IsZero() {
		at := int64(l.end.Sub(l.began))
		l.operations = append(l.operations, porcupine.Operation{ClientId: len(l.operations), Input: change{false},
			Call:   at,
			Return: at + int64(time.Millisecond)})
	}
	model := porcupine.Model{
		Init: func() any { return l.once || !l.end.IsZero() },
		Step: func(state, in, out any) (bool, any) {
			if c, write := in.(change); write {
				return true, c.on
			}
			return out == state, state
		},
	}
	if result := porcupine.CheckOperationsTimeout(model, l.operations, servertest.Patience); result != porcupine.Ok {
		t.Errorf("%s: the history of %d looks and %d writes is not linearizable (%s)", l.name, l.looks, l.writes,
			result)
	}
}

// unanswered reports whether the service or its database was down.
func unanswered(err error) bool {
	switch snap.CodeOf(err) {
	case snap.CodeUnreachable, snap.CodeUnavailable:
		return true
	}
	return false
}
