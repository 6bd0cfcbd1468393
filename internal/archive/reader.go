package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"snap"
)

// Reader reads one snapshot file. It is safe for concurrent use, except for [Reader.Unlock].
type Reader struct {
	src      io.ReaderAt
	size     int64
	foot     footer
	manifest Manifest
	bounds   bounds
	sealed   *sealed // set for an encrypted file
	closer   io.Closer
}

// Open opens the file at path. See [NewReader].
func Open(path string) (*Reader, error) { return open(path, foreignBounds()) }

// OpenOwn opens a file that this user built. Its manifest may be much larger than [Open] allows.
func OpenOwn(path string) (*Reader, error) { return open(path, ownBounds()) }

func open(path string, b bounds) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the snapshot file: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = corrupt("it is not a regular file", nil)
	}
	if err == nil {
		var r *Reader
		if r, err = newReader(f, info.Size(), b); err == nil {
			r.closer = f
			return r, nil
		}
	}
	f.Close()
	return nil, err
}

// NewReader reads and checks the header, footer and manifest. It does not read the sections: call
// [Reader.Verify] before trusting them. It fails with code corrupt_snapshot for a damaged file, and
// with invalid for a newer format. For an encrypted file it reads only the public part; see
// [Reader.Unlock]. It rejects as corrupt any manifest that would need more than about 32 MiB of
// memory.
func NewReader(src io.ReaderAt, size int64) (*Reader, error) {
	return newReader(src, size, foreignBounds())
}

func newReader(src io.ReaderAt, size int64, b bounds) (*Reader, error) {
	r := &Reader{src: src, size: size, bounds: b}
	if size < headerSize+footerSize {
		head := make([]byte, min(size, int64(len(headMagic))))
		if _, err := src.ReadAt(head, 0); err == nil && size > 0 && string(head) == headMagic[:len(head)] {
			return nil, corrupt("it is incomplete: its end is missing", nil)
		}
		return nil, corrupt("it is not a snapshot file", nil)
	}
	head := make([]byte, headerSize)
	if err := r.readAt(head, 0); err != nil {
		return nil, err
	}
	format, err := checkHeader(head)
	if err != nil {
		return nil, err
	}
	tail := make([]byte, footerSize)
	if err := r.readAt(tail, size-footerSize); err != nil {
		return nil, err
	}
	foot, err := readFooter(tail, size)
	if err != nil {
		return nil, err
	}
	r.foot = foot
	return r, r.readManifest(format)
}

func (r *Reader) readManifest(format uint16) (err error) {
	if format == FormatEncrypted {
		return r.readSealed()
	}
	text := io.NewSectionReader(readerAt(r.readAt), int64(r.foot.offset), int64(r.foot.length))
	if r.manifest, err = decodeManifest(text, r.foot.sum, r.bounds); err != nil {
		return err
	}
	if !r.bounds.names(r.manifest.Tables) {
		return corrupt("its manifest is out of bounds: a name is too long", nil)
	}
	return r.manifest.check(format, int64(r.foot.offset))
}

// readerAt reads exactly len(p) bytes at an offset.
type readerAt func(p []byte, at int64) error

// ReadAt implements io.ReaderAt.
func (f readerAt) ReadAt(p []byte, at int64) (int, error) {
	if err := f(p, at); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r *Reader) readAt(p []byte, at int64) error {
	n, err := r.src.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	var known *snap.Error
	switch {
	case err == io.EOF:
		return corrupt("it became shorter while it was read", nil)
	case errors.As(err, &known):
		return err
	}
	return fmt.Errorf("read the snapshot file: %w", err)
}

// Manifest returns the file's manifest. For a locked file it contains only the format, the engine
// and the type.
func (r *Reader) Manifest() Manifest {
	if r.sealed != nil && r.sealed.inside != nil {
		return r.sealed.inside.manifest
	}
	return r.manifest
}

// Close closes the file that [Open] opened.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Has reports whether the file has a section, and its decompressed size in bytes.
func (r *Reader) Has(name string) (size int64, ok bool) {
	for _, s := range r.Manifest().Sections {
		if s.Name == name {
			return s.Size, true
		}
	}
	return 0, false
}

// Section returns a reader of a section's content. It yields exactly the number of bytes that the
// manifest states, or an error. It never yields more, whatever the blocks or frames contain.
func (r *Reader) Section(name string) (io.ReadCloser, error) {
	if r.sealed != nil {
		if r.sealed.inside == nil {
			return nil, noIdentity(r.sealed.recipients, nil)
		}
		return r.sealed.inside.Section(name)
	}
	for _, s := range r.manifest.Sections {
		if s.Name != name {
			continue
		}
		content, err := r.content(s)
		if err != nil {
			return nil, err
		}
		return &sectionReader{content: content, left: s.Size}, nil
	}
	return nil, corrupt("it has no section "+name, nil)
}

// unpackJobs is how many blocks are decompressed at a time.
func unpackJobs() int { return min(runtime.GOMAXPROCS(0), 4) }

// content returns a reader of the section's blocks or frames.
func (r *Reader) content(s Section) (io.ReadCloser, error) {
	stored := buffered(io.NewSectionReader(r.src, s.Offset, s.Stored))
	if r.manifest.Format == Format {
		return newBlockReader(stored, unpackJobs())
	}
	dec, err := zstd.NewReader(stored, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxStructure))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return dec.IOReadCloser(), nil
}

type sectionReader struct {
	content io.ReadCloser
	left    int64
}

func (s *sectionReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.left == 0 {
		var one [1]byte
		n, err := s.content.Read(one[:])
		if n > 0 {
			return 0, corrupt("a section is longer than its stated size", nil)
		}
		return 0, failedSection(err)
	}
	n, err := s.content.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		return n, corrupt("a section is shorter than its stated size", nil)
	}
	return n, failedSection(err)
}

// failedSection distinguishes a damaged block from a failing disk.
func failedSection(err error) error {
	var disk *os.PathError
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &disk) {
		return err
	}
	return corrupt("a section is damaged", err)
}

func (s *sectionReader) Close() error { return s.content.Close() }

// Verify reads the whole file and checks the SHA-256 of every section, including those inside an
// unlocked file. It returns the size and the SHA-256 of the file. It stops when ctx is done.
func (r *Reader) Verify(ctx context.Context, p Progress) (Summary, error) {
	if r.sealed == nil {
		return r.verify(ctx, r.manifest.Sections, p)
	}
	total, e := r.size, r.sealed.public.Encrypted
	if r.sealed.inside != nil {
		total += r.sealed.inside.size
	}
	part := func(from int64) Progress {
		if p == nil {
			return nil
		}
		return func(done, _ int64) { p(from+done, total) }
	}
	sum, err := r.verify(ctx, []Section{{Name: "encrypted", Offset: e.Offset, Stored: e.Stored, SHA256: e.SHA256}},
		part(0))
	if err == nil && r.sealed.inside != nil {
		_, err = r.sealed.inside.Verify(ctx, part(r.size))
	}
	return sum, err
}

// verify reads the whole file and checks the sections' checksums.
func (r *Reader) verify(ctx context.Context, sections []Section, p Progress) (Summary, error) {
	whole, at := sha256.New(), int64(0)
	buf := make([]byte, 1<<20)
	read := func(until int64, also io.Writer) error {
		for at < until {
			if err := ctx.Err(); err != nil {
				return err
			}
			b := buf[:min(int64(len(buf)), until-at)]
			if err := r.readAt(b, at); err != nil {
				return err
			}
			var other sync.WaitGroup
			other.Go(func() { also.Write(b) }) //nolint:errcheck // a hash, or a writer that discards
			whole.Write(b)
			other.Wait()
			at += int64(len(b))
			if p != nil {
				p(at, r.size)
			}
		}
		return nil
	}
	for _, s := range sections {
		if err := read(s.Offset, io.Discard); err != nil {
			return Summary{}, err
		}
		sum := sha256.New()
		if err := read(s.Offset+s.Stored, sum); err != nil {
			return Summary{}, err
		}
		if hex.EncodeToString(sum.Sum(nil)) != s.SHA256 {
			return Summary{}, corrupt("its section "+s.Name+" is damaged", nil)
		}
	}
	if err := read(r.size, io.Discard); err != nil {
		return Summary{}, err
	}
	return Summary{Size: r.size, SHA256: hex.EncodeToString(whole.Sum(nil))}, nil
}
