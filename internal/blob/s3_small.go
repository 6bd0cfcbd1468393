package blob

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Write implements [Store].
func (s *S3) Write(ctx context.Context, key string, content []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.object(key), bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{})
	return s3Error("write the object", err)
}

// Read implements [Store].
func (s *S3) Read(ctx context.Context, key string) ([]byte, error) {
	object, err := s.core.Client.GetObject(ctx, s.bucket, s.object(key), minio.GetObjectOptions{})
	if err != nil {
		return nil, s3Error("read the object", err)
	}
	defer object.Close() //nolint:errcheck // it was only read
	content, err := readSmall(object)
	if errors.Is(err, errNotSmall) {
		return nil, err
	}
	return content, s3Error("read the object", err)
}

// List implements [Store].
func (s *S3) List(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	for object := range s.core.Client.ListObjects(ctx, s.bucket,
		minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, s3Error("list the objects", object.Err)
		}
		keys = append(keys, strings.TrimPrefix(object.Key, s.prefix))
	}
	return keys, nil
}
