package clone

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"snap/internal/engine"
)

var errNoServer = errors.New("no server")

// unreachable is a server that does not respond.
type unreachable struct{ engine.Cloner }

func (unreachable) Named(server, name string) (string, error) { return server + "/" + name, nil }
func (unreachable) Drop(context.Context, string) error        { return errNoServer }
func connect(s Source) (engine.Cloner, string, error)         { return unreachable{}, s.Server, nil }

// A drop that failed can be repeated. Even after that, a clone whose server is gone can be
// forgotten.
func TestForgetAfterAFailedDrop(t *testing.T) {
	t.Parallel()
	r := Open(Options{Dir: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler), Connect: connect})
	c := Clone{ID: "a_1", Name: "a", Kind: Named, State: Ready, Expires: time.Now().Add(time.Hour)}
	if err := r.change(func(rec *record) error { rec.Clones = []Clone{c}; return nil }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Drop(t.Context(), "a"); !errors.Is(err, errNoServer) {
			t.Fatalf("dropped, or failed for another reason: %v", err)
		}
	}
	if _, err := r.Forget("a"); err != nil {
		t.Error(err)
	}
}

// twoServers is two servers, of which one responds only after the other has dropped a clone.
type twoServers struct {
	engine.Cloner
	dropped chan struct{}
}

func (twoServers) Named(server, _ string) (string, error) { return server, nil }

func (s twoServers) Drop(_ context.Context, server string) error {
	if server == "slow" {
		<-s.dropped
		return context.DeadlineExceeded
	}
	close(s.dropped)
	return nil
}

// A server that does not respond delays neither the clean-up of another server nor, for a minute,
// the next commands.
func TestSweepWaitsForNoOtherServer(t *testing.T) {
	t.Parallel()
	servers := twoServers{dropped: make(chan struct{})}
	r := Open(Options{Dir: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Connect: func(s Source) (engine.Cloner, string, error) { return servers, s.Server, nil }})
	expired := time.Now().Add(-time.Hour)
	err := r.change(func(rec *record) error {
		for _, server := range []string{"slow", "fast"} {
			rec.Clones = append(rec.Clones, Clone{ID: server, Kind: Named, State: Ready, Expires: expired,
				Source: Source{Server: server}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted := func(Template) bool { return true }
	late, cancel := context.WithDeadline(t.Context(), expired)
	defer cancel()
	swept, err := r.Sweep(late, wanted)
	if err == nil || len(swept.Clones) != 1 || swept.Clones[0].ID != "fast" {
		t.Errorf("dropped %v, %v", swept.Clones, err)
	}
	if due, err := r.Due(wanted); due || err != nil {
		t.Errorf("the next command waits again: %v", err)
	}
	r.o.Now = func() time.Time { return time.Now().Add(-time.Minute) } // the clock was ahead
	if due, err := r.Due(wanted); !due || err != nil {
		t.Errorf("clean-ups pause until the wrong time: %v", err)
	}
}
