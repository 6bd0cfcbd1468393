package blob

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/minio/minio-go/v7"
)

// ErrNotLocked means that a bucket has no object lock, so objects that are written there can be
// removed.
var ErrNotLocked = errors.New("object lock is not enabled for the bucket; create a bucket with object lock enabled")

// WriteLocked creates an object with S3 Object Lock in compliance mode, so that nobody can remove
// or replace it before the given time. A second call with the same key adds a version and keeps the
// first.
func (s *S3) WriteLocked(ctx context.Context, key string, content []byte, until time.Time) error {
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.object(key), bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{ContentType: "text/plain; charset=utf-8", Mode: minio.Compliance,
			RetainUntilDate: until.UTC().Truncate(time.Second), SendContentMd5: true})
	return s3Error("write the locked object", err)
}

// CheckLock fails with [ErrNotLocked] unless the bucket has object lock.
func (s *S3) CheckLock(ctx context.Context) error {
	state, _, _, _, err := s.core.Client.GetObjectLockConfig(ctx, s.bucket)
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.Code == "ObjectLockConfigurationNotFoundError" {
		return ErrNotLocked
	}
	if err == nil && state != "Enabled" {
		return ErrNotLocked
	}
	return s3Error("read the bucket's object lock", err)
}
