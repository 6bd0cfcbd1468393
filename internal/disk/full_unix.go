//go:build unix

package disk

import (
	"errors"
	"syscall"
)

// Full reports whether err means that the disk or the user's quota is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
