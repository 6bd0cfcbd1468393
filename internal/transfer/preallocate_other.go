//go:build !linux

package transfer

import "os"

// preallocate gives the file its size.
func preallocate(f *os.File, size int64) error { return f.Truncate(size) }
