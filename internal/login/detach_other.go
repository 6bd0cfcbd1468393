//go:build !unix

package login

import "os/exec"

// detach does nothing on this system: the opener passes on the URL and exits.
func detach(*exec.Cmd) {}
