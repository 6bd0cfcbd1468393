package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"
	sqlite3 "modernc.org/sqlite"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

// Restore implements [engine.Engine]. The scratch database is a file in the folder of the database
// to be replaced, so that the swap is one rename.
func (Engine) Restore(ctx context.Context, raw string, d engine.Dump, o engine.Options) (engine.Scratch, error) {
	path, err := placeOf(raw)
	if err != nil {
		return nil, err
	}
	s := &scratch{place: path, o: o, trust: d.Trust}
	if err := s.fill(ctx, d); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// scratch is a database file that is filled from a dump. Unless it is temporary, it is in the
// folder of the database that it will replace.
type scratch struct {
	place string // path of the database to replace
	path  string // of the scratch file; "" after the swap
	o     engine.Options

	temporary bool   // it never replaces a database, so it need not survive a power failure
	mode      string // the mode in which checks open the file; "" is "rw"
	trust     engine.Trust
	lock      *flock.Flock // marks the file as in use
}

// open opens the file. A file from somebody else is opened on a confined connection.
func (s *scratch) open(ctx context.Context, mode string, pragmas ...string) (*sql.DB, error) {
	if s.trust == engine.Mine {
		return open(s.path, mode, pragmas...)
	}
	return confine(ctx, &sqlite3.Driver{}, s.path, url.Values{"mode": {mode}, "_defensive": {"1"}, "_pragma": pragmas})
}

// fill creates the file from the dump, and checks the file while it is flushed to the disk.
func (s *scratch) fill(ctx context.Context, d engine.Dump) error {
	file, err := s.write(ctx, d)
	if err != nil {
		return failure(s.place, err)
	}
	defer file.Close()
	s.o.Begin("verify")
	var g errgroup.Group
	g.Go(file.Sync)
	if d.Trust == engine.Foreign {
		err = s.checkKeys(ctx, d.Info)
	} else {
		err = s.verify(ctx, d.Info)
	}
	if syncErr := g.Wait(); err == nil {
		err = syncErr
	}
	return failure(s.place, err)
}

// write creates the file from the dump. It returns the open file, which is not synced yet.
func (s *scratch) write(ctx context.Context, d engine.Dump) (*os.File, error) {
	_, _ = sweep(s.place) // doctor reports the files that cannot be removed
	file, err := s.create()
	if errors.Is(err, os.ErrNotExist) {
		return nil, &snap.Error{
			Code:   snap.CodeNotFound,
			Detail: fmt.Sprintf("the folder %s does not exist", filepath.Dir(s.place)),
			Hint:   "create the folder, or correct the target's destination",
		}
	}
	if err != nil {
		return nil, err
	}
	s.o.Begin("restore")
	if err := s.writeContent(ctx, file, d); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// writeContent writes the dump into the file: its pages if the author is trusted, and otherwise
// only its rows.
func (s *scratch) writeContent(ctx context.Context, file *os.File, d engine.Dump) error {
	if old, err := os.Stat(s.place); err == nil {
		if err := file.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
		keepOwner(file, old)
	}
	switch d.Trust {
	case engine.Mine:
		return s.copy(ctx, file, d)
	case engine.Ours:
		if err := s.copy(ctx, file, d); err != nil {
			return err
		}
		return checkSchema(file)
	}
	return s.rebuild(ctx, file, d)
}

// checkSchema checks every entry of a file's schema before SQLite opens the file.
func checkSchema(file *os.File) error {
	b, err := newBuilder(file, nil, engine.Options{})
	if err != nil {
		return foreignFailure(err)
	}
	for _, e := range b.catalog.entries {
		if e.sql == "" && e.kind == "index" && e.internal() {
			continue // the index of a constraint
		}
		if err := e.check(); err != nil {
			return err
		}
	}
	return nil
}

// copy writes the bytes of the dump into a file.
func (s *scratch) copy(ctx context.Context, file *os.File, d engine.Dump) error {
	in, err := d.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(&engine.Counter{W: file, O: s.o, Of: d.Size}, engine.Reader(ctx, in))
	return err
}

// verify checks the restored file with SQLite and counts its rows at the same time.
func (s *scratch) verify(ctx context.Context, want engine.Info) error {
	db, err := s.open(ctx, "rw", fewPages)
	if err != nil {
		return err
	}
	defer db.Close()
	checks, err := s.checks(ctx, db, want)
	if err != nil {
		return damaged("", err)
	}
	var g errgroup.Group
	g.Go(func() error { return s.check(ctx, checks) })
	got, err := tables(ctx, db)
	if checkErr := g.Wait(); checkErr != nil {
		return checkErr
	}
	if err != nil {
		return damaged("", err)
	}
	if err := s.checkKeys(ctx, want); err != nil {
		return err
	}
	return engine.Compare(want.Tables, labeled(got))
}

// checkKeys checks the foreign keys of a restored subset.
func (s *scratch) checkKeys(ctx context.Context, want engine.Info) error {
	keys, ok := want.Properties[engine.ForeignKeys]
	if !ok {
		return nil
	}
	db, err := s.open(ctx, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	return checkForeignKeys(ctx, db, keys)
}

func damaged(reason string, err error) error {
	reason, _, _ = strings.Cut(reason, ";")
	if reason == "" && err != nil {
		reason = err.Error()
	}
	return &snap.Error{
		Code:   snap.CodeCorrupt,
		Detail: "the database in the snapshot is damaged: " + reason,
		Hint:   "rebuild the snapshot; nothing was replaced",
		Cause:  err,
	}
}

// URL implements [engine.Scratch].
func (s *scratch) URL() string { return URLOf(s.path) }

// Run implements [engine.Scratch]. No trigger fires. Deleted content stays in the file until Scrub
// removes it.
func (s *scratch) Run(ctx context.Context, text string) error {
	db, err := s.open(ctx, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return failure(s.path, err)
	}
	defer conn.Close()
	triggers, err := withoutTriggers(ctx, conn)
	if err != nil {
		return failure(s.path, err)
	}
	if _, err := conn.ExecContext(ctx, text); err != nil {
		return statementError(err)
	}
	// A transaction that the SQL left open would be lost silently.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return snap.Invalid("the SQL begins a transaction and does not commit it", "add COMMIT at the end")
	}
	if _, err = conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return err
	}
	return failure(s.path, recreateTriggers(ctx, conn, triggers))
}

func statementError(err error) error {
	if errors.Is(err, context.Canceled) || code(err) == 0 || disk.Full(err) {
		return failure("the scratch copy", err)
	}
	return &snap.Error{
		Code:   snap.CodeDatabase,
		Detail: "the SQL failed: " + strings.TrimSpace(err.Error()),
		Hint:   "correct the SQL and try again; this run's changes were undone",
		Cause:  err,
	}
}

// Scrub implements [engine.Scratch]. It rewrites the database without its free space, which can
// contain old values. It uses VACUUM INTO because plain VACUUM can change rowids.
func (s *scratch) Scrub(ctx context.Context) error {
	clean := s.path + "-clean"
	var pragmas []string
	if s.temporary {
		pragmas = []string{noSync}
	}
	db, err := s.open(ctx, "rw", pragmas...)
	if err != nil {
		return err
	}
	var mode string
	if err = updateStatistics(ctx, db); err == nil {
		err = db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode)
	}
	if err == nil && s.trust != engine.Mine {
		err = limit(ctx, db, 1) // VACUUM attaches the file that it writes
	}
	if err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", clean)
	}
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err == nil && mode == "wal" { // VACUUM INTO does not keep this mode
		err = s.setMode(ctx, clean, mode)
	}
	if err == nil {
		err = os.Rename(clean, s.path)
	}
	if err != nil {
		os.Remove(clean)
		return failure(s.path, err)
	}
	removeSides(s.path)
	return nil
}

// setMode sets the journal mode of a file.
func (s *scratch) setMode(ctx context.Context, path, mode string) error {
	db, err := (&scratch{path: path, trust: s.trust}).open(ctx, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode = "+mode)
	return err
}

// updateStatistics recomputes the planner's statistics, if there are any, because they contain old
// values of rows.
func updateStatistics(ctx context.Context, db *sql.DB) error {
	var n int
	err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')").Scan(&n)
	if err == nil && n > 0 {
		_, err = db.ExecContext(ctx, "ANALYZE")
	}
	return err
}

// Drop implements [engine.Scratch].
func (s *scratch) Drop(context.Context) error {
	s.remove()
	return nil
}

func (s *scratch) remove() {
	if s.path != "" {
		os.Remove(s.path)
		os.Remove(s.path + "-clean")
		removeSides(s.path)
	}
	s.release()
}

// removeSides removes the side files that SQLite keeps next to a database: the journal, the
// write-ahead log and its index.
func removeSides(path string) {
	for _, side := range []string{"-wal", "-shm", "-journal"} {
		os.Remove(path + side)
	}
}
