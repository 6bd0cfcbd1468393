package nightly

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"snap"
	"snap/internal/disk"
)

// State is the state of a run.
type State string

// The states.
const (
	Running State = "running" // a process holds the target's lock; if none does, the process was killed
	Stopped State = "stopped" // because the agent was stopped; the next agent resumes it
	Done    State = "done"
	Failed  State = "failed"
)

// Run is one run of a target's job.
type Run struct {
	Slot    Slot      `json:"slot"`
	State   State     `json:"state"`
	Step    string    `json:"step,omitempty"` // the step in progress, or the step that failed
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Kills   int       `json:"kills,omitempty"`   // number of processes that were killed during the run
	Missed  int       `json:"missed,omitempty"`  // number of earlier slots without a run
	Problem string    `json:"problem,omitempty"` // the reason if it failed
	Code    snap.Code `json:"code,omitempty"`    // of the reason
	Hint    string    `json:"hint,omitempty"`

	Original string `json:"original,omitempty"` // name of the local snapshot that it built
	Masked   string `json:"masked,omitempty"`   // name of the masked copy
	Pushed   string `json:"pushed,omitempty"`   // ID of the pushed snapshot, or its name in a storage profile
}

// Record holds the runs of a target. It is written before and after each run, and before and after
// each step.
type Record struct {
	After Slot `json:"after"` // slots up to this one are no longer due
	// Schedule is the schedule that After belongs to; "" in the records of earlier versions.
	Schedule string `json:"schedule,omitempty"`
	Runs     []Run  `json:"runs"` // oldest first
}

// A record keeps at least the last MinRuns runs, and every run for keptRuns: longer than the job
// keeps the copies that a run made, so that a later run can still remove them.
const (
	MinRuns  = 60
	keptRuns = 8 * 24 * time.Hour
)

// last returns the newest run, or nil.
func (r *Record) last() *Run {
	if len(r.Runs) == 0 {
		return nil
	}
	return &r.Runs[len(r.Runs)-1]
}

// add appends a run and marks its slot as no longer due. It removes runs that were older than
// keptRuns when the previous run began, because the previous run removed their copies.
func (r *Record) add(run Run) {
	for len(r.Runs) > MinRuns && r.last().Began.Sub(r.Runs[0].Began) > keptRuns {
		r.Runs = r.Runs[1:]
	}
	r.After = run.Slot
	r.Runs = append(r.Runs, run)
}

// Records keeps the records of all targets in a folder.
type Records struct{ Dir string }

func (s Records) path(target string) string { return filepath.Join(s.Dir, target+".json") }

// Read returns the record of a target. If there is none yet, it returns an empty record.
func (s Records) Read(target string) (r Record, err error) {
	if err := disk.ReadJSON(s.path(target), &r); err != nil {
		return r, &snap.Error{Code: snap.CodeInternal, Cause: err,
			Detail: fmt.Sprintf("the record of runs %s cannot be read", s.path(target)),
			Hint:   "restore the file from a backup; if there is none, delete it, and only future times are due"}
	}
	return r, nil
}

// write replaces the record of a target. The caller holds its lock.
func (s Records) write(target string, r Record) error {
	if err := disk.ReplaceJSON(s.path(target), r); err != nil {
		return fmt.Errorf("write the record of runs: %w", err)
	}
	return nil
}

// ErrBusy is returned if another process is working on a target.
var ErrBusy = errors.New("another agent is working on this target")

// lock takes the lock of a target. The system releases it when the process is killed.
func (s Records) lock(target string) (release func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of runs: %w", err)
	}
	l := flock.New(filepath.Join(s.Dir, target+".lock"), flock.SetPermissions(0o600))
	free, err := l.TryLock()
	if err == nil && !free {
		err = ErrBusy
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("lock the record of %s: %w", target, err)
	}
	disk.RemoveTemporary(s.path(target))
	return func() { _ = l.Close() }, nil
}
