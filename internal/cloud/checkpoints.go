package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snap"
	"snap/internal/auditlog"
	"snap/internal/blob"
)

// checkpointsEvery is how often new checkpoints are written to the bucket of audit.checkpoints.
const checkpointsEvery = 10 * time.Minute

// defaultKeepCheckpoints is how long object lock keeps a checkpoint if audit.keep_checkpoints is
// not set.
const defaultKeepCheckpoints = 400 * 24 * time.Hour

// checkpointBucket is a bucket in which nobody, not even the operator, can delete a checkpoint while
// object lock keeps it.
type checkpointBucket struct {
	bucket *blob.S3
	keep   time.Duration
	last   map[int64]int64 // size of the newest checkpoint in the bucket, by organization
}

// openCheckpoints opens the bucket of audit.checkpoints. It returns nil if none is configured.
func (a Audit) openCheckpoints(ctx context.Context, now func() time.Time) (*checkpointBucket, error) {
	if a.Checkpoints == "" {
		return nil, nil //nolint:nilnil // a service may have no bucket
	}
	bucket, err := blob.OpenS3(ctx, a.Checkpoints, now)
	if err != nil {
		return nil, fmt.Errorf("audit.checkpoints: %w", err)
	}
	keep, err := a.keepCheckpoints()
	return &checkpointBucket{bucket: bucket, keep: keep, last: map[int64]int64{}}, err
}

func (a Audit) keepCheckpoints() (time.Duration, error) {
	return parseSetting("audit.keep_checkpoints", a.KeepCheckpoints, defaultKeepCheckpoints)
}

// KeepCheckpoints writes the newest checkpoint of each organization to the bucket of
// audit.checkpoints, under checkpoints/SLUG/SIZE, unless it is already there.
func (s *Service) KeepCheckpoints(ctx context.Context) error {
	k := s.background.checkpoints
	if k == nil {
		return nil
	}
	orgs, err := s.store.Orgs(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, org := range orgs {
		if err := k.write(ctx, s, org.OrgRef); err != nil {
			failed = append(failed, fmt.Errorf("keep the checkpoint of %s: %w", org.Slug, err))
		}
	}
	return errors.Join(failed...)
}

func (k *checkpointBucket) write(ctx context.Context, s *Service, org snap.OrgRef) error {
	signed, err := s.store.AuditCheckpoint(ctx, org.ID)
	if err != nil || signed == "" {
		return err
	}
	c, err := auditlog.Open(signed, org.Slug, s.auditKey.Verifier(org.Slug))
	if err != nil || c.Size == k.last[org.ID] {
		return err
	}
	key := fmt.Sprintf("checkpoints/%s/%020d", org.Slug, c.Size)
	stored, err := k.bucket.Read(ctx, key)
	if err != nil && !errors.Is(err, snap.ErrNotFound) {
		return err
	}
	if string(stored) != signed { // a different checkpoint of this size stays as an earlier version
		if err := k.bucket.WriteLocked(ctx, key, []byte(signed), s.now().Add(k.keep)); err != nil {
			return err
		}
	}
	k.last[org.ID] = c.Size
	return nil
}

// tryCheckpoints fails unless the bucket of audit.checkpoints has object lock.
func tryCheckpoints(ctx context.Context, a Audit) error {
	k, err := a.openCheckpoints(ctx, time.Now)
	if err != nil {
		return err
	}
	return k.bucket.CheckLock(ctx)
}
