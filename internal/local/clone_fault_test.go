//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/disk"
	"snap/internal/servertest"
)

// liveClones is the work of a child process until it is killed: every operation on clones, with a line
// after each.
func liveClones(ctx context.Context, a *Agent, progress Progress) error {
	var failed error
	step := func(name string, err error) {
		fmt.Println(name)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", name, err)
		}
	}
	step("clone", second(a.Clone(ctx, shopTarget, CloneOptions{Name: "one"}, progress)))
	step("reset", second(a.ResetClone(ctx, "one", CloneOptions{}, progress)))
	step("branch", second(a.Branch(ctx, "one", CloneOptions{Name: "two"}, true)))
	step("warm", second(a.WarmClones(ctx, shopTarget, 1, CloneOptions{}, progress)))
	step("drop", a.DropClone(ctx, "one"))
	for range 2 { // a warm one, and a new one
		b, err := a.Borrow(ctx, shopTarget, CloneOptions{}, progress)
		step("borrow", err)
		if err == nil {
			step("return", b.Return(ctx))
		}
	}
	return failed
}

// Operations on clones are killed at many points. The next command finds and drops all remains, and
// the remaining clones are complete.
func TestKilledClonesLeaveNothing(t *testing.T) {
	servertest.Thorough(t)
	onClones(t, killedClonesLeaveNothing)
	if fromEnv("SNAP_KILL_ROUNDS", 0) > 0 {
		onMoreServers(t, killedClonesLeaveNothing)
	}
}

func killedClonesLeaveNothing(t *testing.T, s *cloneShop) {
	chance := chance(t, 24)
	rounds := fromEnv("SNAP_KILL_ROUNDS", map[snap.Engine]int{snap.SQLite: 10}[s.kind])
	if rounds == 0 {
		rounds = 6
	}
	steps := s.steps(t, "clones")
	s.late.Store(int64(48 * time.Hour))
	if _, err := s.SweepClones(t.Context()); err != nil {
		t.Fatal(err)
	}
	killed := 0
	for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
		s.late.Store(0)
		if round%2 == 0 {
			s.dropTemplates(t)
		}
		lines, moment := chance.IntN(steps), time.Duration(chance.IntN(5_000))*time.Microsecond
		if s.killedAt(t, "clones", lines, moment) {
			killed++
		}
		when := fmt.Sprintf("round %d, killed after %d lines", round, lines)
		if _, err := s.SweepClones(t.Context()); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		s.wholeClones(t, when)
		s.late.Store(int64(48 * time.Hour))
		if _, err := s.SweepClones(t.Context()); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		s.onlyTemplate(t, when)
	}
	t.Logf("%d of %d rounds were killed in time", killed, rounds)
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	s.deleteAll(t)
	if _, err := s.SweepClones(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.late.Store(int64(96 * time.Hour)) // old enough to remove locks of processes that were killed as they started
	if _, err := s.SweepClones(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.nothingLeft(t)
}

// dropTemplates drops the templates, so that the next clone loads the snapshot again.
func (s *cloneShop) dropTemplates(t *testing.T) {
	t.Helper()
	all, err := s.clones().Templates()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if dropped, err := s.clones().DropTemplate(t.Context(), one); err != nil || !dropped {
			t.Fatalf("%v, %v", dropped, err)
		}
	}
}

// wholeClones fails the test unless every listed clone is ready and has all rows.
func (s *cloneShop) wholeClones(t *testing.T, when string) {
	t.Helper()
	all, err := s.Clones(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	for _, c := range all {
		if c.State != "ready" || c.Kind == "run" || c.Err != nil || s.rows(t, c.URL) != 2000 {
			t.Fatalf("%s: %+v has %d rows", when, c, s.rows(t, c.URL))
		}
	}
}

// onlyTemplate fails the test if a clone is still listed after all have expired, or if there is
// a database that is neither a template nor about to be dropped.
func (s *cloneShop) onlyTemplate(t *testing.T, when string) {
	t.Helper()
	if all, err := s.Clones(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("%s: %+v, %v", when, all, err)
	}
	templates := 0
	for _, name := range s.left(t) {
		switch {
		case strings.Contains(name, "_template_"):
			templates++
		case strings.HasSuffix(name, "_old"): // a reset does not wait until it is dropped
		default:
			t.Fatalf("%s: %s is left behind", when, name)
		}
	}
	if templates > 1 {
		t.Fatalf("%s: %d templates", when, templates)
	}
}

// If a clone or its template does not fit on the disk, the clone is refused with one sentence, and
// its name stays free.
func TestCloneOnAFullDisk(t *testing.T) {
	t.Parallel()
	s := newCloneShop(t, snap.SQLite, "")
	small := smallDisk(t, 1<<20)
	s.data = filepath.Join(small, "data")
	if _, err := s.Build(t.Context(), shopTarget, BuildOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	one := s.clone(t, CloneOptions{Name: "one"})
	size, err := os.Stat(strings.TrimPrefix(one.URL, "sqlite://"))
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(small, "ballast")
	fill := func(leave int64) {
		t.Helper()
		if err := os.RemoveAll(ballast); err != nil {
			t.Fatal(err)
		}
		free, _ := disk.Free(small)
		if err := os.WriteFile(ballast, make([]byte, free-leave), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(name, want string) {
		t.Helper()
		_, err := s.Clone(t.Context(), shopTarget, CloneOptions{Name: name}, nil)
		if snap.CodeOf(err) != snap.CodeStorageFull || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s: %v", name, snap.CodeOf(err), err)
		}
	}
	fill(size.Size() / 2)
	refused("two", "a copy needs")
	if err := s.DropClone(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	s.dropTemplates(t)
	fill(size.Size() / 2)
	refused("three", "")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if n := s.rows(t, s.clone(t, CloneOptions{Name: "two"}).Secret); n != 2000 {
		t.Errorf("with room again: %d rows", n)
	}
}
