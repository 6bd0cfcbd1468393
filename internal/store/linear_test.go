package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"snap"
	"snap/internal/store"
)

// Changes are effective immediately (SPEC 3), with several replicas: once a share, an unshare or a
// role change has returned, no request that begins later, at any replica and through any door, uses
// the earlier state. Concurrent callers of three stores over one PostgreSQL make a history, and it
// must be linearizable as one switch for every way to see a snapshot.
func TestReplicasAreLinearizable(t *testing.T) {
	t.Parallel()
	o := store.Options{URL: postgres(t)}
	w := newWorld(t, o)
	replicas := append(openAll(t, o, 2), w.Store)
	switches := newSwitches(w)
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	start := time.Now()
	for client := range 9 {
		r := rand.New(rand.NewPCG(1, uint64(client)))
		wg.Go(func() {
			for range 60 {
				which := r.IntN(len(switches))
				in := input{which: which, write: r.IntN(3) == 0, on: r.IntN(2) == 0}
				called := time.Since(start)
				seen, err := switches[which].do(t.Context(), replicas[r.IntN(len(replicas))], in, r.IntN(3))
				returned := time.Since(start)
				if err != nil {
					t.Errorf("switch %d, %+v: %v", which, in, err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: client, Input: in, Output: seen,
					Call:   int64(called),
					Return: int64(returned)})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !porcupine.CheckOperations(switchModel, history) {
		t.Error("the history is not linearizable: someone saw what had been unshared, or did not see what had been " +
			"shared")
	}
}

// The model detects a read that begins after an unshare has returned and still sees the snapshot.
func TestLinearizabilityTestFindsAStaleRead(t *testing.T) {
	t.Parallel()
	op := func(call int64, in input, seen bool) porcupine.Operation {
		return porcupine.Operation{Input: in, Output: seen, Call: call, Return: call + 1}
	}
	stale := []porcupine.Operation{
		op(1, input{write: true, on: true}, false), op(3, input{}, true), op(5, input{write: true, on: false}, false),
		op(7, input{}, true),
	}
	if porcupine.CheckOperations(switchModel, stale) {
		t.Error("a look at what had been unshared passes as linearizable")
	}
	if !porcupine.CheckOperations(switchModel, stale[:3]) {
		t.Error("a history without such a look does not pass")
	}
}

// input is one operation on a switch: setting or reading it.
type input struct {
	which     int
	write, on bool
}

// switchModel is a boolean for every switch.
var switchModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, 4)
		for _, op := range history {
			which := op.Input.(input).which
			parts[which] = append(parts[which], op)
		}
		return parts
	},
	Init: func() any { return false },
	Step: func(state, in, out any) (bool, any) {
		if i := in.(input); i.write {
			return true, i.on
		}
		return out.(bool) == state.(bool), state
	},
}

// toggle is one way to let a viewer see one snapshot.
type toggle struct {
	viewer int64 // user
	sn     snap.Snapshot
	set    func(ctx context.Context, s *store.Store, on bool) error
}

// newSwitches makes one snapshot for each way to see.
func newSwitches(w *world) []toggle {
	adam := w.user(w.acme, "adam", snap.RoleAdmin)
	mia := w.user(w.acme, "mia", snap.RoleMember, "eng")
	gail := w.user(w.globex, "gail", snap.RoleViewer)
	rose := w.user(w.acme, "rose", snap.RoleMember)
	pick := func(on bool, yes, no func() error) error {
		if on {
			return yes()
		}
		return no()
	}
	var sns []snap.Snapshot
	for range 4 {
		sns = append(sns, w.push(adam, "shop", snap.TypeSnapshot))
	}
	return []toggle{
		{mia.User.ID, sns[0], func(ctx context.Context, s *store.Store, on bool) error {
			return pick(on, func() error { return s.Share(ctx, adam, sns[0]) },
				func() error { return s.Unshare(ctx, adam, sns[0]) })
		}},
		{mia.User.ID, sns[1], func(ctx context.Context, s *store.Store, on bool) error {
			return pick(on, func() error { _, err := s.ShareGroup(ctx, adam, sns[1], "eng"); return err },
				func() error { return s.UnshareGroup(ctx, adam, sns[1], "eng") })
		}},
		{gail.User.ID, sns[2], func(ctx context.Context, s *store.Store, on bool) error {
			return pick(on,
				func() error { _, _, err := s.ShareOrg(ctx, adam, sns[2], "globex", time.Time{}); return err },
				func() error { return s.UnshareOrg(ctx, adam, sns[2], "globex") })
		}},
		{rose.User.ID, sns[3], func(ctx context.Context, s *store.Store, on bool) error {
			return pick(on, func() error { return s.SetRole(ctx, rose.User.ID, snap.RoleAdmin) },
				func() error { return s.SetRole(ctx, rose.User.ID, snap.RoleMember) })
		}},
	}
}

// do carries out an operation at one replica, as a request does: it reads the caller again and then
// tries one of three doors.
func (g toggle) do(ctx context.Context, s *store.Store, in input, door int) (seen bool, err error) {
	if in.write {
		return false, g.set(ctx, s, in.on)
	}
	c, err := s.CallerOfUser(ctx, g.viewer)
	if err != nil {
		return false, err
	}
	switch door {
	case 0:
		_, err = s.Snapshot(ctx, c, g.sn.ID)
	case 1:
		_, err = s.Bytes(ctx, c, g.sn.ID)
	default:
		page, err := s.Snapshots(ctx, c, store.Query{})
		return slices.ContainsFunc(page.Items, func(sn snap.Snapshot) bool { return sn.ID == g.sn.ID }), err
	}
	if errors.Is(err, snap.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
