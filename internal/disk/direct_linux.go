package disk

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// OpenDirect opens an existing file for writing without the page cache. It returns nil if the file
// system does not support that.
func OpenDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	raiseMaxProcs()
	return f
}

// raiseMaxProcs raises GOMAXPROCS to the number of threads that usually write at a time. A thread
// that waits for the disk blocks a processor until the Go scheduler notices, and without the page
// cache that wait is long.
var raiseMaxProcs = sync.OnceFunc(func() {
	const writers = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < writers {
		runtime.GOMAXPROCS(writers)
	}
})

// refusesDirect reports whether a direct write failed because the file system requires other
// offsets, lengths or buffer alignment.
func refusesDirect(err error) bool { return errors.Is(err, unix.EINVAL) }
