//go:build unix

package login

import (
	"os/exec"
	"syscall"
)

// detach keeps Ctrl-C in the terminal from ending the browser.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
