package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"snap"
	"snap/internal/disk"
)

// reason returns what the operating system said, without the path that
// messages already name.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// diskError makes a person's error of a failed file operation: a full disk is
// storage_full. It leaves an error that is one already, or an interruption,
// unchanged.
func diskError(err error, doing string) error {
	var already *snap.Error
	if err == nil || errors.As(err, &already) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if disk.Full(err) {
		return &snap.Error{
			Code:   snap.CodeStorageFull,
			Detail: fmt.Sprintf("there is no space left on the disk to %s", doing),
			Hint: "free some space, for example with `snapcli snapshots delete`, and try again; no existing data " +
				"is lost",
			Cause: err,
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}
