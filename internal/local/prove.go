package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"snap"
	"snap/internal/engine"
)

// proof loads a masked copy into a scratch database and drops that database again, so that sanitize
// fails if a load would fail. SQLite needs no proof, because its masks run in a database that is
// then checked.
type proof struct {
	on    database // where to load the copy; without an engine, there is no such place
	must  bool     // an unreachable server is an error
	trust engine.Trust
	masks engine.Plan // how the copy was masked
	dir   string      // for the copy
	jobs  int
	p     Progress
	note  string // why there was no proof

	passed bool // the copy was loaded
}

// proofOf returns the proof for a target's masked copies, or nil for SQLite and if the configuration
// says prove: false. Without a server to load copies on, it fails with prove: true, and otherwise the
// proof only has a note about that.
func (a *Agent) proofOf(t Target, kind snap.Engine, dir string) (*proof, error) {
	must := t.Sanitize.Prove != nil && *t.Sanitize.Prove
	if kind == snap.SQLite || t.Sanitize.Prove != nil && !must {
		return nil, nil
	}
	on, err := a.scratchPlace(t, kind, dir)
	switch {
	case err == nil:
		return &proof{on: on, must: must, dir: dir}, nil
	case must:
		return nil, err
	}
	return &proof{note: "the test load of the masked copy was skipped: " + err.Error()}, nil
}

// verify implements verifyFunc.
func (o *proof) verify(ctx context.Context, w io.Writer, dump func(io.Writer) (engine.Info, error)) (engine.Info,
	error) {
	if o.on.engine == nil {
		return dump(w)
	}
	if _, err := o.on.engine.Check(ctx, o.on.url); err != nil {
		if o.must || ctx.Err() != nil {
			return engine.Info{}, err
		}
		o.note = fmt.Sprintf("the test load of the masked copy was skipped: cannot reach %s: %v", o.on.shown, err)
		return dump(w)
	}
	after, err := teeToFile(filepath.Join(o.dir, "proof"), w, dump)
	defer os.Remove(filepath.Join(o.dir, "proof"))
	if err != nil {
		return after.Info, err
	}
	after.Trust = o.trust
	bytes, begin := o.p.phases("prove")
	begin("prove")
	scratch, err := o.on.engine.Restore(ctx, o.on.url, after, engine.Options{Jobs: o.jobs, TempDir: o.dir,
		Progress: bytes, Enforce: o.masks.Changes})
	if err == nil {
		err = scratch.Drop(context.WithoutCancel(ctx))
	}
	o.passed = err == nil
	return after.Info, o.failed(ctx, err)
}

// failed returns the error for a copy that did not load.
func (o *proof) failed(ctx context.Context, err error) error {
	var e *snap.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &e) {
		return err
	}
	said := *e
	said.Detail = fmt.Sprintf("the masked copy does not load on %s: %s", o.on.shown, e.Detail)
	said.Hint = "correct the rules and run sanitize again; nothing was written"
	if e.Code != snap.CodeInvalid && e.Code != snap.CodeDatabase && e.Hint != "" {
		said.Hint = e.Hint
	}
	said.Cause = err
	return &said
}

// teeToFile writes the output of a function to w and to a new file, and returns the file as a dump.
func teeToFile(path string, w io.Writer, dump func(io.Writer) (engine.Info, error)) (engine.Dump, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return engine.Dump{}, err
	}
	info, err := dump(io.MultiWriter(w, file))
	d := engine.Dump{Info: info, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
	if err := errors.Join(err, file.Close()); err != nil {
		return d, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return d, err
	}
	d.Size = stat.Size()
	return d, nil
}
