package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"snap"
	"snap/internal/archive"
	"snap/internal/diff"
	"snap/internal/engine"
)

// DiffOptions select what a comparison returns.
type DiffOptions struct {
	Table    string   // table whose differing rows are also listed, as table or schema.table
	Limit    int      // maximum number of listed rows
	Identity []string // files of private keys for decryption; nil: those of the configuration
}

// Difference is the result of a comparison. After is "" for the current database.
type Difference struct {
	Before, After string
	diff.Result
	Rows     *diff.Rows // the differing rows of [DiffOptions].Table
	Warnings []string
}

// Diff compares a snapshot with another one of the same kind of database, or with the current
// database of its target if after is "". It runs on this machine and changes nothing.
func (a *Agent) Diff(ctx context.Context, before, after string, o DiffOptions, p Progress) (Difference, error) {
	d := Difference{Before: before, After: after}
	dir, done, err := a.workDir()
	if err != nil {
		return d, err
	}
	defer done()
	first, err := a.diffSnapshot(ctx, before, o.Identity, filepath.Join(dir, "before"), p)
	if err != nil {
		return d, err
	}
	defer first.file.Close()
	var second diffSide
	if after == "" {
		second, err = a.diffNow(ctx, first.target, filepath.Join(dir, "after"), p)
	} else {
		second, err = a.diffSnapshot(ctx, after, o.Identity, filepath.Join(dir, "after"), p)
	}
	if err != nil {
		return d, err
	}
	defer second.file.Close()
	if x, y := first.file.Manifest().Engine, second.file.Manifest().Engine; x != y {
		return d, snap.Usage(
			fmt.Sprintf("%s is from %s and %s is from %s", before, x, cmp.Or(after, "the database"), y),
			"compare two snapshots of the same kind of database")
	}
	if first.dump.Info.Schema == nil || second.dump.Info.Schema == nil {
		d.Warnings = append(d.Warnings, "a snapshot has no description of its tables: "+
			"rows are compared without their keys, and columns only by their SQL")
	}
	var want *diff.Wanted
	if o.Table != "" {
		table, err := findTable(o.Table, first.dump.Info.Tables, second.dump.Info.Tables)
		if err != nil {
			return d, err
		}
		want = &diff.Wanted{Table: table, Limit: o.Limit}
	}
	p.phase("compare")
	d.Result, d.Rows, err = diff.Compare(ctx, first.open, second.open, want, dir)
	if errors.Is(err, diff.ErrNoTable) {
		err = snap.Usage(fmt.Sprintf("the table %s exists on only one side", o.Table),
			"list the rows of a table that exists on both sides")
	}
	return d, diskError(err, "compare the snapshots")
}

// findTable returns the schema and name of a table that is given as "table" or "schema.table".
func findTable(given string, lists ...[]engine.Table) ([2]string, error) {
	var found [][2]string
	for _, t := range slices.Concat(lists...) {
		name := [2]string{t.Schema, t.Name}
		full := strings.TrimPrefix(t.Schema+"."+t.Name, ".")
		if (given == t.Name || given == full) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return [2]string{}, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no table %q", given),
			Hint: "name a table of the snapshots"}
	case 1:
		return found[0], nil
	}
	return [2]string{}, snap.Usage(fmt.Sprintf("several schemas have a table %q", given),
		"give it with its schema, as in public."+given)
}

// diffSide is one of the two snapshot files that are compared.
type diffSide struct {
	target string
	file   *archive.Reader
	engine engine.DumpReader
	dump   engine.Dump
	dir    string // for temporary files
}

func (s diffSide) open(ctx context.Context) (diff.Side, error) {
	r, err := s.engine.ReadDump(ctx, s.dump, engine.Options{Jobs: 1, TempDir: s.dir})
	return diff.Side{Reading: r, Schema: s.dump.Info.Schema}, err
}

// diffSnapshot opens a snapshot's file and checks every byte of it.
func (a *Agent) diffSnapshot(ctx context.Context, name string, identity []string, dir string,
	p Progress) (diffSide, error) {
	s, err := a.Snapshot(name)
	if err != nil {
		return diffSide{}, err
	}
	r, err := a.openVerified(ctx, s, p, identity...)
	if err != nil {
		return diffSide{}, err
	}
	dump, err := a.dumpOf(s, r)
	if err != nil {
		r.Close()
		return diffSide{}, err
	}
	return a.diffFile(s.Target, r, dump, dir)
}

// diffNow dumps the current database of a target into a temporary file.
func (a *Agent) diffNow(ctx context.Context, target, dir string, p Progress) (diffSide, error) {
	t, err := a.Target(target)
	if err != nil {
		return diffSide{}, err
	}
	if t.Source == "" {
		return diffSide{}, snap.Usage(fmt.Sprintf("the target %q has no source to compare with", t.Name),
			"name a second snapshot")
	}
	from, err := a.databaseAt(t.source())
	if err != nil {
		return diffSide{}, err
	}
	path := dir + ".snap"
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return diffSide{}, diskError(err, "copy the current database to a temporary file")
	}
	defer file.Close()
	bytes, begin := p.phases("dump")
	d := draft{jobs: jobsOf(0, t.Jobs), Manifest: archive.Manifest{Target: t.Name, Name: t.Name,
		Type: snap.TypeSnapshot, Engine: from.kind, Created: a.now().UTC()}}
	_, _, err = writeArchive(file, d, func(w io.Writer) (engine.Info, error) {
		return from.engine.Dump(ctx, from.url, w, engine.Options{Jobs: d.jobs, TempDir: a.tempDir(), Progress: bytes,
			Phase: begin})
	})
	if err != nil {
		return diffSide{}, diskError(err, "copy the current database to a temporary file")
	}
	r, err := archive.OpenOwn(path)
	if err != nil {
		return diffSide{}, err
	}
	return a.diffFile(target, r, dumpIn(r), dir)
}

func (a *Agent) diffFile(target string, r *archive.Reader, dump engine.Dump, dir string) (diffSide, error) {
	e, err := a.engineFor(r.Manifest().Engine)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	reader, ok := e.(engine.DumpReader)
	if err == nil && !ok {
		err = snap.Invalid(fmt.Sprintf("databases of kind %q cannot be compared", r.Manifest().Engine), "")
	}
	if err != nil {
		r.Close()
		return diffSide{}, err
	}
	return diffSide{target, r, reader, dump, dir}, nil
}
