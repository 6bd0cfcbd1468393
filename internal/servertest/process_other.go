//go:build !unix

package servertest

import "os/exec"

// account is the user that a server runs as: always the test's own.
type account struct{ Uid, Gid uint32 }

func runAs(*exec.Cmd, *account) {}

func runApart(*exec.Cmd) {}

func serverUser(string) (*account, error) { return nil, nil }
