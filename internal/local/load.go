package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/schema"
)

// LoadOptions configure [Agent.Load].
type LoadOptions struct {
	Snapshot  string                // name; "" is the snapshot most recently built, sanitized or pulled
	Type      snap.Type             // "" is any type
	Chosen    func(Snapshot)        // called with the chosen snapshot if none was named; may be nil
	Confirm   func(Preflight) error // called before anything is replaced; an error stops the load; a nil Confirm agrees
	Agreed    bool                  // the user agreed to lose whatever the destination contains when it is replaced
	Terminate bool                  // end other connections to the destination
	Force     bool                  // load even into a destination that is marked as production or looks like it
	Jobs      int
	Only      []string // patterns of tables: replaces only their rows, in an existing database
	Identity  []string // files of private keys for decryption; nil: those of the configuration

	// WithPrograms loads the programs of a foreign snapshot too, each after a check. Trust is
	// called if the author is not trusted yet, and an error from it stops the load. A nil Trust
	// refuses.
	WithPrograms bool
	Trust        func(Preflight) error

	Into       Into // how the destination gets its content
	WithGrants bool // give other users the rights that they had in the source, if the snapshot has them

	after  string   // SQL to run in the scratch database
	grants []string // statements that the load ends with
	empty  bool     // replace the destination only if it is still empty, because the user agreed to nothing else
}

// LoadResult is the result of [Agent.Load].
type LoadResult struct {
	Snapshot    Snapshot
	Destination string // URL without its password
	Replaced    bool   // the destination existed before
	Only        bool   // only the rows of Tables were replaced
	Tables      []archive.Table
	Elapsed     time.Duration
	LeftOut     []schema.Program // not loaded, because the snapshot is foreign
	Notices     []string         // messages for the user about the load
}

// Load atomically replaces the target's destination with a snapshot. It verifies the file before it
// changes anything, restores it next to the destination, verifies the result, and swaps the two in
// one step. Until that step, the old database does not change, unless o.Into is [InPlace]. With
// o.Only, Load instead replaces the rows of some tables in one transaction.
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
	if err := o.checkWay(to); err != nil {
		return LoadResult{}, err
	}
	if o.after, err = a.afterLoad(t); err != nil {
		return LoadResult{}, err
	}
	if o.grants, err = grantsOf(t, to); err != nil {
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
	ready.Only = o.Only
	ready.Into = o.Into
	if err == nil {
		err = requireLoadable(ctx, ready, to, o)
	}
	if err == nil {
		err = a.confirm(ready, d, o)
	}
	if err != nil {
		return LoadResult{}, err
	}
	o.Jobs = jobsOf(o.Jobs, t.Jobs)
	o.empty = o.Confirm != nil && !o.Agreed && !ready.Loses()
	if len(o.Only) > 0 {
		tables, err := a.refill(ctx, d, to, ready, o, p)
		return LoadResult{Snapshot: s, Destination: to.shown, Replaced: true, Only: true, Tables: toArchive(tables),
			Elapsed: a.now().Sub(started)}, err
	}
	notices, err := a.replace(ctx, d, to, o, p)
	return LoadResult{
		Snapshot: s, Destination: to.shown, Replaced: ready.Exists, Tables: r.Manifest().Tables,
		Elapsed: a.now().Sub(started), LeftOut: ready.LeftOut,
		Notices: append(d.Info.Schema.Omissions(), notices...),
	}, err
}

// requireLoadable refuses a destination that cannot be loaded in the way that the options choose.
func requireLoadable(ctx context.Context, f Preflight, to database, o LoadOptions) error {
	switch {
	case o.Into != engine.NewDatabase:
		return requireExisting(f, to)
	case len(o.Only) > 0:
		return nil
	}
	if e, ok := to.engine.(engine.Replacer); ok {
		if err := e.RequireReplaceable(ctx, to.url); err != nil {
			return err
		}
	}
	return requireUnused(ctx, f, to, o.Terminate)
}

// requireUnused refuses a destination that others are connected to, before the restore begins. It
// checks several times, because a recently closed connection can still be listed. The swap checks
// again.
func requireUnused(ctx context.Context, f Preflight, to database, terminate bool) error {
	if terminate && to.kind != snap.SQLite {
		return nil
	}
	others := f.Connections
	for range 10 {
		if len(others) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
		info, err := to.engine.Check(ctx, to.url)
		if err != nil {
			return err
		}
		others = info.Connections
	}
	return engine.InUse(to.kind, to.shown, others)
}

// confirm asks the user whether to load programs, and then whether to load at all.
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

// refill replaces the rows of some tables.
func (a *Agent) refill(ctx context.Context, d engine.Dump, to database, ready Preflight, o LoadOptions,
	p Progress) ([]engine.Table, error) {
	filler, ok := to.engine.(engine.Refiller)
	if !ok || !ready.Loses() { // the user was not asked, so tables created in the meantime must not be filled
		why := "does not exist"
		if ready.Exists {
			why = "is empty"
		}
		return nil, &snap.Error{Code: snap.CodeNotFound,
			Detail: fmt.Sprintf("the destination %s %s, so its tables cannot be filled", to.shown, why),
			Hint:   "load the whole snapshot first, without --only"}
	}
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	defer done()
	bytes, begin := p.phases("restore")
	tables, err := filler.Refill(ctx, to.url, d, o.Only, engine.Options{Jobs: o.Jobs, TempDir: dir, Progress: bytes,
		Phase: begin})
	return tables, diskError(err, "load the tables")
}

// replace restores the dump next to the destination and swaps the two.
func (a *Agent) replace(ctx context.Context, d engine.Dump, to database, o LoadOptions, p Progress) (notices []string,
	err error) {
	dir, done, err := a.workDir()
	if err != nil {
		return nil, err
	}
	defer done()
	bytes, begin := p.phases("restore")
	notice := func(sentence string) { notices = append(notices, sentence) }
	scratch, err := to.engine.Restore(ctx, to.url, d,
		engine.Options{Jobs: o.Jobs, TempDir: dir, Progress: bytes, Phase: begin, Notice: notice, Into: o.Into,
			Terminate: o.Terminate, Grants: o.grants, WithGrants: o.WithGrants, OnlyIfEmpty: o.empty})
	if err != nil {
		return notices, diskError(err, "restore the snapshot")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	if o.after != "" {
		begin("after_load")
		if err := scratch.Run(ctx, o.after); err != nil && !errors.Is(err, engine.ErrNoStatement) {
			return notices, fmt.Errorf("after_load: %w", err)
		}
	}
	begin("swap")
	err = scratch.Swap(ctx, o.Terminate)
	return notices, err
}

// toLoad returns the snapshot that the options select. It never substitutes another type for the
// requested one.
func (a *Agent) toLoad(target string, o LoadOptions) (Snapshot, error) {
	if o.Snapshot == "" {
		s, err := a.lastArrived(target, o.Type)
		if err == nil && o.Chosen != nil {
			o.Chosen(s)
		}
		return s, err
	}
	s, err := a.Snapshot(o.Snapshot)
	switch {
	case err != nil:
		return Snapshot{}, err
	case s.Target != target:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s belongs to the target %q", s.Name, s.Target),
			fmt.Sprintf("use the target %s instead of %s", snap.ShellWord(s.Target), snap.ShellWord(target)))
	case o.Type != "" && s.Type != o.Type:
		return Snapshot{}, snap.Usage(fmt.Sprintf("the snapshot %s is of type %s", s.Name, s.Type),
			"omit --type, or choose another snapshot")
	}
	return s, nil
}
