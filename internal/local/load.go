package local

import (
	"context"
	"fmt"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
)

// LoadOptions choose what to load and what is allowed.
type LoadOptions struct {
	Snapshot  string                // name; "" is the one that was built, sanitized or pulled last
	Type      snap.Type             // "" is either
	Took      func(Snapshot)        // hears which one was taken when none was named; may be nil
	Confirm   func(Preflight) error // asked before anything is replaced; nil agrees
	Terminate bool                  // end connections to the destination
	Force     bool                  // load into a destination that is marked or looks like production
	Jobs      int
	Identity  []string // files of private keys that open it; nil: those of the configuration
}

// LoadResult tells what was loaded.
type LoadResult struct {
	Snapshot    Snapshot
	Destination string // URL without its password
	Replaced    bool   // a database was there before
	Tables      []archive.Table
	Elapsed     time.Duration
}

// Load replaces the target's destination by a snapshot, whole or not at all.
// The file is verified before anything is touched; then it is restored beside
// the destination, verified again, and put in its place in one step. Until that
// step the old database is as it was, whatever happens.
func (a *Agent) Load(ctx context.Context, target string, o LoadOptions, p Progress) (LoadResult, error) {
	started := a.now()
	t, err := a.Target(target)
	if err != nil {
		return LoadResult{}, err
	}
	s, err := a.toLoad(t.Name, o)
	if err != nil {
		return LoadResult{}, err
	}
	to, err := a.destination(t, s, o.Force)
	if err != nil {
		return LoadResult{}, err
	}
	r, err := a.openVerified(ctx, s, p, o.Identity...)
	if err != nil {
		return LoadResult{}, err
	}
	defer r.Close()
	ready, err := a.preflight(ctx, s, r, to, p)
	if err == nil && o.Confirm != nil {
		err = o.Confirm(ready)
	}
	if err != nil {
		return LoadResult{}, err
	}
	if err := a.replace(ctx, r, to, o, jobsOf(o.Jobs, t.Jobs), p); err != nil {
		return LoadResult{}, err
	}
	return LoadResult{Snapshot: s, Destination: to.shown, Replaced: ready.Exists, Tables: r.Manifest().Tables, Elapsed: a.now().Sub(started)}, nil
}

// replace restores beside the destination and swaps.
func (a *Agent) replace(ctx context.Context, r *archive.Reader, to database, o LoadOptions, jobs int, p Progress) error {
	dir, done, err := a.workDir()
	if err != nil {
		return err
	}
	defer done()
	bytes, begin := p.following("restore")
	scratch, err := to.engine.Restore(ctx, to.url, dumpIn(r), engine.Options{Jobs: jobs, TempDir: dir, Progress: bytes, Phase: begin})
	if err != nil {
		return diskError(err, "restore the snapshot")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	begin("swap")
	return scratch.Swap(ctx, o.Terminate)
}

// toLoad returns the snapshot that the options choose. One that is not of the
// type asked for never stands in.
func (a *Agent) toLoad(target string, o LoadOptions) (Snapshot, error) {
	if o.Snapshot == "" {
		s, err := a.lastArrived(target, o.Type)
		if err == nil && o.Took != nil {
			o.Took(s)
		}
		return s, err
	}
	s, err := a.Snapshot(o.Snapshot)
	switch {
	case err != nil:
		return Snapshot{}, err
	case s.Target != target:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of target %q", s.Name, s.Target), fmt.Sprintf("run `snapcli load %q --snapshot %q`", s.Target, s.Name))
	case o.Type != "" && s.Type != o.Type:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of type %s", s.Name, s.Type), "leave --type out, or choose another snapshot")
	}
	return s, nil
}
