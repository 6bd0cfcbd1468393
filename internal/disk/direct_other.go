//go:build !linux

package disk

import "os"

// OpenDirect returns nil, because this system does not support direct writes.
func OpenDirect(string) *os.File { return nil }

func refusesDirect(error) bool { return true }
