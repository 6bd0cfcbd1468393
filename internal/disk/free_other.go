//go:build !linux && !darwin && !freebsd

package disk

// Free reports that the free space is not known on this system.
func Free(string) (bytes int64, known bool) { return 0, false }
