package disk

import (
	"errors"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// OpenDirect opens an existing file for writing past the system's cache, or
// returns nil where the file system cannot do that.
func OpenDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	spread()
	return f
}

// spread lets Go run as many threads as usually write at once, where it would
// run fewer. A thread that waits for the disk keeps one of them from the others
// until Go notices, and there is no page cache that makes the wait short: on two
// processors a download took a fifth longer.
var spread = sync.OnceFunc(func() {
	const writers = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < writers {
		runtime.GOMAXPROCS(writers)
	}
})

// refusesDirect reports whether a direct write failed because the file system
// wants other offsets, lengths or memory.
func refusesDirect(err error) bool { return errors.Is(err, unix.EINVAL) }
