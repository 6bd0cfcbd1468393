package auditlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/mod/sumdb/tlog"
)

// A chunk is ChunkLines consecutive lines of a log. The number of its first line is a multiple of
// ChunkLines plus one, so its lines are a whole subtree and one hash of the tree proves them. The
// service archives old lines in the object store, where a chunk is one object: JSON Lines,
// compressed with zstd.
const (
	ChunkLines = 1 << chunkLevel
	chunkLevel = 10
)

// ErrChunk means that an object of the archive does not contain the lines that the tree was built
// from.
var ErrChunk = errors.New("the object does not contain the lines of the log")

// ChunkRoot returns the hash that proves a chunk. first is the number of the chunk's first line.
func (t *Tree) ChunkRoot(first int64) (tlog.Hash, error) {
	hashes, err := t.ReadHashes([]int64{tlog.StoredHashIndex(chunkLevel, (first-1)/ChunkLines)})
	if err != nil {
		return tlog.Hash{}, err
	}
	return hashes[0], nil
}

// CheckChunk fails with [ErrChunk] unless the lines are a chunk whose subtree has this hash.
func CheckChunk(lines []string, root tlog.Hash) error {
	var sum Sum
	for _, line := range lines {
		sum.Add(line)
	}
	if len(lines) != ChunkLines || sum.Root() != root {
		return ErrChunk
	}
	return nil
}

// PackChunk returns the object of a chunk and the number of bytes of its lines.
func PackChunk(lines []string) (object []byte, unpacked int64, err error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, 0, err
	}
	text := strings.Join(lines, "\n") + "\n"
	return packer.EncodeAll([]byte(text), nil), int64(len(text)), packer.Close()
}

// UnpackChunk returns the lines of an object. The caller must check them with [CheckChunk].
// UnpackChunk fails with [ErrChunk] if the lines do not have exactly the given number of bytes, and
// unpacks no more than that.
func UnpackChunk(object []byte, unpacked int64) ([]string, error) {
	unpacker, err := zstd.NewReader(bytes.NewReader(object), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(16<<20))
	if err != nil {
		return nil, err
	}
	defer unpacker.Close()
	text, err := io.ReadAll(io.LimitReader(unpacker, unpacked+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrChunk, err)
	}
	whole, ends := strings.CutSuffix(string(text), "\n")
	if int64(len(text)) != unpacked || !ends {
		return nil, ErrChunk
	}
	return strings.Split(whole, "\n"), nil
}

// AddChunk adds the next ChunkLines lines by the hash of their subtree. The number of lines added
// before must be a multiple of ChunkLines.
func (s *Sum) AddChunk(root tlog.Hash) { s.add(root, ChunkLines) }
