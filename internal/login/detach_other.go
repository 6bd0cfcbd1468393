//go:build !unix

package login

import "os/exec"

// detach does nothing on this system: the opener passes the URL to the browser and exits.
func detach(*exec.Cmd) {}
