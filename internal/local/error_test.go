package local

import (
	"errors"

	"snap"
)

func asError(err error, e **snap.Error) bool { return errors.As(err, e) }
