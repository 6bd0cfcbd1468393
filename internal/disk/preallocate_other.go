//go:build !linux

package disk

import "os"

// Preallocate gives the file its size.
func Preallocate(f *os.File, size int64) error { return f.Truncate(size) }
