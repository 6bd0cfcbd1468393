package cloud

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"snap/internal/disk"
)

// A replica whose objects are in S3 keeps its deltas in a temporary folder. The folder has a lock,
// which the replica holds while it runs. Another replica that starts on the same machine can
// therefore tell the folders of killed replicas from those in use.
const (
	tempDeltas = "snapcloud-deltas-"
	deltasLock = "lock"
	deltasKept = "kept" // the folder of the deltas, next to the lock
)

// errRemoved means that another replica removed a new folder before it was locked.
var errRemoved = errors.New("the folder was removed")

// tempFolder creates and locks a folder of deltas inside the folder named by parent. It removes the
// folders of replicas that no longer run.
func tempFolder(parent string) (dir string, remove func() error, err error) {
	sweepDeltas(parent)
	for range 10 {
		if dir, remove, err = lockedFolder(parent); !errors.Is(err, errRemoved) {
			break
		}
	}
	return dir, remove, err
}

func lockedFolder(parent string) (dir string, remove func() error, err error) {
	root, err := os.MkdirTemp(parent, tempDeltas)
	if err != nil {
		return "", nil, err
	}
	lock := flock.New(filepath.Join(root, deltasLock))
	remove = func() error { return errors.Join(os.RemoveAll(root), lock.Close()) }
	locked, err := lock.TryLock()
	if err == nil && locked {
		_, err = os.Stat(lock.Path())
	}
	if !locked || errors.Is(err, fs.ErrNotExist) {
		err = errRemoved
	}
	dir = filepath.Join(root, deltasKept)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// sweepDeltas removes the folders of deltas whose lock nobody holds. A folder without a lock may be
// a new one, and stays.
func sweepDeltas(parent string) {
	for _, path := range disk.Glob(parent, tempDeltas+"*/"+deltasLock) {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		lock := flock.New(path, flock.SetFlag(os.O_RDWR))
		if locked, err := lock.TryLock(); err == nil && locked {
			os.RemoveAll(filepath.Dir(path))
		}
		lock.Close()
	}
}

// openFolder opens the folder of deltas: next to the objects if they are in a folder, otherwise a
// temporary one. It removes the deltas that earlier processes left.
func openFolder(c Config) (dir string, remove func() error, err error) {
	if c.Blob.URL != "" {
		dir, remove, err = tempFolder(os.TempDir())
	} else {
		dir = filepath.Join(c.DataDir, "deltas")
		remove = func() error { return os.RemoveAll(dir) }
		err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	}
	if err != nil {
		return "", nil, fmt.Errorf("open the folder of deltas: %w", err)
	}
	return dir, remove, nil
}
