package blob

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/minio/crc64nvme"
)

// digest is the SHA-256 of an upload's first parts. It is updated in the background as
// parts arrive, so that little is left to hash after the last one.
type digest struct {
	working sync.Mutex // held while the digest advances
	running atomic.Bool
	stale   atomic.Bool // a part that was already hashed is being replaced
	sum     hash.Hash
	next    int // the first part that is not yet hashed
}

func (d *digest) rewind() { d.stale.Store(true) }

// hashInBackground hashes the parts that can already be hashed.
func (u *upload) hashInBackground() {
	if !u.digest.running.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer u.digest.running.Store(false)
		_ = u.advance(context.Background()) // Complete gets the same error and reports it
	}()
}

// sum returns the SHA-256 of the whole object. All parts must have arrived.
func (u *upload) sum(ctx context.Context) (string, error) {
	if err := u.advance(ctx); err != nil {
		return "", err
	}
	u.digest.working.Lock()
	defer u.digest.working.Unlock()
	return hex.EncodeToString(u.digest.sum.Sum(nil)), nil
}

// advance hashes consecutive parts until one is missing.
func (u *upload) advance(ctx context.Context) error {
	d := &u.digest
	d.working.Lock()
	defer d.working.Unlock()
	data, err := os.Open(u.data())
	if err != nil {
		return diskError("open the upload", err)
	}
	defer data.Close()
	for {
		if d.sum == nil || d.stale.Swap(false) {
			d.sum, d.next = sha256.New(), 1
		}
		offset, size := u.head.span(d.next)
		if size == 0 || !u.has(d.next) {
			return nil
		}
		if err := hashRange(ctx, d.sum, data, offset, size); err != nil {
			d.rewind()
			return fmt.Errorf("hash the upload: %w", err)
		}
		d.next++
	}
}

func (u *upload) has(n int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.confirmed[n]
	return ok
}

// crcOf returns the CRC-64/NVME of a range of the file, as S3 writes it: base64 of its big-endian
// bytes.
func crcOf(ctx context.Context, file io.ReaderAt, offset, size int64) (string, error) {
	sum := crc64nvme.New()
	err := hashRange(ctx, sum, file, offset, size)
	return base64.StdEncoding.EncodeToString(sum.Sum(nil)), err
}

// hashRange reads a range of the file into sum. It stops when the context ends.
func hashRange(ctx context.Context, sum hash.Hash, file io.ReaderAt, offset, size int64) error {
	buffer := make([]byte, min(size, 256<<10))
	for size > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := file.ReadAt(buffer[:min(size, int64(len(buffer)))], offset)
		if n == 0 && err != nil {
			return err
		}
		sum.Write(buffer[:n])
		offset, size = offset+int64(n), size-int64(n)
	}
	return nil
}
