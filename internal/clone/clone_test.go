package clone

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"snap/internal/engine"
)

// unreachable is a server that does not respond.
type unreachable struct{ engine.Cloner }

func (unreachable) Named(server, name string) (string, error) { return server + "/" + name, nil }
func (unreachable) Drop(context.Context, string) error        { return errors.New("no server") }
func connect(s Source) (engine.Cloner, string, error)         { return unreachable{}, s.Server, nil }

// A clone whose server is gone can be forgotten even after somebody tried to drop it.
func TestForgetAfterAFailedDrop(t *testing.T) {
	t.Parallel()
	r := Open(Options{Dir: t.TempDir(), Now: time.Now, Log: slog.New(slog.DiscardHandler), Connect: connect})
	c := Clone{ID: "a_1", Name: "a", Kind: Named, State: Ready, Expires: time.Now().Add(time.Hour)}
	if err := r.change(func(rec *record) error { rec.Clones = []Clone{c}; return nil }); err != nil {
		t.Fatal(err)
	}
	if r.Drop(t.Context(), "a") == nil {
		t.Fatal("dropped")
	}
	if _, err := r.Forget("a"); err != nil {
		t.Error(err)
	}
}
