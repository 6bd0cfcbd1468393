// Package nightly runs the jobs of targets at the times of their schedules, each slot at most once,
// and keeps a record of every run.
//
// The record is written before and after each step, and the process holds a lock during the run. If
// a run is recorded as running and nobody holds the lock, its process was killed; the next turn
// resumes the run at the step that it had reached. The record accounts for every slot: as a run
// that is done, as a run that failed with a problem, or as a missed slot that a later run counts.
package nightly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"snap"
)

// Step is a part of a job. After a kill, Do is called again with the run as Do last saved it.
type Step struct {
	Name string
	Do   func(ctx context.Context, r *Run, save func() error) error
}

// Task is the job of one target.
type Task struct {
	Target string
	Times  Times
	Steps  []Step
	Failed func(*Run) // called after a run failed; may be nil
}

// Event is a change in the state of a run, for display to people.
type Event struct {
	Target string
	Run    Run
	Kind   Kind
}

// Kind is the kind of an [Event].
type Kind string

// The kinds of events.
const (
	Began       Kind = "began"
	Resumed     Kind = "resumed"     // after the agent was killed or stopped
	Ended       Kind = "ended"       // done or failed
	Interrupted Kind = "interrupted" // the agent stops; the next one resumes the run
	ClockBack   Kind = "clock back"  // the record was ahead of the clock and was reset
)

// Agent works on tasks.
type Agent struct {
	Records Records
	Now     func() time.Time
	Report  func(Event) // may be called concurrently
}

// maxKills limits how often a run is resumed after kills, because the run itself may be the cause.
const maxKills = 3

// maxAhead is how far a record may be ahead of the clock. A record beyond that is reset.
const maxAhead = 24 * time.Hour

// Turn does the work that is due for a target: it resumes a run that was killed or stopped, or
// begins the newest slot that has not run yet. ran reports whether there was anything to do. Turn
// returns no error for a failed run, because the record says why it failed. Turn fails with
// [ErrBusy] if another process is working on the target.
func (a *Agent) Turn(ctx context.Context, t Task) (ran bool, err error) {
	return a.turn(ctx, t, (*Agent).scheduledRun)
}

// RunNow runs a target's job now, whatever its schedule says, and returns the run. The run counts
// slots that are already due as missed.
func (a *Agent) RunNow(ctx context.Context, t Task) (Run, error) {
	ran, err := a.turn(ctx, t, (*Agent).unscheduledRun)
	if err != nil {
		return Run{}, err
	}
	r, err := a.Records.Read(t.Target)
	if err != nil || !ran || r.last() == nil {
		return Run{}, err
	}
	return *r.last(), nil
}

// turn works on the run that choose returns, if any. choose may change the record, which turn
// writes if there is a run.
func (a *Agent) turn(ctx context.Context, t Task, choose func(*Agent, Task, *Record) (*Run, error)) (bool, error) {
	release, err := a.Records.lock(t.Target)
	if err != nil {
		return false, err
	}
	defer release()
	r, err := a.Records.Read(t.Target)
	if err != nil {
		return false, err
	}
	if r.Schedule != t.Times.text {
		if r.Schedule != "" { // the slots of another schedule, or in another zone, are not comparable
			r.After = t.Times.Wall(a.Now().Add(-time.Minute))
		}
		r.Schedule = t.Times.text
		if err := a.Records.write(t.Target, r); err != nil {
			return false, err
		}
	}
	run, err := choose(a, t, &r)
	if err != nil || run == nil {
		return false, err
	}
	kind := Began
	if run.State != "" {
		kind = Resumed
	}
	if run.State == Running {
		run.Kills++
	}
	run.State = Running
	if err := a.Records.write(t.Target, r); err != nil {
		return false, err
	}
	a.Report(Event{t.Target, *run, kind})
	return true, a.work(ctx, t, &r, run)
}

// scheduledRun returns the run to work on, or nil. It closes an unfinished run that is not resumed.
func (a *Agent) scheduledRun(t Task, r *Record) (*Run, error) {
	now := a.Now()
	if r.After == "" || t.Times.At(r.After).After(now.Add(maxAhead)) {
		return nil, a.begin(t, r)
	}
	due, earlier := t.Times.Due(r.After, now)
	if run := r.last(); run.unfinished() {
		if due == "" && (run.Kills < maxKills || run.State == Stopped) {
			return run, nil
		}
		if err := a.giveUp(t, r); err != nil {
			return nil, err
		}
	}
	if due == "" {
		return nil, nil
	}
	return a.newRun(t, r, due, earlier), nil
}

func (a *Agent) newRun(t Task, r *Record, slot Slot, missed int) *Run {
	r.add(Run{Slot: slot, Step: t.Steps[0].Name, Began: a.Now().UTC(), Missed: missed})
	return r.last()
}

// unfinished reports whether the run's process ended before the run did.
func (r *Run) unfinished() bool { return r != nil && (r.State == Running || r.State == Stopped) }

// begin starts a record, or resets it if it is ahead of the clock. Past slots are then not due.
func (a *Agent) begin(t Task, r *Record) error {
	if r.After != "" {
		a.Report(Event{Target: t.Target, Kind: ClockBack})
	}
	if r.last().unfinished() {
		if err := a.giveUp(t, r); err != nil {
			return err
		}
	}
	r.After = t.Times.Wall(a.Now())
	return a.Records.write(t.Target, *r)
}

// giveUp records an unfinished last run as failed.
func (a *Agent) giveUp(t Task, r *Record) error {
	run := r.last()
	run.Problem = fmt.Sprintf("the agent stopped during the step %s, and this run was not resumed in time", run.Step)
	run.Hint = "keep the agent running, for example under systemd"
	if run.State == Running && run.Kills >= maxKills {
		run.Problem = fmt.Sprintf("the agent was killed %d times during the step %s", run.Kills+1, run.Step)
		run.Hint = "check whether the agent's machine runs out of memory"
	}
	return a.end(t, r, Failed)
}

// TooSoonError is the error of [Agent.RunNow] if the record already covers this minute: the target
// had a run in it, the record began in it, or the clock was set back since the last run.
type TooSoonError struct{ After time.Time }

func (e TooSoonError) Error() string {
	return "the next run can only begin after " + e.After.Format(time.RFC3339)
}

// unscheduledRun returns a new run for this minute. It closes an unfinished run.
func (a *Agent) unscheduledRun(t Task, r *Record) (*Run, error) {
	now := a.Now()
	slot := t.Times.Wall(now)
	if r.After == "" {
		r.After = t.Times.Wall(now.Add(-time.Minute))
	}
	if r.After >= slot {
		return nil, TooSoonError{t.Times.At(r.After)}
	}
	if r.last().unfinished() {
		if err := a.giveUp(t, r); err != nil {
			return nil, err
		}
	}
	due, missed := t.Times.Due(r.After, now)
	if due != "" && due != slot {
		missed++
	}
	return a.newRun(t, r, slot, missed), nil
}

// work does the steps of a run, beginning with the step in its record.
func (a *Agent) work(ctx context.Context, t Task, r *Record, run *Run) error {
	save := func() error { return a.Records.write(t.Target, *r) }
	from := slices.IndexFunc(t.Steps, func(s Step) bool { return s.Name == run.Step })
	for _, step := range t.Steps[max(0, from):] { // all steps if another version recorded an unknown one
		run.Step = step.Name
		err := save()
		if err == nil {
			err = step.Do(ctx, run, save)
		}
		if err != nil && ctx.Err() != nil {
			run.State = Stopped
			err = save()
			a.Report(Event{t.Target, *run, Interrupted})
			return errors.Join(ctx.Err(), err)
		}
		if err != nil {
			return a.fail(t, r, err)
		}
	}
	run.Step = ""
	return a.end(t, r, Done)
}

// fail records the problem that ended the last run.
func (a *Agent) fail(t Task, r *Record, problem error) error {
	run := r.last()
	run.Problem, run.Code = problem.Error(), snap.CodeOf(problem)
	var e *snap.Error
	if errors.As(problem, &e) {
		run.Hint = e.Hint
	}
	return a.end(t, r, Failed)
}

// end records the final state of the last run.
func (a *Agent) end(t Task, r *Record, state State) error {
	run := r.last()
	run.State, run.Ended = state, a.Now().UTC()
	if err := a.Records.write(t.Target, *r); err != nil {
		return err
	}
	if state == Failed && t.Failed != nil {
		t.Failed(run)
	}
	a.Report(Event{t.Target, *run, Ended})
	return nil
}
