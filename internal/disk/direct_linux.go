package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// OpenDirect opens an existing file for writing past the system's cache, or
// returns nil where the file system cannot do that.
func OpenDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// refusesDirect reports whether a direct write failed because the file system
// wants other offsets, lengths or memory.
func refusesDirect(err error) bool { return errors.Is(err, unix.EINVAL) }
