package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"

	"snap"
)

// This file reads and writes whole objects as streams, for example to copy them from one store to
// another.

// Verify reads an object and fails with code checksum_mismatch if its size or SHA-256 is not the
// expected one.
func Verify(ctx context.Context, s Store, key string, size int64, sum string) error {
	r, err := s.Open(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	h := newHashingReader(ctx, r)
	if _, err := io.Copy(io.Discard, h); err != nil {
		return err
	}
	return h.check(key, size, sum)
}

// hashingReader hashes the bytes that are read through it. It stops when its context ends.
type hashingReader struct {
	ctx  context.Context //nolint:containedctx // it exists only during one read of an object
	r    io.Reader
	sum  hash.Hash
	size int64
}

func newHashingReader(ctx context.Context, r io.Reader) *hashingReader {
	return &hashingReader{ctx: ctx, r: r, sum: sha256.New()}
}

// Read implements io.Reader and hashes the bytes.
func (h *hashingReader) Read(p []byte) (int, error) {
	if err := h.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	h.size += int64(n)
	return n, err
}

// check returns an error unless the bytes that were read have this size and hash.
func (h *hashingReader) check(key string, size int64, sum string) error {
	if got := hex.EncodeToString(h.sum.Sum(nil)); h.size != size || got != sum {
		return &snap.Error{
			Code: snap.CodeChecksumMismatch,
			Detail: fmt.Sprintf("the object %s is damaged: %d bytes with the SHA-256 %.12s, and not %d with %.12s",
				key, h.size, got, size, sum),
			Hint: "the object store lost bytes; delete the snapshot, or restore the object from a backup",
		}
	}
	return nil
}

// Open implements [Store].
func (f *Folder) Open(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := os.Open(f.object(key))
	if err != nil {
		return nil, diskError("open the object", err)
	}
	return file, nil
}

// Put implements [Store].
func (f *Folder) Put(ctx context.Context, key string, r io.Reader, size int64, sum string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	arriving := &arrivingPart{Reader: r, left: size, all: &f.arriving}
	f.arriving.Add(size)
	defer arriving.end()
	if err := f.requireRoom(0); err != nil {
		return err
	}
	path := f.object(key)
	if err := makeDir(filepath.Dir(path)); err != nil {
		return diskError("write the object", err)
	}
	// The name depends on the key, so that the next attempt replaces the file that a killed process
	// left.
	making, err := os.OpenFile(filepath.Join(f.uploadsDir(), ".put-"+url.PathEscape(key)),
		os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return diskError("write the object", err)
	}
	defer os.Remove(making.Name()) // fails harmlessly once the file has become the object
	h := newHashingReader(ctx, arriving)
	_, err = io.Copy(making, h)
	if err = errors.Join(err, making.Sync(), making.Close()); err != nil {
		return diskError("write the object", err)
	}
	if err := h.check(key, size, sum); err != nil {
		return err
	}
	return diskError("write the object", rename(making.Name(), path))
}

// Open implements [Store].
func (s *S3) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := s.core.Client.GetObject(ctx, s.bucket, s.object(key), minio.GetObjectOptions{})
	if err == nil {
		_, err = object.Stat() // this sends the request
	}
	if err != nil {
		return nil, s3Error("open the object", err)
	}
	return object, nil
}

// Put implements [Store]. The object store never gets the last bytes of a wrong object, so an
// existing object is not replaced.
func (s *S3) Put(ctx context.Context, key string, r io.Reader, size int64, sum string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	v := &verifyingReader{hashingReader: newHashingReader(ctx, r), key: key, want: size, wantSum: sum}
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.object(key), v, size,
		minio.PutObjectOptions{PartSize: uint64(PartSize(size))})
	if v.failed != nil {
		return v.failed // instead of the store's error
	}
	return s3Error("write the object", err)
}

// verifyingReader reads an object. It returns the last bytes only if the whole object has the
// expected size and SHA-256.
type verifyingReader struct {
	*hashingReader
	key     string
	want    int64
	wantSum string
	failed  error
}

// Read implements io.Reader.
func (v *verifyingReader) Read(b []byte) (int, error) {
	if v.failed != nil {
		return 0, v.failed
	}
	n, err := v.hashingReader.Read(b)
	if err == nil && v.size == v.want {
		_, err = io.ReadFull(v.hashingReader, make([]byte, 1))
	}
	if errors.Is(err, io.EOF) || v.size > v.want {
		v.failed = v.check(v.key, v.want, v.wantSum)
	}
	if v.failed != nil {
		return 0, v.failed
	}
	return n, err
}
