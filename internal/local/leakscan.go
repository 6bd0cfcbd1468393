package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"snap"
	"snap/internal/engine"
	"snap/internal/sanitize"
)

// leakScan searches masked output for original values that the masking SQL removed from one column,
// but that still occur in another column or in the schema.
type leakScan struct {
	engine engine.Engine
	before engine.Dump // the dump that the SQL was run on
	sql    string
	dir    string // for the dump to search

	possible  bool // whether this kind of dump can be searched
	originals []sanitize.Watched
}

// begin collects the original values to search for, if this kind of dump can be searched.
func (s *leakScan) begin(ctx context.Context) error {
	rewriter, ok := s.engine.(engine.Rewriter)
	if !ok {
		return nil
	}
	dir, err := os.MkdirTemp(s.dir, "before")
	if err != nil {
		return diskError(err, "create a temporary folder")
	}
	defer os.RemoveAll(dir)
	c, err := rewriter.Inspect(ctx, s.before, sanitize.Samples, engine.Options{Jobs: 1, TempDir: dir})
	var refused *snap.Error
	if errors.As(err, &refused) && refused.Code == snap.CodeInvalid {
		return nil // the engine cannot inspect this dump
	}
	if err != nil {
		return diskError(err, "inspect the snapshot")
	}
	c.Schema = s.before.Info.Schema
	s.possible, s.originals = true, sanitize.Originals(c, s.sql)
	return nil
}

// verify writes a dump and returns an error if it contains original values.
func (s *leakScan) verify(ctx context.Context, w io.Writer, dump func(io.Writer) (engine.Info, error)) (engine.Info,
	error) {
	if !s.possible || len(s.originals) == 0 {
		return dump(w)
	}
	path := filepath.Join(s.dir, "after")
	after, err := teeToFile(path, w, dump)
	defer os.Remove(path)
	if err != nil {
		return after.Info, err
	}
	after.Trust = s.before.Trust
	return after.Info, s.scan(ctx, after)
}

func (s *leakScan) scan(ctx context.Context, after engine.Dump) error {
	rewriter := s.engine.(engine.Rewriter)
	dir, err := os.MkdirTemp(s.dir, "look")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o := engine.Options{Jobs: 1, TempDir: dir}
	c, err := rewriter.Inspect(ctx, after, 1, o)
	if err != nil {
		return err
	}
	l := sanitize.NewLocator(s.originals)
	plan, searches := l.Plan(engine.Plan{}, c), []func(*sanitize.Literals){}
	plan.Schema = func(kind, name string, text []byte) {
		text = bytes.Clone(text)
		searches = append(searches, func(l *sanitize.Literals) { l.Search(kind, name, text) })
	}
	if _, err := rewriter.Rewrite(ctx, after, plan, io.Discard, o); err != nil {
		return err
	}
	literals := sanitize.NewLiterals(l.Changed())
	for _, search := range searches {
		search(literals)
	}
	return errors.Join(l.Result(true), literals.ResultOfSQL())
}
