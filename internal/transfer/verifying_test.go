package transfer_test

import (
	"context"
	"testing"

	"snap"
	"snap/api"
	"snap/internal/transfer"
)

// A verification that takes longer than a request is allowed to continues in the
// background. The push asks again, more often than it would after failures.
func TestUploadOutlastsALongVerification(t *testing.T) {
	t.Parallel()
	s := newService(t)
	data := random(snapSize, 74)
	file, req := writeFile(t, data)
	busy := &verifying{Client: s.client(), left: 30}
	up, err := transfer.Upload(t.Context(), busy, file, req, quick())
	if err != nil || up.Moved != req.Size || busy.left != 0 {
		t.Fatalf("%+v, %v; %d answers left", up, err, busy.left)
	}
	if ids := s.listed(); len(ids) != 1 || ids[0] != up.ID {
		t.Errorf("listed: %v", ids)
	}
}

// verifying is a service whose first responses say that it is still verifying.
type verifying struct {
	*api.Client
	left int
}

func (v *verifying) Complete(ctx context.Context, id string) (api.Snapshot, error) {
	if v.left > 0 {
		v.left--
		return api.Snapshot{}, &snap.Error{Code: snap.CodeVerifying}
	}
	return v.Client.Complete(ctx, id)
}
