package engine

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the program, because the parent process decides when
// the program ends. If the parent is killed, the program ends too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
