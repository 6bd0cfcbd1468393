//go:build unix && !linux

package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the program, because the parent process decides when
// the program ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
