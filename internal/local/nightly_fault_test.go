//go:build linux

package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"snap/internal/nightly"
	"snap/internal/servertest"
)

// lateEnv is the environment variable with the seconds by which a child process's clock is ahead.
const lateEnv = "SNAPCLI_TEST_LATE"

// liveNight is the work of a child process until it is killed: a turn of the agent. It prints a
// line before and after each step, after each save and for each event.
func liveNight(ctx context.Context, a *Agent) error {
	late, err := strconv.Atoi(os.Getenv(lateEnv))
	if err != nil {
		return err
	}
	a.now = func() time.Time { return time.Now().Add(time.Duration(late) * time.Second) }
	target, err := a.Target(shopTarget)
	if err != nil {
		return err
	}
	task, err := a.Nightly(target, nil)
	if err != nil {
		return err
	}
	for i, step := range task.Steps {
		task.Steps[i].Do = func(ctx context.Context, r *nightly.Run, save func() error) error {
			fmt.Println("before", step.Name)
			defer fmt.Println("after", step.Name)
			return step.Do(ctx, r, func() error {
				defer fmt.Println("saved")
				return save()
			})
		}
	}
	agent := nightly.Agent{Records: a.Runs(), Now: a.now, Report: func(e nightly.Event) { fmt.Println(e.Kind) }}
	_, err = agent.Turn(ctx, task)
	return err
}

// Real runs of the nightly job are killed at many points. At most one copy is pushed per night, and
// each night is recorded as done, failed or missed.
func TestKilledNights(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	rounds := fromEnv("SNAP_KILL_ROUNDS", 8)
	s, agent := nightShop(t, Check{SQL: "SELECT count(*) FROM customer", Expect: "2000"})
	if _, err := agent.Turn(t.Context(), s.task(t)); err != nil { // nights are due from now on
		t.Fatal(err)
	}
	r, late, killed := rand.New(rand.NewPCG(3, 4)), time.Duration(0), 0
	for round := 0; round < rounds || killed < rounds/3 && round < 10*rounds; round++ {
		if r.IntN(3) > 0 {
			late += 24 * time.Hour
		}
		env := fmt.Sprintf("%s=%d", lateEnv, int((time.Until(s.now()) + late).Seconds()))
		if s.killedAt(t, "night", 1+r.IntN(16), time.Duration(r.IntN(4000))*time.Microsecond, env) {
			killed++
		}
	}
	s.late.Store(int64(late + 24*time.Hour))
	for range 2 {
		if _, err := agent.Turn(t.Context(), s.task(t)); err != nil {
			t.Fatal(err)
		}
	}
	s.checkNights(t, int((late+24*time.Hour)/(24*time.Hour)))
	t.Logf("%d of %d rounds were killed in time", killed, rounds)
	if killed < rounds/3 {
		t.Errorf("only %d of %d rounds were killed in time", killed, rounds)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "tmp", "work-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// checkNights compares the record with the pushed snapshots.
func (s *cloneShop) checkNights(t *testing.T, nights int) {
	t.Helper()
	record, err := s.Runs().Read(shopTarget)
	if err != nil {
		t.Fatal(err)
	}
	stored, counted := s.stored(t), 0
	for _, run := range record.Runs {
		counted += 1 + run.Missed
		if run.State == nightly.Done && !stored[run.Masked] || run.State == nightly.Failed && run.Problem == "" ||
			run.State != nightly.Done && run.State != nightly.Failed {
			t.Errorf("%+v", run)
		}
		delete(stored, run.Masked)
	}
	if len(record.Runs) < 60 && counted != nights { // older ones are no longer in the record
		t.Errorf("%d nights passed, and the record accounts for %d", nights, counted)
	}
	if len(record.Runs) < 60 && len(stored) > 0 {
		t.Errorf("a night pushed a second copy: %v", stored)
	}
	all, err := s.Snapshots("")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Type == "snapshot" {
			t.Errorf("the original %s stays", one.Name)
		}
	}
}
