package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"snap/internal/servertest"
)

// Leftovers of killed commands are listed and removed. Files of running commands, and of pulls that
// were interrupted less than a week ago, are not.
func TestLeftoversAreFoundAndMended(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	held, done, err := s.workDir()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	dir := s.snapshotsDir(shopTarget)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(s.tempDir(), "work-1")
	for _, path := range []string{dead + ".lock", filepath.Join(dir, "x.snap"+partSuffix),
		filepath.Join(dir, "y.snap"+partSuffix)} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	building := flock.New(filepath.Join(dir, "y.snap"+partSuffix))
	if ok, err := building.TryLock(); !ok || err != nil {
		t.Fatal(err)
	}
	defer building.Close()
	week := s.now().Add(-8 * 24 * time.Hour)
	for name, at := range map[string]time.Time{"a.snap.part": week, "a.snap.part.journal": week,
		"b.snap.part.journal": week, "c.snap.part": s.now(), "c.snap.part.journal": week, "d.snap.part": week,
		"e.snap": week, "f.snap.part": week, "f.snap.part.journal": s.now()} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	pulling := flock.New(filepath.Join(dir, "d.snap.part"))
	if ok, err := pulling.TryLock(); !ok || err != nil {
		t.Fatal(err)
	}
	defer pulling.Close()
	want := []Leftover{{s.tempDir(), "work-1"}, {dir, "x.snap" + partSuffix}, {dir, "a.snap.part"},
		{dir, "a.snap.part.journal"}, {dir, "b.snap.part.journal"}}
	same := func(got []Leftover) bool { return slices.Equal(got, want) }
	if got := s.Leftovers(t.Context()); !same(got) {
		t.Errorf("left: %+v, want %+v", got, want)
	}
	if got, err := s.RemoveLeftovers(t.Context()); err != nil || !same(got) {
		t.Errorf("mended: %+v, %v", got, err)
	}
	if got := s.Leftovers(t.Context()); len(got) != 0 {
		t.Errorf("left after mending: %+v", got)
	}
	for _, path := range []string{held, filepath.Join(dir, "c.snap.part"), filepath.Join(dir, "d.snap.part"),
		filepath.Join(dir, "f.snap.part")} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("a running command, or a recent one: %v", err)
		}
	}
}

// A leftover of a server is listed once, although two destinations are on that server.
func TestLeftoversOfOneServerAreListedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	to, _ := servertest.CrashingPostgres(t) // loads of other tests would remove the leftover
	name := "snapcli_scratch_0123456789abcdef"
	execute(t, to, "CREATE DATABASE "+name)
	for target, url := range map[string]string{"one": to, "two": serverOf(t, to, "two")} {
		if err := s.AddTarget(Target{Name: target, Destination: url}); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Leftovers(t.Context()); len(got) != 1 || got[0].Name != name {
		t.Errorf("left: %+v", got)
	}
}

// A build removes the scratch files that a killed load left next to the target's destination.
func TestBuildRemovesTheRemainsOfAKilledLoad(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	remains := filepath.Join(s.dir, ".the destination.db.1.snapcli-tmp")
	for _, path := range []string{remains, remains + "-lock", remains + "-wal"} {
		if err := os.WriteFile(path, []byte("original rows"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(remains + "*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The folder of a running command stays, however many other commands begin and end at the same
// time. Nothing is left at the end.
func TestFoldersOfRunningCommandsStay(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			for range 50 {
				dir, done, err := s.workDir()
				if err != nil {
					return err
				}
				sweepWork(s.tempDir())
				for _, path := range []string{dir, dir + ".lock"} {
					if _, err := os.Stat(path); err != nil {
						return err
					}
				}
				done()
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	sweepWork(s.tempDir())
	if left, _ := filepath.Glob(filepath.Join(s.tempDir(), "work-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
