//go:build !linux

package disk

import "os"

// Preallocate sets the file's size.
func Preallocate(f *os.File, size int64) error { return f.Truncate(size) }
