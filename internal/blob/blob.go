// Package blob is the only object storage of the service: a folder, whose
// upload URLs it signs and serves itself, and S3-compatible storage, where
// bytes never pass through the service. Both hold immutable objects that
// arrive in parts over presigned URLs and appear whole or not at all; one
// conformance suite holds the two to the same contract.
//
// Nothing here knows who a caller is. Whoever calls [Store.SignPart] or
// [Store.Serve] has checked their right.
package blob

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Store keeps objects by key. Keys are made by the service, from letters,
// digits and the characters - _ . and /.
//
// A missing object or upload is an error that matches snap.ErrNotFound; a full
// disk is one of code storage_full; storage that does not answer is one of
// code unavailable.
type Store interface {
	// Begin starts an upload of size bytes in parts of partSize, the last one
	// being what remains, and returns its ID.
	Begin(ctx context.Context, key string, size, partSize int64) (upload string, err error)
	// SignPart returns a request that brings one part, until life is over. It
	// holds no secret and serves nothing but this part with this checksum.
	SignPart(ctx context.Context, key, upload string, p Part, life time.Duration) (Signed, error)
	// Parts lists the parts that arrived and whose bytes are what was
	// announced, by number. It answers within seconds; a part whose bytes could
	// not be looked at in that time is listed, and Complete finds it missing.
	Parts(ctx context.Context, key, upload string) ([]Part, error)
	// Complete makes the object of its parts. It fails with upload_incomplete
	// when some are missing and checksum_mismatch when the bytes are not what
	// was announced: a folder compares the SHA-256 of the whole, S3 the size
	// and the checksum of each part. Completing twice succeeds twice.
	Complete(ctx context.Context, key, upload string, size int64, sha256 string) error
	// Abort drops an upload and its parts. Aborting twice succeeds.
	Abort(ctx context.Context, key, upload string) error
	// Serve answers a GET or HEAD with the object: a folder streams it, with
	// ranges and If-Range by etag; S3 answers 307 to a URL that lives for about
	// a minute. When the request's context ends, a folder's answer is cut off,
	// so a caller that watches the right can end it in the middle.
	Serve(w http.ResponseWriter, r *http.Request, key, etag string)
	// Stat returns an object's size.
	Stat(ctx context.Context, key string) (size int64, err error)
	// Delete removes an object. Deleting what is not there succeeds.
	Delete(ctx context.Context, key string) error
	// Write makes or replaces a small object, such as a record, whole.
	Write(ctx context.Context, key string, content []byte) error
	// Read returns a small object. One of more than 1 MiB is an error.
	Read(ctx context.Context, key string) ([]byte, error)
	// Open returns the bytes of an object.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Put makes or replaces an object whole, of size bytes that pass through this
	// program. It fails with checksum_mismatch, and makes nothing, when they do
	// not have the SHA-256 sum. One key is put once at a time.
	Put(ctx context.Context, key string, r io.Reader, size int64, sum string) error
	// List returns the keys that begin with prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	// ListUploads lists uploads that were begun and neither completed nor aborted.
	ListUploads(ctx context.Context) ([]Pending, error)
	// Ping tells whether the storage can be used now.
	Ping(ctx context.Context) error
}

// Part is one part of an upload. Numbers count from 1. CRC64 is the base64 of
// the big-endian CRC-64/NVME of its bytes, as S3 writes it.
type Part struct {
	Number int
	Size   int64
	CRC64  string
}

// Signed is a presigned request. Headers must be sent as they are.
type Signed struct {
	Method  string
	URL     string
	Headers map[string]string
	Expires time.Time
}

// Pending is an upload that was begun and has not ended.
type Pending struct {
	Key     string
	Upload  string
	Created time.Time
}

// maxSmall is the most bytes that [Store.Read] returns.
const maxSmall = 1 << 20

// errNotSmall refuses to read a large object into memory.
var errNotSmall = errors.New("the object has more than 1 MiB")

// Limits of multipart uploads. S3 takes 10,000 parts of at least 5 MiB.
const (
	minPartSize = 16 << 20
	maxParts    = 9000
)

// PartSize returns the size of the parts in which an object of size bytes is
// uploaded: 16 MiB, and more in whole MiB where that would be over 9,000 parts.
func PartSize(size int64) int64 {
	const mib = 1 << 20
	need := (size + maxParts - 1) / maxParts
	return max(minPartSize, (need+mib-1)/mib*mib)
}
