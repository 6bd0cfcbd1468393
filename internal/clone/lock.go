package clone

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Every template and clone has a lock file. A process holds an exclusive lock while it creates,
// resets or drops the database, or runs a program that uses it. A process that copies a template
// holds a shared lock. The system releases the locks of a killed process, so if a clone is not
// ready and its lock is free, the clone was left behind. IDs are never used twice. A process that
// gets a lock reads the record again, because the clone may have been dropped in the meantime.

func (r *Registry) lockPath(id string) string { return filepath.Join(r.o.Dir, id+".lock") }

// lock waits for an exclusive lock.
func (r *Registry) lock(ctx context.Context, id string) (release func(), err error) {
	l, err := r.lockFile(id)
	if err == nil {
		_, err = l.TryLockContext(ctx, lockPause)
	}
	return releaseFunc(l, err)
}

// lockShared waits for a shared lock.
func (r *Registry) lockShared(ctx context.Context, id string) (release func(), err error) {
	l, err := r.lockFile(id)
	if err == nil {
		_, err = l.TryRLockContext(ctx, lockPause)
	}
	return releaseFunc(l, err)
}

// lockPause is the time between two attempts to get a lock.
const lockPause = 10 * time.Millisecond

// tryLock takes an exclusive lock if no process holds it.
func (r *Registry) tryLock(id string) (release func(), free bool) {
	l, err := r.lockFile(id)
	if err == nil {
		free, err = l.TryLock()
	}
	if err != nil || !free {
		_ = l.Close()
		return func() {}, false
	}
	return func() { _ = l.Close() }, true
}

func (r *Registry) lockFile(id string) (*flock.Flock, error) {
	return flock.New(r.lockPath(id), flock.SetPermissions(0o600)), os.MkdirAll(r.o.Dir, 0o700)
}

// releaseFunc returns the function that releases a lock, or an error if taking the lock failed with
// err.
func releaseFunc(l *flock.Flock, err error) (func(), error) {
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("lock a clone: %w", err)
	}
	return func() { _ = l.Close() }, nil
}
