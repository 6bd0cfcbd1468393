//go:build !linux

package servertest

// inMemory is "": only Linux has a disk in memory at a known place.
func inMemory() string { return "" }
