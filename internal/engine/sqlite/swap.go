package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"

	sqlite3 "modernc.org/sqlite"
)

// Swap implements [engine.Scratch]. It renames the scratch file while nobody else can use the old
// database. It empties the old write-ahead log first, because SQLite would apply it to the new
// file. SQLite cannot disconnect others, so terminate has no effect.
func (s *scratch) Swap(ctx context.Context, _ bool) error {
	if who := users(s.place); len(who) > 0 {
		return engine.InUse(snap.SQLite, s.place, who)
	}
	release, err := seize(ctx, s.place)
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

// seize locks the old database exclusively and moves its log into it. Call release after the
// rename. If there is no old database, or only an empty file, seize removes the side files of an
// earlier one.
func seize(ctx context.Context, place string) (release func(), err error) {
	old, err := os.Stat(place)
	if errors.Is(err, os.ErrNotExist) || err == nil && old.Size() == 0 {
		removeSides(place)
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	db, err := open(place, "rw")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	release = func() { conn.Close(); db.Close() }
	if err := lock(ctx, conn); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// lock takes the exclusive lock, which exclusive mode keeps after the commit, and moves the log
// into the file.
func lock(ctx context.Context, conn *sql.Conn) error {
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
			Detail: "the database is in use",
			Hint:   "close the programs that use it and try again",
		}
	}
	// The connection must not remove the log when it closes: the log may by then belong to a
	// connection to the new file.
	return conn.Raw(func(driver any) error {
		_, err := driver.(sqlite3.FileControl).FileControlPersistWAL("main", 1)
		return err
	})
}
