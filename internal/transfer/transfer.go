// Package transfer moves the bytes of snapshots over presigned URLs: in
// parallel, resumable after any interruption, and verified. It needs nothing
// but HTTP and the two or three calls of [Service].
package transfer

import (
	"context"
	"errors"
	"net/http"
	"time"

	"snap/api"
)

// Service is what plans a transfer and signs its URLs: an *api.Client, or a
// storage profile.
type Service interface {
	Push(ctx context.Context, r api.PushRequest) (api.UploadPlan, error)
	Parts(ctx context.Context, id string, r api.PartsRequest) (api.PartsResponse, error)
	Complete(ctx context.Context, id string) (api.Snapshot, error)
	Pull(ctx context.Context, id string) (api.PullResponse, error)
}

// Progress is told how many bytes of total are in place. It is called from one
// goroutine at a time, a few times a second.
type Progress func(done, total int64)

// Options of a transfer. The zero value is usable.
type Options struct {
	Jobs     int          // connections at once; 0 is 4
	Progress Progress     // nil is silent
	HTTP     *http.Client // nil for one made for large bodies
	// Wait pauses before a retry; nil waits for real. It returns early with
	// the context's error.
	Wait func(ctx context.Context, d time.Duration) error
}

// Upload pushes file as req describes it and returns the snapshot's ID and how
// many bytes were sent: none when the service has this very snapshot already.
// It goes on where an earlier attempt stopped, also one of another process.
func Upload(ctx context.Context, c Service, file string, req api.PushRequest, o Options) (id string, moved int64, err error) {
	return "", 0, errors.New("not written yet")
}

// Download pulls a snapshot into file, which appears only when every byte is
// verified and synced. It goes on where an earlier attempt stopped.
func Download(ctx context.Context, c Service, snapshotID, file string, o Options) (api.PullResponse, error) {
	return api.PullResponse{}, errors.New("not written yet")
}
