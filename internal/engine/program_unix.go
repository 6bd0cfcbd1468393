//go:build unix && !linux

package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup shields the program from the terminal's Ctrl-C: the parent process
// decides when it ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
