//go:build !unix

package login

import "os/exec"

// detach has nothing to do here: the opener hands the URL on and ends.
func detach(*exec.Cmd) {}
