package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Preallocate gives the file its size and, where the file system can, its room
// on the disk, so that a full disk shows before the first byte is written.
func Preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	return err
}
