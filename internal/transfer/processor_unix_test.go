//go:build unix

package transfer_test

import (
	"syscall"
	"time"
)

// processor returns the processor time that the test has used.
func processor() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
