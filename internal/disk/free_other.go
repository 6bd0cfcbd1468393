//go:build !linux && !darwin && !freebsd

package disk

// Free returns how many bytes the current user may still write in a directory. known is false if
// the system does not report it.
func Free(string) (bytes int64, known bool) { return 0, false }
