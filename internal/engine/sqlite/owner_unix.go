//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group of another file, as far as this user may change them.
func keepOwner(file *os.File, of os.FileInfo) {
	if of, ok := of.Sys().(*syscall.Stat_t); ok && file.Chown(int(of.Uid), int(of.Gid)) != nil {
		_ = file.Chown(-1, int(of.Gid))
	}
}
