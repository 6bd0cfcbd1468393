package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"snap"
	"snap/internal/archive"
	"snap/internal/engine"
	"snap/internal/engine/sqlite"
)

// reread reads the dump of an open snapshot file as a load does: its definitions and, if rows is
// true, every row. A dump that reread refuses could never be loaded.
func (a *Agent) reread(ctx context.Context, r *archive.Reader, s Snapshot, rows bool) error {
	m := r.Manifest()
	e, err := a.engineFor(m.Engine)
	if err != nil {
		return err
	}
	d, err := a.dumpOf(s, r)
	if err != nil {
		return nil // the file is not damaged; a load of a foreign snapshot reports a missing description
	}
	dir, done, err := a.workDir()
	if err != nil {
		return err
	}
	defer done()
	if m.Engine == snap.SQLite {
		return unreadable(ctx, tryRestore(ctx, e, d, dir))
	}
	reader, ok := e.(engine.DumpReader)
	if !ok {
		return nil
	}
	in, err := reader.ReadDump(ctx, d, engine.Options{Jobs: 1, TempDir: dir})
	if err != nil {
		return unreadable(ctx, err)
	}
	defer func() { _ = in.Close() }() // it is only read
	if !rows {
		return nil
	}
	counts := make([]int64, len(in.Tables()))
	err = in.Rows(ctx, func(table int, _ [][]byte) error {
		counts[table]++
		return nil
	})
	if err == nil {
		err = requireSameCounts(in.Tables(), counts, m)
	}
	return unreadable(ctx, err)
}

// tryRestore loads a SQLite dump into a file in dir, and then removes the file.
func tryRestore(ctx context.Context, e engine.Engine, d engine.Dump, dir string) error {
	scratch, err := e.Restore(ctx, sqlite.URLOf(filepath.Join(dir, "check.db")), d, engine.Options{Jobs: jobsOf(0, 0),
		TempDir: dir})
	if err != nil {
		return err
	}
	return scratch.Drop(context.WithoutCancel(ctx))
}

// readBack checks that this program can read the definitions in a file that was just written,
// because the server writes them in many forms. It skips SQLite files, which are checked while they
// are copied, and encrypted files, for which it would need a private key.
func (a *Agent) readBack(ctx context.Context, s Snapshot, file string) error {
	s.Path = file
	r, err := openSnapshot(s)
	if err != nil {
		return err
	}
	defer r.Close()
	if s.Engine == snap.SQLite || r.Locked() {
		return nil
	}
	return a.reread(ctx, r, s, false)
}

// requireSameCounts compares the rows of a dump with those that its manifest lists.
func requireSameCounts(tables []engine.Table, counts []int64, m archive.Manifest) error {
	listed := map[[2]string]int64{}
	for _, t := range m.Tables {
		listed[[2]string{t.Schema, t.Name}] = t.Rows
	}
	for i, t := range tables {
		if rows, ok := listed[[2]string{t.Schema, t.Name}]; ok && rows >= 0 && rows != counts[i] {
			return fmt.Errorf("the table %s has %d rows in the dump and should have %d",
				snap.TableName(t.Schema, t.Name), counts[i], rows)
		}
	}
	return nil
}

// unreadable returns the error for a dump that no load would accept.
func unreadable(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || snap.CodeOf(err) == snap.CodeStorageFull {
		return err
	}
	var e *snap.Error
	if errors.As(err, &e) && e.Code == snap.CodeCorrupt {
		return err
	}
	return &snap.Error{Code: snap.CodeCorrupt, Cause: err,
		Detail: fmt.Sprintf("the snapshot cannot be loaded, because its dump cannot be read: %v", err),
		Hint:   "build it again, and report this error"}
}
