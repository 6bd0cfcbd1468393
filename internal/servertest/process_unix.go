//go:build unix

package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that a server runs as.
type account = syscall.Credential

// runAs makes a command run as an account; nil is the test's own account.
func runAs(cmd *exec.Cmd, as *account) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
}

// runApart keeps the signals of a terminal, such as Ctrl-C, from a command. Call it after [runAs].
func runApart(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// serverUser returns the account that a database server runs as. If the test runs as root, this is
// the server's own account (postgres or mysql), because servers refuse to run as root. Otherwise it
// is nil, the test's own account.
func serverUser(name string) (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("the server does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &account{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
