//go:build !linux

package disk

import "os"

// OpenDirect opens an existing file for writing past the system's cache, or
// returns nil where that cannot be.
func OpenDirect(string) *os.File { return nil }

func refusesDirect(error) bool { return true }
