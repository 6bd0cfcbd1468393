//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

// Free returns how many bytes the current user may still write in a directory. known is false if
// the system does not report it.
func Free(dir string) (bytes int64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize)), true //nolint:unconvert // the types differ between systems
}
