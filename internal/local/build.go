package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
)

// BuildOptions configure [Agent.Build].
type BuildOptions struct {
	Jobs    int // 0: the target's jobs, otherwise the number of cores
	Encrypt Encryption
	Subset  SubsetSpec // the zero value uses the target's subset
	Whole   bool       // include every row, even if the target has a subset
}

// subset returns the limits on the rows, or nil for all rows.
func (o BuildOptions) subset(t Target) *engine.Subset {
	want := o.Subset
	if want.empty() {
		want = t.Subset
	}
	if o.Whole || want.empty() {
		return nil
	}
	return &engine.Subset{Where: want.Where, Percent: want.Percent}
}

func (s SubsetSpec) empty() bool { return len(s.Where) == 0 && s.Percent == 0 }

// Build takes a consistent snapshot of the target's source without blocking writers. The snapshot
// file is created atomically.
func (a *Agent) Build(ctx context.Context, target string, o BuildOptions, p Progress) (Snapshot, error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	if t.Source == "" {
		return Snapshot{}, snap.Usage(fmt.Sprintf("the target %q has no source to build from", t.Name),
			fmt.Sprintf("give it one with `snapcli targets add %q --source URL`", t.Name))
	}
	from, err := a.databaseAt(t.Source)
	if err != nil {
		return Snapshot{}, err
	}
	to, err := a.recipients(o.Encrypt, t)
	if err != nil {
		return Snapshot{}, err
	}
	p.phase("connect")
	d := draft{Manifest: archive.Manifest{Target: t.Name, Type: snap.TypeSnapshot}, from: Provenance{Origin: Mine},
		to: to, jobs: jobsOf(o.Jobs, t.Jobs), subset: o.subset(t)}
	return a.newSnapshot(ctx, from, d, p)
}
