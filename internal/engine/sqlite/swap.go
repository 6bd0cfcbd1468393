package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

// Swap implements [engine.Scratch]. It renames the scratch file while nobody else can use the old
// database. It first empties the old write-ahead log, because SQLite would otherwise apply the log
// to the new file. SQLite cannot disconnect others, so Swap ignores the argument terminate.
func (s *scratch) Swap(ctx context.Context, _ bool) error {
	if others := users(s.place); len(others) > 0 {
		return engine.InUse(snap.SQLite, s.place, others)
	}
	release, err := s.seize(ctx)
	if err != nil {
		return failure(s.place, err)
	}
	defer release()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(s.path, s.place); err != nil {
		return failure(s.place, err)
	}
	s.path = ""
	s.release()
	return disk.SyncDir(filepath.Dir(s.place))
}

// seize locks the old database exclusively and moves its write-ahead log into its file. Call
// release after the rename. If the old file is missing or empty, seize does not open it, and only
// removes the side files of an earlier database.
//
// If only an empty database may be replaced, seize locks an empty file too, and creates a missing
// one. Nobody can then fill the database between the check and the rename.
func (s *scratch) seize(ctx context.Context) (release func(), err error) {
	if s.o.OnlyIfEmpty {
		if err := create(s.place); err != nil {
			return nil, err
		}
	}
	old, err := os.Stat(s.place)
	if !s.o.OnlyIfEmpty && (errors.Is(err, os.ErrNotExist) || err == nil && old.Size() == 0) {
		removeSides(s.place)
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	db, err := open(s.place, "rw")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	release = func() { conn.Close(); db.Close() }
	err = lock(ctx, conn, s.place)
	if err == nil && s.o.OnlyIfEmpty {
		err = s.requireEmpty(ctx, conn)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// create creates an empty database if there is no file. It does not open an existing file, because
// closing the file would release the locks that this process has on it.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// requireEmpty returns an error if the locked database has content, or if another program has
// opened it: SQLite would let that program write into an empty file even after the rename.
func (s *scratch) requireEmpty(ctx context.Context, conn *sql.Conn) error {
	empty, err := isEmpty(ctx, conn)
	if err != nil {
		return err
	}
	if !empty {
		return engine.Filled(s.place)
	}
	if others := users(s.place); len(others) > 0 {
		return engine.InUse(snap.SQLite, s.place, others)
	}
	return nil
}

// lock takes the exclusive lock and moves the write-ahead log into the file. Exclusive mode keeps
// the lock after the commit.
func lock(ctx context.Context, conn *sql.Conn, path string) error {
	for _, statement := range []string{"PRAGMA busy_timeout = 1000", "PRAGMA locking_mode = EXCLUSIVE",
		"BEGIN EXCLUSIVE", "COMMIT"} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		return err
	}
	var busy, pages, moved int
	if err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return &snap.Error{
			Code:   snap.CodeConflict,
			Detail: fmt.Sprintf("the database %s is in use", path),
			Hint:   "close the programs that use it and try again",
		}
	}
	// The connection must not remove the log when it closes, because the log may by then belong to
	// a connection to the new file.
	return conn.Raw(func(driver any) error {
		_, err := driver.(sqlite3.FileControl).FileControlPersistWAL("main", 1)
		return err
	})
}
