package blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"snap"
)

// redirectLifetime is how long a URL to which [S3.Serve] redirects is valid. It limits how long
// bytes can still be read after access has ended.
const redirectLifetime = time.Minute

// S3 is a [Store] in a bucket of an S3-compatible object store. Its URLs lead directly to the
// object store, so the bytes of uploads and downloads do not pass through the service.
//
// S3 cannot verify the SHA-256 of a multipart object. It verifies each part's CRC-64/NVME, which is
// part of the signed request; every puller verifies the whole file.
type S3 struct {
	core   *minio.Core
	creds  *credentials.Credentials
	bucket string
	prefix string // of all keys: empty, or with a slash at its end
	now    func() time.Time
}

// OpenS3 opens a bucket without sending a request:
//
//	s3://bucket/prefix?endpoint=https://host:port&region=us-east-1&lookup=path
//
// The default endpoint is Amazon's. The lookup is path or dns; path is the default if an endpoint
// is given. OpenS3 finds credentials in the same places as other S3 tools: AWS_ACCESS_KEY_ID and
// related variables, the shared credentials file, or the machine's role. The credentials can also
// precede the bucket, as in s3://KEY:SECRET@bucket.
func OpenS3(ctx context.Context, rawURL string, now func() time.Time) (*S3, error) {
	return OpenS3Through(ctx, rawURL, now, nil)
}

// OpenS3Through is like [OpenS3], but sends every request through the transport that the given
// function returns. A nil function changes nothing.
func OpenS3Through(_ context.Context, rawURL string, now func() time.Time,
	through func(http.RoundTripper) http.RoundTripper) (*S3, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.Host != u.Hostname() {
		return nil, snap.Usage("this is not the URL of an S3 bucket",
			"use one like s3://bucket/prefix?endpoint=https://host")
	}
	if err := s3utils.CheckValidBucketNameStrict(u.Hostname()); err != nil {
		return nil, snap.Usage(fmt.Sprintf("%q cannot be the name of a bucket: %v", u.Hostname(), err),
			"check blob.url, or the URL of the object store")
	}
	query := u.Query()
	options := &minio.Options{
		Region: cmp.Or(query.Get("region"), "us-east-1"), Creds: credentialsOf(u), Secure: true, MaxRetries: 4,
	}
	endpoint, err := endpointOf(query.Get("endpoint"), options)
	if err != nil {
		return nil, err
	}
	switch query.Get("lookup") {
	case "":
	case "path":
		options.BucketLookup = minio.BucketLookupPath
	case "dns":
		options.BucketLookup = minio.BucketLookupDNS
	default:
		return nil, snap.Usage("the lookup of a bucket must be path or dns", "")
	}
	for name := range query {
		if name != "endpoint" && name != "region" && name != "lookup" {
			return nil, snap.Usage(fmt.Sprintf("the URL of a bucket has no parameter %q", name),
				"it has endpoint, region and lookup")
		}
	}
	if options.Transport, err = transportOf(options.Secure, through); err != nil {
		return nil, err
	}
	core, err := minio.NewCore(endpoint, options)
	if err != nil {
		return nil, snap.Usage("the S3 endpoint cannot be used: "+err.Error(), "use one like https://host:port")
	}
	if now == nil {
		now = time.Now
	}
	prefix := strings.TrimPrefix(strings.Trim(u.Path, "/")+"/", "/")
	return &S3{core: core, creds: options.Creds, bucket: u.Host, prefix: prefix, now: now}, nil
}

// transportOf returns the transport for a bucket. Without a function it returns nil, which selects
// the library's own transport.
func transportOf(secure bool, through func(http.RoundTripper) http.RoundTripper) (http.RoundTripper, error) {
	if through == nil {
		return nil, nil //nolint:nilnil // nil selects the library's own
	}
	base, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("make a transport to the object store: %w", err)
	}
	return through(base), nil
}

func endpointOf(raw string, o *minio.Options) (string, error) {
	if raw == "" {
		return "s3.amazonaws.com", nil
	}
	e, err := url.Parse(raw)
	if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" || strings.Trim(e.Path, "/") != "" {
		return "", snap.Usage(fmt.Sprintf("%q is not the URL of an S3 endpoint", raw), "use one like https://host:port")
	}
	o.Secure = e.Scheme == "https"
	o.BucketLookup = minio.BucketLookupPath
	return e.Host, nil
}

func credentialsOf(u *url.URL) *credentials.Credentials {
	if secret, ok := u.User.Password(); ok {
		return credentials.NewStaticV4(u.User.Username(), secret, "")
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
}

// Endpoint returns the URL of the object store.
func (s *S3) Endpoint() *url.URL { return s.core.EndpointURL() }

func (s *S3) object(key string) string { return path.Join(s.prefix, key) }

// Begin implements [Store].
func (s *S3) Begin(ctx context.Context, key string, size, _ int64) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if size < 1 {
		return "", snap.Invalid("an object must have at least one byte", "")
	}
	id, err := s.core.NewMultipartUpload(ctx, s.bucket, s.object(key), minio.PutObjectOptions{
		UserMetadata: map[string]string{"X-Amz-Checksum-Algorithm": "CRC64NVME", "X-Amz-Checksum-Type": "FULL_OBJECT"},
	})
	return id, s3Error("begin the upload", err)
}

// SignPart implements [Store].
func (s *S3) SignPart(ctx context.Context, key, upload string, p Part, life time.Duration) (Signed, error) {
	const checksum = "X-Amz-Checksum-Crc64nvme"
	signed := http.Header{checksum: {p.CRC64}}
	if p.Size > 0 { // HTTP clients send this header by themselves
		signed.Set("Content-Length", strconv.FormatInt(p.Size, 10))
	}
	query := url.Values{"uploadId": {upload}, "partNumber": {strconv.Itoa(p.Number)}}
	u, err := s.core.PresignHeader(ctx, http.MethodPut, s.bucket, s.object(key), life, query, signed)
	if err != nil {
		return Signed{}, s3Error("sign an upload URL", err)
	}
	return Signed{Method: http.MethodPut, URL: u.String(), Headers: map[string]string{checksum: p.CRC64},
		Expires: s.expiry(life)}, nil
}

// expiry returns the time at which a URL that is signed now expires: after life, but not later than
// the credentials that sign it.
func (s *S3) expiry(life time.Duration) time.Time {
	until := s.now().Add(life)
	value, err := s.creds.GetWithContext(s.core.CredContext())
	if err == nil && !value.Expiration.IsZero() && value.Expiration.Before(until) {
		return value.Expiration
	}
	return until
}

// Parts implements [Store].
func (s *S3) Parts(ctx context.Context, key, upload string) ([]Part, error) {
	found, err := s.list(ctx, key, upload)
	parts := make([]Part, 0, len(found))
	for _, p := range found {
		parts = append(parts, Part{Number: p.PartNumber, Size: p.Size, CRC64: p.ChecksumCRC64NVME})
	}
	return parts, err
}

func (s *S3) list(ctx context.Context, key, upload string) ([]minio.ObjectPart, error) {
	var parts []minio.ObjectPart
	for marker := 0; ; {
		page, err := s.core.ListObjectParts(ctx, s.bucket, s.object(key), upload, marker, 1000)
		if err != nil {
			return nil, s3Error("list the parts", err)
		}
		parts = append(parts, page.ObjectParts...)
		if !page.IsTruncated || page.NextPartNumberMarker <= marker {
			return parts, nil
		}
		marker = page.NextPartNumberMarker
	}
}

// Complete implements [Store].
func (s *S3) Complete(ctx context.Context, key, upload string, size int64, _ string) error {
	parts, err := s.list(ctx, key, upload)
	if errors.Is(err, snap.ErrNotFound) {
		return requireComplete(ctx, s, key, size)
	}
	if err != nil {
		return err
	}
	var total int64
	done := make([]minio.CompletePart, 0, len(parts))
	for i, p := range parts {
		if p.PartNumber != i+1 {
			break
		}
		total += p.Size
		done = append(done, minio.CompletePart{PartNumber: p.PartNumber, ETag: p.ETag,
			ChecksumCRC64NVME: p.ChecksumCRC64NVME})
	}
	if total != size || len(done) != len(parts) {
		return &snap.Error{
			Code:   snap.CodeUploadIncomplete,
			Detail: fmt.Sprintf("%d of %d bytes have arrived without a gap", total, size),
			Hint:   "push again: it resumes where it stopped",
		}
	}
	_, err = s.core.CompleteMultipartUpload(ctx, s.bucket, s.object(key), upload, done, minio.PutObjectOptions{
		UserMetadata: map[string]string{"X-Amz-Checksum-Type": "FULL_OBJECT"},
	})
	if err = s3Error("complete the upload", err); err != nil && !errors.Is(err, snap.ErrNotFound) {
		return err
	}
	return requireComplete(ctx, s, key, size)
}

// Abort implements [Store].
func (s *S3) Abort(ctx context.Context, key, upload string) error {
	err := s3Error("abort the upload", s.core.AbortMultipartUpload(ctx, s.bucket, s.object(key), upload))
	if errors.Is(err, snap.ErrNotFound) {
		return nil
	}
	return err
}

// Serve implements [Store]. The ETag is the object store's own.
func (s *S3) Serve(w http.ResponseWriter, r *http.Request, key, _ string) {
	u, err := s.core.Presign(r.Context(), r.Method, s.bucket, s.object(key), redirectLifetime, nil)
	if err != nil {
		writeProblem(w, s3Error("sign a download URL", err))
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", u.String())
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// Stat implements [Store].
func (s *S3) Stat(ctx context.Context, key string) (int64, error) {
	info, err := s.core.StatObject(ctx, s.bucket, s.object(key), minio.StatObjectOptions{})
	return info.Size, s3Error("look up the object", err)
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, key string) error {
	err := s3Error("delete the object", s.core.RemoveObject(ctx, s.bucket, s.object(key), minio.RemoveObjectOptions{}))
	if errors.Is(err, snap.ErrNotFound) {
		return nil
	}
	return err
}

// ListUploads implements [Store].
func (s *S3) ListUploads(ctx context.Context) ([]Pending, error) {
	var pending []Pending
	for keyMarker, idMarker := "", ""; ; {
		page, err := s.core.ListMultipartUploads(ctx, s.bucket, s.prefix, keyMarker, idMarker, "", 1000)
		if err != nil {
			return nil, s3Error("list the uploads", err)
		}
		for _, u := range page.Uploads {
			pending = append(pending, Pending{Key: strings.TrimPrefix(u.Key, s.prefix), Upload: u.UploadID,
				Created: u.Initiated})
		}
		if !page.IsTruncated || page.NextKeyMarker == keyMarker && page.NextUploadIDMarker == idMarker {
			return pending, nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// Ping implements [Store].
func (s *S3) Ping(ctx context.Context) error {
	found, err := s.core.BucketExists(ctx, s.bucket)
	if err == nil && !found {
		return &snap.Error{Code: snap.CodeUnavailable, Detail: fmt.Sprintf("the bucket %q does not exist", s.bucket),
			Hint: "create it, or check blob.url"}
	}
	return s3Error("reach the bucket", err)
}
