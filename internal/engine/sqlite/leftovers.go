package sqlite

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"snap/internal/disk"
	"snap/internal/engine"
)

var _ engine.Cleaner = Engine{}

// A scratch file is in the same folder as the database that it will replace. A process that uses
// the scratch file holds a lock on a second file next to it. The operating system releases the lock
// if the process is killed.
const (
	tempSuffix = ".snapcli-tmp"
	lockSuffix = "-lock"
)

func tempPrefix(place string) string { return "." + filepath.Base(place) + "." }

// create takes the lock and then creates the scratch file.
func (s *scratch) create() (*os.File, error) {
	lock, err := os.CreateTemp(filepath.Dir(s.place), tempPrefix(s.place)+"*"+tempSuffix+lockSuffix)
	if err != nil {
		return nil, err
	}
	lock.Close()
	s.lock = flock.New(lock.Name())
	if _, err := s.lock.TryLock(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.release()
		return nil, err
	}
	path := strings.TrimSuffix(lock.Name(), lockSuffix)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.release()
		return nil, err
	}
	s.path = path
	return file, nil
}

// release releases the lock.
func (s *scratch) release() {
	if s.lock != nil {
		s.lock.Unlock()
		os.Remove(s.lock.Path())
		s.lock = nil
	}
}

// tempFiles returns the scratch files next to a database, or their lock files. suffix is the end of
// their names.
func tempFiles(place, suffix string) []string {
	return disk.Glob(filepath.Dir(place), disk.EscapeGlob(tempPrefix(place))+"*"+suffix)
}

// leftBehind returns the abandoned scratch files next to a database, and old lock files without a
// scratch file.
func leftBehind(place string) []string {
	all := slices.DeleteFunc(tempFiles(place, tempSuffix), func(path string) bool { return !abandoned(path) })
	for _, path := range tempFiles(place, tempSuffix+lockSuffix) {
		if _, err := os.Stat(strings.TrimSuffix(path, lockSuffix)); err != nil && old(path) {
			all = append(all, path)
		}
	}
	return all
}

// abandoned reports whether no process uses a scratch file. A file without a lock comes from an
// older version of snapcli and counts as abandoned after a day.
func abandoned(path string) bool {
	if _, err := os.Stat(path + lockSuffix); err != nil {
		return old(path)
	}
	lock := flock.New(path + lockSuffix)
	free, err := lock.TryLock()
	if !free || err != nil {
		return false
	}
	lock.Unlock()
	return true
}

func old(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}

// sweepAll is like [sweep], but also removes the lock files of processes that were killed before
// they created their scratch files. The caller must prevent new loads into the database.
func sweepAll(place string) error {
	_, err := sweep(place)
	for _, path := range tempFiles(place, tempSuffix+lockSuffix) {
		lock := flock.New(path)
		if free, failed := lock.TryLock(); free && failed == nil {
			err = errors.Join(err, os.Remove(path), lock.Unlock())
		}
	}
	return err
}

// sweep removes the scratch files that killed loads left next to a database. It returns the removed
// files and the first error.
func sweep(place string) (removed []string, err error) {
	for _, path := range leftBehind(place) {
		if failed := os.Remove(path); failed != nil {
			err = cmp.Or(err, failed)
			continue
		}
		os.Remove(path + lockSuffix)
		os.Remove(path + "-clean")
		removeSides(path)
		removed = append(removed, path)
	}
	return removed, err
}

// Leftovers implements [engine.Cleaner]. It lists the scratch files of killed loads, next to the
// database at url.
func (Engine) Leftovers(_ context.Context, url string) ([]string, error) {
	place, err := placeOf(url)
	if err != nil {
		return nil, err
	}
	return leftBehind(place), nil
}

// RemoveLeftovers implements [engine.Cleaner].
func (Engine) RemoveLeftovers(_ context.Context, url string) (removed []string, err error) {
	place, err := placeOf(url)
	if err != nil {
		return nil, err
	}
	removed, err = sweep(place)
	return removed, failure(place, err)
}

// placeOf returns the file of a database URL, with symbolic links resolved.
func placeOf(raw string) (string, error) {
	path, err := Path(raw)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, nil
}
