//go:build !linux

package servertest

// inMemory returns "": only Linux has a folder in memory at a known path.
func inMemory() string { return "" }
