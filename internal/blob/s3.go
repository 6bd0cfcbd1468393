package blob

import (
	"context"
	"net/http"
	"time"
)

// S3 is a [Store] in S3-compatible storage.
type S3 struct{}

// OpenS3 opens a bucket: s3://bucket/prefix?endpoint=http://host:port&region=...
func OpenS3(ctx context.Context, rawURL string, now func() time.Time) (*S3, error) {
	return nil, errUnwritten
}

func (s *S3) Begin(ctx context.Context, key string, size, partSize int64) (string, error) {
	return "", errUnwritten
}
func (s *S3) SignPart(ctx context.Context, key, upload string, p Part, life time.Duration) (Signed, error) {
	return Signed{}, errUnwritten
}
func (s *S3) Parts(ctx context.Context, key, upload string) ([]Part, error) {
	return nil, errUnwritten
}
func (s *S3) Complete(ctx context.Context, key, upload string, size int64, sha256 string) error {
	return errUnwritten
}
func (s *S3) Abort(ctx context.Context, key, upload string) error            { return errUnwritten }
func (s *S3) Serve(w http.ResponseWriter, r *http.Request, key, etag string) {}
func (s *S3) Stat(ctx context.Context, key string) (int64, error)            { return 0, errUnwritten }
func (s *S3) Delete(ctx context.Context, key string) error                   { return errUnwritten }
func (s *S3) ListUploads(ctx context.Context) ([]Pending, error)             { return nil, errUnwritten }
func (s *S3) Ping(ctx context.Context) error                                 { return errUnwritten }
