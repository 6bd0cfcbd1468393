package local

import (
	"context"
	"fmt"

	"snap"
	"snap/internal/archive"
)

// BuildOptions choose how to build.
type BuildOptions struct {
	Jobs int // 0: the target's, else the number of cores
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
	p.phase("connect")
	return a.newSnapshot(ctx, from, archive.Manifest{Target: t.Name, Type: snap.TypeSnapshot}, jobsOf(o.Jobs, t.Jobs), p)
}
