package cloud

import (
	"context"
	"strings"
	"time"

	"snap"
)

// manyUploads is more uploads than a service ever has in progress.
const manyUploads = 100_000

// abortUnknown removes from the object store the uploads that the database does not know. Such an
// upload remains if the service is killed between beginning the upload and recording it.
// abortUnknown removes only uploads that have the key of a snapshot and are old enough to count as
// abandoned.
func (s *Service) abortUnknown(ctx context.Context) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	pending, err := s.transfers.blobs.ListUploads(ctx)
	if err != nil || len(pending) == 0 {
		return err
	}
	rows, err := s.store.StaleUploads(ctx, s.now().Add(time.Hour), manyUploads) // all of them
	if err != nil || len(rows) == manyUploads {
		return err
	}
	known := map[string]bool{}
	for _, u := range rows {
		known[u.BlobUpload] = true
	}
	before := s.now().Add(-abandonedAfter)
	for _, p := range pending {
		if known[p.Upload] || !strings.HasPrefix(p.Key, snap.IDPrefix) || !p.Created.Before(before) {
			continue
		}
		if err := s.transfers.blobs.Abort(ctx, p.Key, p.Upload); err != nil {
			return err
		}
	}
	return nil
}
