package nightly

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/servertest"
)

// world is everything outside the record: a clock, snapshots, and pushed copies. It can end the
// process, as a panic, at every moment at which something is about to be written or was written.
type world struct {
	now    time.Time
	chance *rand.Rand
	until  int                // moments until the process is killed; less than zero: never
	stop   context.CancelFunc // ends the agent in order
	kills  int
	made   map[string]bool
	pushed map[string]bool // by name of the copy, as the service recognizes it
	of     map[string]Slot
	events []Event
}

type killed struct{}

func (w *world) moment() {
	if w.until == 0 {
		w.kills++
		panic(killed{})
	}
	w.until--
}

func (w *world) step(name string, field func(*Run) *string) Step {
	return Step{Name: name, Do: func(ctx context.Context, r *Run, save func() error) error {
		w.moment()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case w.chance.IntN(40) == 0:
			return snap.Invalid("the "+name+" failed", "look")
		case w.chance.IntN(25) == 0:
			w.stop()
			return ctx.Err()
		}
		if at := field(r); !w.made[*at] {
			*at = fmt.Sprintf("%s-%d", name, len(w.made))
			if err := save(); err != nil {
				return err
			}
			w.moment()
			w.made[*at] = true
		}
		w.moment()
		return nil
	}}
}

func (w *world) task(t *testing.T) Task {
	t.Helper()
	times, err := Parse("0 3 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	push := Step{Name: "push", Do: func(_ context.Context, r *Run, _ func() error) error {
		w.moment()
		w.pushed[r.Masked], w.of[r.Masked] = true, r.Slot
		r.Pushed = "snap_" + r.Masked
		w.moment()
		return nil
	}}
	return Task{Target: "shop", Times: times, Steps: []Step{
		w.step("build", func(r *Run) *string { return &r.Original }),
		w.step("sanitize", func(r *Run) *string { return &r.Masked }), push}}
}

func newWorld(seed uint64) *world {
	return &world{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), chance: rand.New(rand.NewPCG(seed, 7)),
		made: map[string]bool{}, pushed: map[string]bool{}, of: map[string]Slot{}}
}

// turn is one life of the agent: a turn, which may be killed.
func (w *world) turn(t *testing.T, dir string, task Task) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil && r != (killed{}) {
			panic(r)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.stop = cancel
	a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { w.moment(); return w.now },
		Report: func(e Event) { w.events = append(w.events, e); w.moment() }}
	if _, err := a.Turn(ctx, task); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// With over 200 kills at random points, no night is run twice and none is lost: each is in the
// record as done, as failed with a problem, or as missed in the run after it; and each pushed one
// copy at most.
func TestKilledRunsAreNeitherLostNorDoubled(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	kills := 0
	for seed := uint64(1); kills < 210; seed++ {
		w, dir := newWorld(seed), t.TempDir()
		task := w.task(t)
		w.until = -1
		w.turn(t, dir, task)
		began := w.now
		for range 40 {
			w.now = w.now.Add(time.Duration(w.chance.IntN(30*60)) * time.Minute)
			w.until = w.chance.IntN(24) - 4
			w.turn(t, dir, task)
		}
		for range 3 * maxKills { // nothing kills the last run
			w.until = -1
			w.turn(t, dir, task)
		}
		w.check(t, seed, dir, task.Times, began)
		kills += w.kills
	}
	t.Logf("%d kills", kills)
}

func (w *world) check(t *testing.T, seed uint64, dir string, times Times, began time.Time) {
	t.Helper()
	r, err := Records{Dir: dir}.Read("shop")
	if err != nil {
		t.Fatal(err)
	}
	nights := 0
	for slot, at := times.Next(began); !at.After(w.now); slot, at = times.Next(at) {
		nights++
		_ = slot
	}
	counted, seen := 0, map[Slot]bool{}
	for _, run := range r.Runs {
		counted += 1 + run.Missed
		if seen[run.Slot] {
			t.Errorf("seed %d: %s ran twice", seed, run.Slot)
		}
		seen[run.Slot] = true
		if run.State != Done && run.State != Failed || run.State == Failed && run.Problem == "" || run.Ended.IsZero() {
			t.Errorf("seed %d: %+v", seed, run)
		}
		if run.State == Done && !w.pushed[run.Masked] {
			t.Errorf("seed %d: nothing was pushed by %+v", seed, run)
		}
	}
	if counted != nights {
		t.Errorf("seed %d: %d nights passed, and the record accounts for %d", seed, nights, counted)
	}
	once := slices.Collect(maps.Values(w.of))
	if len(slices.Compact(slices.Sorted(slices.Values(once)))) != len(once) {
		t.Errorf("seed %d: a night pushed two copies: %v", seed, w.of)
	}
}

// Missed nights are caught up by one run that counts them, and a target that is new owes nothing.
func TestMissedNightsAreCaughtUpOnce(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	w.until = -1
	task := w.task(t)
	task.Steps = task.Steps[2:]
	w.turn(t, dir, task)
	if len(w.events) > 0 {
		t.Errorf("the first turn did something: %+v", w.events)
	}
	w.now = w.now.Add(5 * 24 * time.Hour)
	for range 3 {
		w.turn(t, dir, task)
	}
	if len(w.events) != 2 || w.events[1].Run.Missed != 4 || w.events[1].Run.Slot != "2026-03-06T03:00" {
		t.Errorf("%+v", w.events)
	}
}

// A run that was killed four times is given up, and so is one whose successor is due.
func TestKilledRunsAreGivenUp(t *testing.T) {
	t.Parallel()
	apart := map[string]time.Duration{"killed four times": 0, "the next is due": 24 * time.Hour}
	for name, between := range apart {
		w, dir := newWorld(1), t.TempDir()
		w.until = -1
		task := w.task(t)
		task.Steps = []Step{{Name: "crash", Do: func(context.Context, *Run, func() error) error { panic(killed{}) }}}
		w.turn(t, dir, task)
		w.now = w.now.Add(24 * time.Hour)
		for range 5 {
			w.turn(t, dir, task)
			w.now = w.now.Add(between)
		}
		r, err := Records{Dir: dir}.Read("shop")
		if err != nil || len(r.Runs) == 0 || r.Runs[0].State != Failed ||
			!strings.Contains(r.Runs[0].Problem, "crash") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// A clock that was a year ahead by mistake does not stop the nights.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	w.until = -1
	task := w.task(t)
	task.Steps = task.Steps[2:]
	w.turn(t, dir, task)
	w.now = w.now.Add(365 * 24 * time.Hour)
	w.turn(t, dir, task)
	w.now = w.now.Add(-365 * 24 * time.Hour)
	w.turn(t, dir, task)
	w.now = w.now.Add(24 * time.Hour)
	w.turn(t, dir, task)
	last := w.events[len(w.events)-1]
	if last.Kind != Ended || last.Run.Slot != "2026-03-02T03:00" {
		t.Errorf("%+v", w.events)
	}
}

// A changed schedule or time zone is followed from now on: nothing runs at once, no run is missed,
// and no night is skipped.
func TestChangedSchedule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, zone string
		changed    string // when, in UTC
		due        Slot   // the first
	}{
		"another time of day": {"0 12 * * *", "Europe/Berlin", "2026-03-02T13:30", "2026-03-03T12:00"},
		"every hour":          {"0 * * * *", "Europe/Berlin", "2026-03-02T13:30", "2026-03-02T15:00"},
		"a zone to the west":  {"0 3 * * *", "America/New_York", "2026-03-02T02:30", "2026-03-02T03:00"},
	} {
		dir, now := t.TempDir(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		var runs []Run
		a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { return now }, Report: func(e Event) {
			if e.Kind == Ended {
				runs = append(runs, e.Run)
			}
		}}
		turn := func(text, zone string) {
			times, err := Parse(text, zone)
			if err != nil {
				t.Fatal(err)
			}
			step := Step{Name: "x", Do: func(context.Context, *Run, func() error) error { return nil }}
			if _, err := a.Turn(t.Context(), Task{Target: "shop", Times: times, Steps: []Step{step}}); err != nil {
				t.Fatal(err)
			}
		}
		turn("0 3 * * *", "Europe/Berlin")
		now = time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)
		turn("0 3 * * *", "Europe/Berlin")
		for now = (Times{}).civil(Slot(c.changed)); len(runs) < 2 && now.Day() < 5; {
			turn(c.text, c.zone)
			now = now.Add(time.Hour)
		}
		if len(runs) < 2 || runs[0].Slot != "2026-03-02T03:00" || runs[1].Slot != c.due || runs[1].Missed != 0 {
			t.Errorf("%s: %+v", name, runs)
		}
	}
}

// A manual run of a target without a schedule has missed no other runs.
func TestManualRunsMissNothing(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	w.until = -1
	task := w.task(t)
	task.Steps = task.Steps[2:]
	var err error
	if task.Times, err = Parse("", ""); err != nil {
		t.Fatal(err)
	}
	a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { return w.now }, Report: func(Event) {}}
	for range 2 {
		if run, err := a.RunNow(t.Context(), task); err != nil || run.Missed != 0 {
			t.Errorf("%+v, %v", run, err)
		}
		w.now = w.now.Add(2 * 365 * 24 * time.Hour)
	}
	task.Times = w.task(t).Times // it gets a schedule
	if ran, err := a.Turn(t.Context(), task); ran || err != nil {
		t.Errorf("ran at once: %v, %v", ran, err)
	}
}

// A second agent leaves a target alone that another agent is working on. A manual run counts as the
// night's run.
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	w.until = -1
	task := w.task(t)
	var other error
	a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { return w.now }, Report: func(Event) {}}
	task.Steps = []Step{{Name: "look", Do: func(context.Context, *Run, func() error) error {
		_, other = a.Turn(t.Context(), task)
		return nil
	}}}
	run, err := a.RunNow(t.Context(), task)
	if err != nil || run.State != Done || run.Slot != "2026-03-01T13:00" || !errors.Is(other, ErrBusy) {
		t.Errorf("%+v, %v; the other: %v", run, err, other)
	}
	var soon TooSoonError
	if _, err := a.RunNow(t.Context(), task); !errors.As(err, &soon) || !soon.After.Equal(task.Times.At(run.Slot)) {
		t.Errorf("again in the same minute: %v", err)
	}
	if ran, err := a.Turn(t.Context(), task); ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
}

// Serve takes turns at every tick, and stops its runs when it is stopped.
func TestServe(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	w.until = -1
	task := w.task(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task.Steps = []Step{{Name: "wait", Do: func(ctx context.Context, _ *Run, _ func() error) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}}
	if err := (Records{Dir: dir}).start("shop", "2026-02-27T03:00"); err != nil {
		t.Fatal(err)
	}
	a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { return w.now }, Report: func(Event) {}}
	report := func(target string, err error) { t.Errorf("%s: %v", target, err) }
	a.Serve(ctx, nil, func() []Task { return []Task{task} }, report)
	r, err := Records{Dir: dir}.Read("shop")
	if err != nil || len(r.Runs) != 1 || r.Runs[0].State != Stopped || r.Runs[0].Kills != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// start writes a record in which no slot up to the given one is due.
func (s Records) start(target string, after Slot) error {
	release, err := s.lock(target)
	if err != nil {
		return err
	}
	defer release()
	return s.write(target, Record{After: after})
}

// The runs of a week stay in the record, however many they are, because the job removes what they
// made.
func TestFrequentRunsStayForAWeek(t *testing.T) {
	t.Parallel()
	var r Record
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for n := range 24 * 7 {
		r.add(Run{Masked: fmt.Sprint(n), Began: begin.Add(time.Duration(n) * time.Hour)})
	}
	if r.Runs[0].Masked != "0" {
		t.Errorf("the oldest run is %s", r.Runs[0].Masked)
	}
	r.add(Run{Began: begin.Add(30 * 24 * time.Hour)}) // after a pause; it removes what the others made
	if r.Runs[0].Masked != "0" {
		t.Errorf("after a pause, the oldest run is %s", r.Runs[0].Masked)
	}
	r.add(Run{Began: begin.Add(30 * 24 * time.Hour)})
	if len(r.Runs) != MinRuns+1 {
		t.Errorf("%d runs", len(r.Runs))
	}
}

// A run that was stopped in order is resumed, even after it was killed three times.
func TestStoppedRunIsResumedAfterKills(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(1), t.TempDir()
	task := w.task(t)
	task.Steps = []Step{{Name: "x", Do: func(context.Context, *Run, func() error) error { return nil }}}
	a := &Agent{Records: Records{Dir: dir}, Now: func() time.Time { return w.now }, Report: func(Event) {}}
	slot := task.Times.Wall(w.now)
	stopped := Run{Slot: slot, State: Stopped, Step: "x", Kills: maxKills}
	if err := a.Records.write("shop", Record{After: slot, Runs: []Run{stopped}}); err != nil {
		t.Fatal(err)
	}
	if ran, err := a.Turn(t.Context(), task); !ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
}
