//go:build !linux

package servertest

import "testing"

// SmallDisk skips the test, because small disks are mounted only on Linux.
func SmallDisk(t testing.TB, _ int64) string {
	t.Helper()
	t.Skip("needs the right to mount a small disk: only on Linux")
	return ""
}

// FillDisk skips the test, because disks are filled only on Linux.
func FillDisk(t testing.TB, _ string, _ uint64) string {
	t.Helper()
	t.Skip("needs a small disk: only on Linux")
	return ""
}
