package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"snap"
	"snap/internal/disk"
)

// reason returns the operating system's error without the path, which the messages already contain.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// diskError converts the error of a failed file operation to an error for the user. A full disk
// becomes storage_full. It returns a [snap.Error] or an interruption unchanged.
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
