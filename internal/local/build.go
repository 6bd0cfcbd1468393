package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
)

// BuildOptions choose how to build.
type BuildOptions struct {
	Jobs    int // 0: the target's, else the number of cores
	Encrypt Encryption
	Where   map[string]string // by table: the condition of the rows to start a subset from
	Percent float64           // of the other rows to start a subset from; 0 is no subset by a share
}

// subset is what the options limit the rows to; nil is nothing.
func (o BuildOptions) subset() *engine.Subset {
	if len(o.Where) == 0 && o.Percent == 0 {
		return nil
	}
	return &engine.Subset{Where: o.Where, Percent: o.Percent}
}

// Build takes a snapshot of the target's source, consistent and without
// keeping others from writing. The file appears whole or not at all.
func (a *Agent) Build(ctx context.Context, target string, o BuildOptions, p Progress) (Snapshot, error) {
	t, err := a.Target(target)
	if err != nil {
		return Snapshot{}, err
	}
	if t.Source == "" {
		return Snapshot{}, snap.Usage(fmt.Sprintf("the target %q has no source to build from", t.Name), fmt.Sprintf("give it one: snapcli targets add %q --source URL", t.Name))
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
	d := draft{Manifest: archive.Manifest{Target: t.Name, Type: snap.TypeSnapshot}, to: to, jobs: jobsOf(o.Jobs, t.Jobs), subset: o.subset()}
	return a.newSnapshot(ctx, from, d, p)
}
