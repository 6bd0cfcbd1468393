//go:build unix

package cli

import (
	"os"
	"syscall"
)

// relayedSignals are the signals that `snapcli run` passes to its command.
var relayedSignals = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1,
	syscall.SIGUSR2}
