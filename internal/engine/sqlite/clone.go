package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
)

var _ engine.Cloner = Engine{}

// Named implements [engine.Cloner]. The named database is a file in the same folder.
func (Engine) Named(raw, name string) (string, error) {
	path, err := Path(raw)
	return URLOf(filepath.Join(filepath.Dir(path), name+".db")), err
}

// CheckCanClone implements [engine.Cloner].
func (Engine) CheckCanClone(_ context.Context, raw string) error {
	path, err := Path(raw)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	return failure(path, err)
}

// Seal implements [engine.Cloner]. It makes the file read-only. Every later write changes the mark
// that it returns.
func (Engine) Seal(_ context.Context, raw string) (string, error) {
	path, err := Path(raw)
	if err == nil {
		err = os.Chmod(path, 0o400)
	}
	if err != nil {
		return "", failure(path, err)
	}
	return markOf(path), nil
}

// markOf returns the mark of a sealed file, or "" if the file is missing or a writer's side files
// are next to it.
func markOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	for _, side := range []string{"-wal", "-journal"} {
		if hasContent(path + side) {
			return ""
		}
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), info.Mode())
}

func hasContent(path string) bool {
	file, err := os.Stat(path)
	return err == nil && file.Size() > 0
}

// Copy implements [engine.Cloner].
func (Engine) Copy(ctx context.Context, from, to string, o engine.CopyOptions) error {
	target, err := Path(to)
	if err == nil {
		err = copyFile(ctx, from, target, o)
	}
	return err
}

// copyFile creates a file with a copy of a database.
func copyFile(ctx context.Context, from, to string, o engine.CopyOptions) error {
	path, err := Path(from)
	if err != nil {
		return err
	}
	release := func() {}
	if o.Mark == "" {
		if release, err = quiesce(ctx, path); err != nil {
			return failure(path, err)
		}
	} else if markOf(path) != o.Mark {
		return engine.ErrNotSealed
	}
	defer release()
	if err := requireRoom(path, filepath.Dir(to)); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return failure(to, disk.Copy(path, to, 0o600))
}

// quiesce moves the write-ahead log of a database into its file and prevents writes until release
// is called.
func quiesce(ctx context.Context, path string) (release func(), err error) {
	db, err := open(path, "rw")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	release = func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		conn.Close()
		db.Close()
	}
	const attempts = 20 // somebody may write between the checkpoint and BEGIN
	for range attempts {
		var busy, pages, moved int
		err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &moved)
		if err == nil {
			_, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE")
		}
		if err != nil {
			release()
			return nil, err
		}
		if !hasContent(path + "-wal") {
			return release, nil
		}
		if _, err = conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			release()
			return nil, err
		}
	}
	release()
	return nil, &snap.Error{Code: snap.CodeConflict, Detail: fmt.Sprintf("the database %s is in use", path),
		Hint: "close the programs that write to it and try again"}
}

// requireRoom returns an error if a folder cannot hold a copy of a file.
func requireRoom(path, dir string) error {
	info, err := os.Stat(path)
	if err != nil {
		return failure(path, err)
	}
	free, known := disk.Free(dir)
	if !known || info.Size() < free || disk.SharesBlocks(dir) {
		return nil
	}
	return engine.NoRoom(info.Size(), "in "+dir, free)
}

// nextSuffix is the end of the name of the file in which Reset prepares the new content.
const nextSuffix = "-next"

// Reset implements [engine.Cloner]. It cannot end other processes' connections, so it returns a
// conflict if the clone is in use.
func (Engine) Reset(ctx context.Context, from, to string, o engine.CopyOptions) error {
	place, err := cloneFile(to)
	if err != nil {
		return err
	}
	next := place + nextSuffix
	if err := removeFile(next); err != nil {
		return failure(place, err)
	}
	if err := copyFile(ctx, from, next, o); err != nil {
		return err
	}
	s := &scratch{place: place, path: next}
	defer s.remove()
	return s.Swap(ctx, false)
}

// cloneFile returns the path of a clone. It fails for any other database.
func cloneFile(raw string) (string, error) {
	path, err := Path(raw)
	if err == nil && !strings.HasPrefix(filepath.Base(path), engine.ClonePrefix) {
		err = errors.New("the database is not a clone: " + path)
	}
	return path, err
}

// Recover implements [engine.Cloner].
func (Engine) Recover(_ context.Context, raw string) error {
	path, err := cloneFile(raw)
	if err == nil {
		removeSides(path + nextSuffix)
		err = removeFile(path + nextSuffix)
	}
	return failure(path, err)
}

// Drop implements [engine.Cloner].
func (e Engine) Drop(ctx context.Context, raw string) error {
	path, err := cloneFile(raw)
	if err == nil {
		err = e.Recover(ctx, raw)
	}
	if err == nil {
		err = errors.Join(removeFile(path), sweepAll(path))
		removeSides(path)
	}
	return failure(path, err)
}

// removeFile removes a file if it exists.
func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// States implements [engine.Cloner].
func (Engine) States(_ context.Context, urls []string) ([]engine.DatabaseState, error) {
	all := make([]engine.DatabaseState, len(urls))
	for i, raw := range urls {
		path, err := Path(raw)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		all[i] = engine.DatabaseState{Exists: true, Size: info.Size(), Connections: users(path)}
	}
	return all, nil
}
