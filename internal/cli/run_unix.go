//go:build unix

package cli

import (
	"os"
	"syscall"
)

// passed are the signals that `snapcli run` passes to its command.
var passed = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1,
	syscall.SIGUSR2}
