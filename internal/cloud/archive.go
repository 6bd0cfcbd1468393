package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"snap/internal/store"
)

// ArchiveLogs moves audit lines that are older than audit.archive_after to the object store. A log
// that was altered is reported and left unchanged. Several replicas may run it at once, and it may
// be interrupted at any moment.
func (s *Service) ArchiveLogs(ctx context.Context) error {
	after, err := s.config.Audit.archiveAfter()
	if err != nil || after == 0 {
		return err
	}
	before := s.now().Add(-after)
	failed := map[int64]error{}
	for {
		due, err := s.store.Archivable(ctx, before)
		if err != nil {
			return err
		}
		done := 0
		for _, c := range due {
			if failed[c.Org] != nil {
				continue
			}
			if err := s.archive(ctx, c); err != nil {
				failed[c.Org] = fmt.Errorf("archive the audit log of organization %d: %w", c.Org, err)
				continue
			}
			done++
		}
		if done == 0 {
			break
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}

func (s *Service) archive(ctx context.Context, c store.Chunk) error {
	c, content, err := s.store.Pack(ctx, c)
	if err != nil || content == nil {
		return err
	}
	if err := s.transfers.blobs.Write(ctx, c.Key, content); err != nil {
		return err
	}
	return s.store.Archive(ctx, c)
}
