package local

import (
	"context"
	"fmt"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/schema"
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

	// WithPrograms loads the programs of a foreign snapshot too, each after its
	// check. Trust is asked about an author who is not trusted yet; nil refuses.
	WithPrograms bool
	Trust        func(Preflight) error
}

// LoadResult tells what was loaded.
type LoadResult struct {
	Snapshot    Snapshot
	Destination string // URL without its password
	Replaced    bool   // a database was there before
	Tables      []archive.Table
	Elapsed     time.Duration
	LeftOut     []schema.Program // that was not loaded, because the snapshot is foreign
	Notices     []string         // what a person should know about how it was loaded
}

// Load replaces the target's destination by a snapshot, whole or not at all.
// The file is verified before anything is touched; then it is restored next to
// the destination, verified again, and put in its place in one step. Until that
// step the old database is unchanged, whatever happens.
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
	d, err := a.dumpOf(s, r)
	if err != nil {
		return LoadResult{}, err
	}
	d.WithPrograms = o.WithPrograms
	ready, err := a.preflight(ctx, s, r, d, to, p)
	if err == nil {
		err = a.confirm(ready, d, o)
	}
	if err != nil {
		return LoadResult{}, err
	}
	o.Jobs = jobsOf(o.Jobs, t.Jobs)
	notices, err := a.replace(ctx, d, to, o, p)
	return LoadResult{
		Snapshot: s, Destination: to.shown, Replaced: ready.Exists, Tables: r.Manifest().Tables,
		Elapsed: a.now().Sub(started), LeftOut: ready.LeftOut, Notices: notices,
	}, err
}

// confirm has the user decide about programs, and then about the load.
func (a *Agent) confirm(ready Preflight, d engine.Dump, o LoadOptions) error {
	if d.Trust == engine.Foreign && d.WithPrograms {
		if err := a.allowPrograms(ready, o.Trust); err != nil {
			return err
		}
	}
	if o.Confirm == nil {
		return nil
	}
	return o.Confirm(ready)
}

// replace restores next to the destination and swaps.
func (a *Agent) replace(ctx context.Context, d engine.Dump, to database, o LoadOptions, p Progress) (notices []string,
	err error) {
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	defer done()
	bytes, begin := p.following("restore")
	notice := func(sentence string) { notices = append(notices, sentence) }
	scratch, err := to.engine.Restore(ctx, to.url, d,
		engine.Options{Jobs: o.Jobs, TempDir: dir, Progress: bytes, Phase: begin, Notice: notice})
	if err != nil {
		return notices, diskError(err, "restore the snapshot")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	begin("swap")
	err = scratch.Swap(ctx, o.Terminate)
	return notices, err
}

// toLoad returns the snapshot that the options choose. It never falls back to
// another type than the one asked for.
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
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of target %q", s.Name, s.Target),
			fmt.Sprintf("run `snapcli load %q --snapshot %q`", s.Target, s.Name))
	case o.Type != "" && s.Type != o.Type:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of type %s", s.Name, s.Type),
			"omit --type, or choose another snapshot")
	}
	return s, nil
}
