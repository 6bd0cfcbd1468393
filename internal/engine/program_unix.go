//go:build unix && !linux

package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the program: the one that started
// it decides when it ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
