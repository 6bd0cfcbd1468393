package local

import (
	"context"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
)

// BuildOptions configure [Agent.Build].
type BuildOptions struct {
	Jobs       int // 0 means the target's jobs, or the number of cores if it has none
	Encrypt    Encryption
	Subset     SubsetSpec // the zero value uses the target's subset
	Whole      bool       // include every row, even if the target has a subset
	Choice     Choice     // added to the target's choice; its tables and schemas replace the target's
	WithGrants bool       // include the names and privileges of other users (PostgreSQL)

	// Named is called with the snapshot's name before the snapshot exists; an error stops the
	// build. Named may be nil.
	Named func(name string) error
}

// subset returns the limits on the rows, or nil for all rows.
func (o BuildOptions) subset(t Target) (*engine.Subset, error) {
	want := o.Subset
	if want.empty() {
		want = t.Subset
	}
	if o.Whole || want.empty() {
		return nil, nil //nolint:nilnil // every row is included
	}
	if err := want.check(); err != nil {
		return nil, err
	}
	bytes, _ := humanize.ParseBytes(want.MaxSize)
	return &engine.Subset{Where: want.Where, Percent: want.Percent, Rows: want.Rows, Bytes: int64(bytes)}, nil
}

func (s SubsetSpec) empty() bool {
	return len(s.Where) == 0 && s.Percent == 0 && s.Rows == 0 && s.MaxSize == ""
}

// check returns a usage error for limits that contradict each other or are out of range.
func (s SubsetSpec) check() error {
	if !(s.Percent >= 0 && s.Percent <= 100) { // NaN fails both comparisons
		return snap.Usage(fmt.Sprintf("%v is not a percentage", s.Percent), "give a number above 0 and up to 100")
	}
	if s.Rows < 0 {
		return snap.Usage(fmt.Sprintf("a subset cannot have %d rows", s.Rows), "give a number of rows, at least 1")
	}
	if s.MaxSize != "" {
		if n, err := humanize.ParseBytes(s.MaxSize); err != nil || n == 0 || n > math.MaxInt64 {
			return snap.Usage(fmt.Sprintf("%q is not a size", s.MaxSize), "give a number and a unit, such as 200MB")
		}
	}
	given := 0
	for _, yes := range []bool{len(s.Where) > 0 || s.Percent > 0, s.Rows > 0, s.MaxSize != ""} {
		if yes {
			given++
		}
	}
	if given > 1 {
		return snap.Usage("a number of rows or a size cannot be combined with other limits of a subset",
			"give the number of rows alone, or the size alone")
	}
	return nil
}

// Build takes a consistent snapshot of the target's source. It blocks writers for a moment at most,
// except in a SQLite database that is not in WAL mode. The snapshot file is created atomically.
func (a *Agent) Build(ctx context.Context, target string, o BuildOptions, p Progress) (Snapshot, error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	if t.Source == "" {
		return Snapshot{}, snap.Usage(fmt.Sprintf("the target %q has no source to build from", t.Name),
			fmt.Sprintf("give it one with `snapcli targets add %s --source URL`", snap.ShellWord(t.Name)))
	}
	from, err := a.databaseAt(t.source())
	if err != nil {
		return Snapshot{}, err
	}
	to, err := a.recipients(o.Encrypt, t)
	if err != nil {
		return Snapshot{}, err
	}
	limits, err := o.subset(t)
	if err != nil {
		return Snapshot{}, err
	}
	if err := checkGrantsOf(from, o.WithGrants); err != nil {
		return Snapshot{}, err
	}
	choice, err := o.choice(t)
	if err != nil {
		return Snapshot{}, err
	}
	p.phase("connect")
	d := draft{Manifest: archive.Manifest{Target: t.Name, Type: snap.TypeSnapshot}, from: Provenance{Origin: Mine},
		to: to, jobs: jobsOf(o.Jobs, t.Jobs), subset: limits, choice: choice, grants: o.WithGrants,
		named: o.Named}
	cleaned := a.cleanUpTarget(ctx, t)
	s, err := a.newSnapshot(ctx, from, d, p)
	s.Warnings = append(s.Warnings, cleaned()...)
	return s, err
}
