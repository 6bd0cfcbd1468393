package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate sets the file's size and, where the file system supports it, allocates its blocks, so
// that a full disk is detected before the first byte is written.
func Preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}
