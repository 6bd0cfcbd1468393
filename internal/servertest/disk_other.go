//go:build !linux

package servertest

import "testing"

// SmallDisk skips the test: small disks are made on Linux only.
func SmallDisk(t testing.TB, _ int64) string {
	t.Helper()
	t.Skip("needs the right to mount a small disk: only on Linux")
	return ""
}

// FillDisk would fill a disk except for left bytes. It is never called, because [SmallDisk] skips
// the test.
func FillDisk(t testing.TB, _ string, _ uint64) string {
	t.Helper()
	t.Skip("only Linux can fill a disk made for a test")
	return ""
}
