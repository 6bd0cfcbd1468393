//go:build !linux && !darwin && !freebsd

package local

func freeSpace(string) (bytes uint64, known bool) { return 0, false }
