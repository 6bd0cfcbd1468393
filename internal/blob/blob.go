// Package blob is the object store of the service. It is either a folder, for which the service
// signs and handles the uploads itself, or an S3-compatible object store, to which clients upload
// directly. Both hold objects that are uploaded in parts over presigned URLs and become visible
// only when they are complete. One conformance suite tests both.
//
// This package does not authorize anything. Callers of [Store.SignPart] and [Store.Serve] must
// have checked access.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Store holds objects by key. The service chooses the keys, from letters, digits and the characters
// - _ . and /.
//
// Errors: a missing object or upload matches snap.ErrNotFound, a full disk has the code
// storage_full, and a store that does not answer has the code unavailable.
type Store interface {
	// Begin starts an upload of size bytes in parts of partSize and returns its ID. The last part
	// holds the remainder.
	Begin(ctx context.Context, key string, size, partSize int64) (upload string, err error)
	// SignPart returns a request that uploads one part and is valid for the given duration. The
	// request contains no secret and can upload only this part with this checksum and, unless
	// p.Size is 0, this size.
	SignPart(ctx context.Context, key, upload string, p Part, life time.Duration) (Signed, error)
	// Parts lists the parts that have arrived with the announced bytes, by number. It returns
	// within seconds. It includes parts that could not be verified in that time; Complete
	// verifies them.
	Parts(ctx context.Context, key, upload string) ([]Part, error)
	// Complete assembles the object from its parts. It fails with upload_incomplete if parts are
	// missing, and with checksum_mismatch if the bytes differ from the announcement. A folder
	// compares the SHA-256 of the whole object; S3 compares the total size, and the checksum of
	// each part. It is idempotent.
	Complete(ctx context.Context, key, upload string, size int64, sha256 string) error
	// Abort drops an upload and its parts. It is idempotent.
	Abort(ctx context.Context, key, upload string) error
	// Serve responds to a GET or HEAD with the object. A folder streams it and supports ranges and
	// If-Range with etag. S3 redirects with status 307 to a URL that is valid for about a minute.
	// When the request's context ends, a folder cuts off the response, so that a caller can stop it
	// when access has ended.
	Serve(w http.ResponseWriter, r *http.Request, key, etag string)
	// Stat returns an object's size.
	Stat(ctx context.Context, key string) (size int64, err error)
	// Delete removes an object. It succeeds when the object does not exist.
	Delete(ctx context.Context, key string) error
	// Write creates or replaces a small object, such as a record.
	Write(ctx context.Context, key string, content []byte) error
	// Read returns a small object. It fails for an object of more than 1 MiB.
	Read(ctx context.Context, key string) ([]byte, error)
	// Open returns the bytes of an object.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// Put creates or replaces an object of size bytes, which pass through this program. If sum is
	// not their SHA-256, it fails with checksum_mismatch and creates nothing. Calls with the same
	// key must not be concurrent.
	Put(ctx context.Context, key string, r io.Reader, size int64, sum string) error
	// List returns the keys that begin with prefix, in order.
	List(ctx context.Context, prefix string) ([]string, error)
	// ListUploads lists uploads that were begun and neither completed nor aborted.
	ListUploads(ctx context.Context) ([]Pending, error)
	// Ping returns an error if the store cannot be used at the moment.
	Ping(ctx context.Context) error
}

// Part is one part of an upload. Numbers count from 1. CRC64 is the base64 of the big-endian
// CRC-64/NVME of its bytes, as S3 writes it.
type Part struct {
	Number int
	Size   int64
	CRC64  string
}

// Signed is a presigned request. Headers must be sent unchanged.
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

// maxSmall is the maximum number of bytes that [Store.Read] returns.
const maxSmall = 1 << 20

// errNotSmall is the error for an object that is too large to be read into memory.
var errNotSmall = errors.New("the object has more than 1 MiB")

// Limits of multipart uploads. S3 accepts 10,000 parts of at least 5 MiB.
const (
	minPartSize = 16 << 20
	maxParts    = 9000
)

// PartSize returns the size of the parts in which an object of size bytes is uploaded: 16 MiB, or
// a larger whole number of MiB if there would otherwise be more than 9,000 parts.
func PartSize(size int64) int64 {
	const mib = 1 << 20
	need := (size + maxParts - 1) / maxParts
	return max(minPartSize, (need+mib-1)/mib*mib)
}

// requireComplete returns an error unless the store has the complete object.
func requireComplete(ctx context.Context, s Store, key string, size int64) error {
	have, err := s.Stat(ctx, key)
	if err == nil && have != size {
		return fmt.Errorf("the object has %d bytes, not %d", have, size)
	}
	return err
}
