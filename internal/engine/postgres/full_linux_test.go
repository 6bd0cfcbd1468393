package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"snap"
	"snap/internal/engine"
	"snap/internal/servertest"
)

// A copy or a reset for which the server's disk has no room is refused before it begins.
func TestCopyChecksTheDisk(t *testing.T) {
	t.Parallel()
	disk := servertest.SmallDisk(t, 512<<20)
	from := servertest.PostgresIn(t, disk)
	rawly(t, from, "CREATE TABLE a AS SELECT n, repeat('x', 1000) FROM generate_series(1, 20000) n")
	e := Engine{}
	to, err := e.Named(from, engine.ClonePrefix+"x")
	if err != nil {
		t.Fatal(err)
	}
	next, err := e.Named(to, engine.ClonePrefix+"x"+nextSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for i, act := range []func(context.Context, string, string, engine.CopyOptions) error{e.Copy, e.Reset} {
		name := []string{"copy", "reset"}[i]
		ballast := servertest.FillDisk(t, disk, 20<<20)
		err := act(t.Context(), from, to, engine.CopyOptions{})
		if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(fmt.Sprint(err), "a copy needs") {
			t.Errorf("%s with a full disk: %v", name, err)
		}
		if found, err := e.States(t.Context(), []string{to, next}); err != nil ||
			found[0].Exists != (name == "reset") || found[1].Exists {
			t.Errorf("%s left something behind: %+v, %v", name, found, err)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if err := act(t.Context(), from, to, engine.CopyOptions{}); err != nil {
			t.Errorf("%s with room again: %v", name, err)
		}
	}
}
