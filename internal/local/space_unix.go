//go:build linux || darwin || freebsd

package local

import "golang.org/x/sys/unix"

// freeSpace returns how many bytes the current user may still write in a directory.
func freeSpace(dir string) (bytes uint64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:unconvert // the types differ between systems
}
