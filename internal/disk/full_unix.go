//go:build unix

package disk

import (
	"errors"
	"syscall"
)

// Full reports whether err says that the disk, or the user's share of it, has
// no room.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
