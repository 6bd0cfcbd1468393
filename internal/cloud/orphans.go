package cloud

import (
	"context"
	"strings"
	"time"

	"snap"
)

// manyUploads is more uploads than a service has under way at a time.
const manyUploads = 100_000

// abortUnknown removes uploads of the storage that the database does not know:
// the service was killed between the two. Only what is as old as an abandoned
// upload and has the key of a snapshot is touched.
func (s *Service) abortUnknown(ctx context.Context) error {
	if err := s.claim(ctx); err != nil {
		return err
	}
	pending, err := s.blobs.ListUploads(ctx)
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
		if err := s.blobs.Abort(ctx, p.Key, p.Upload); err != nil {
			return err
		}
	}
	return nil
}
