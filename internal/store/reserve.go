package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	sqlitedriver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/disk"
)

type allowReserveKey struct{}

// AllowReserve lets a request use the reserve on a full disk. It is for requests that take access
// away, such as an unshare or the revocation of a key, for requests that must come before them,
// such as a sign-in, and for work that frees space.
func AllowReserve(ctx context.Context) context.Context {
	return context.WithValue(ctx, allowReserveKey{}, true)
}

// reserve is a file next to the SQLite database that only occupies space on the disk. When the disk
// is full, the file is removed for a request with [AllowReserve], and only such requests may use
// its space. The file is created again once there is room. Its existence is the only state, so
// several processes agree on it.
type reserve struct {
	path string
	size int64 // 0 means no reserve
}

// exists reports whether the file exists in its full size.
func (r reserve) exists() bool {
	info, err := os.Stat(r.path)
	return err == nil && info.Size() >= r.size
}

// fill creates the file if twice its size is free.
func (r reserve) fill() {
	free, known := disk.Free(filepath.Dir(r.path))
	if r.size == 0 || r.exists() || !known || free < 2*r.size {
		return
	}
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	err = disk.Preallocate(file, r.size)
	if file.Close() != nil || err != nil {
		_ = os.Remove(r.path)
	}
}

// release frees the space for a request with [AllowReserve]. It returns false for other requests
// and if there was no reserve.
func (r reserve) release(ctx context.Context) bool {
	return r.size > 0 && ctx.Value(allowReserveKey{}) != nil && os.Remove(r.path) == nil
}

// requireSpace refuses a transaction that would use the space of a released reserve.
func (r reserve) requireSpace(ctx context.Context) error {
	if r.size == 0 || ctx.Value(allowReserveKey{}) != nil || r.exists() {
		return nil
	}
	if r.fill(); r.exists() {
		return nil
	}
	if free, known := disk.Free(filepath.Dir(r.path)); known && free < r.size {
		return errDiskFull(nil)
	}
	return nil
}

// isDiskFull reports whether err says that the database's disk is full.
func isDiskFull(err error) bool {
	var e *sqlitedriver.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_FULL || e.Code() == lib.SQLITE_IOERR_SHMSIZE) ||
		disk.Full(err)
}

// ignoreDiskFull ignores the error of a full disk, for a write that a request can do without.
func ignoreDiskFull(err error) error {
	if isDiskFull(err) {
		return nil
	}
	return err
}

func errDiskFull(cause error) error {
	return &snap.Error{
		Code:   snap.CodeStorageFull,
		Detail: "the disk of the service's database is full",
		Hint:   "ask the service's operator to free some space; unshares, revocations and sign-outs still work",
		Cause:  cause,
	}
}
