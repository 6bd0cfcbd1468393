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
	on    database // where to load the copy; it has no engine if there is no such server
	must  bool     // the configuration requires a proof, so an unreachable server is an error
	trust engine.Trust
	masks engine.Plan // how the copy was masked
	dir   string      // for the copy
	jobs  int
	p     Progress
	note  string // why there was no proof

	passed bool // the copy was loaded
}

// proofOf returns the proof for a target's masked copies. It returns nil for SQLite, and if the
// configuration says prove: false. Without a server to load copies on, proofOf fails if the
// configuration says prove: true. Otherwise, the proof only notes that the test load was skipped.
func (a *Agent) proofOf(t Target, kind snap.Engine, dir string) (*proof, error) {
	must := t.Sanitize.Prove != nil && *t.Sanitize.Prove
	if kind == snap.SQLite || t.Sanitize.Prove != nil && !must {
		return nil, nil
	}
	on, err := a.scratchServer(t, kind, dir)
	switch {
	case err == nil:
		return &proof{on: on, must: must, dir: dir}, nil
	case must:
		return nil, err
	}
	return &proof{note: "the test load of the masked copy was skipped: " + err.Error()}, nil
}

// verify implements verifyFunc.
func (pr *proof) verify(ctx context.Context, w io.Writer, dump func(io.Writer) (engine.Info, error)) (engine.Info,
	error) {
	if pr.on.engine == nil {
		return dump(w)
	}
	if _, err := pr.on.engine.Check(ctx, pr.on.url); err != nil {
		if pr.must || ctx.Err() != nil {
			return engine.Info{}, err
		}
		pr.note = fmt.Sprintf("the test load of the masked copy was skipped: cannot reach %s: %v", pr.on.shown, err)
		return dump(w)
	}
	after, err := teeToFile(filepath.Join(pr.dir, "proof"), w, dump)
	defer os.Remove(filepath.Join(pr.dir, "proof"))
	if err != nil {
		return after.Info, err
	}
	after.Trust = pr.trust
	bytes, begin := pr.p.phases("prove")
	begin("prove")
	scratch, err := pr.on.engine.Restore(ctx, pr.on.url, after, engine.Options{Jobs: pr.jobs, TempDir: pr.dir,
		Progress: bytes, Enforce: pr.masks.Changes})
	if err == nil {
		err = scratch.Drop(context.WithoutCancel(ctx))
	}
	pr.passed = err == nil
	return after.Info, pr.failed(ctx, err)
}

// failed returns the error for a copy that did not load.
func (pr *proof) failed(ctx context.Context, err error) error {
	var e *snap.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &e) {
		return err
	}
	failure := snap.Error{Code: e.Code, Detail: fmt.Sprintf("the masked copy does not load on %s: %s", pr.on.shown,
		e.Detail), Hint: "correct the rules and run sanitize again; nothing was written", Cause: err}
	if e.Code != snap.CodeInvalid && e.Code != snap.CodeDatabase && e.Hint != "" {
		failure.Hint = e.Hint
	}
	return &failure
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
