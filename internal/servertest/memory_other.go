//go:build !linux

package servertest

// inMemory is "": only Linux has a disk in memory at a place that everybody knows.
func inMemory() string { return "" }
