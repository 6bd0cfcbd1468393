package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// The ways to store a part of a block.
const (
	asIs      = 0
	asZstd    = 1
	asHuffman = 2
)

const (
	blockSize  = 1 << 20   // bytes of content per written block
	maxBlock   = 8 << 20   // maximum block size accepted when reading
	maxRuns    = 1 << 19   // maximum number of runs in a block
	blockHead  = 12        // bytes before a block's body
	pieceSize  = 128 << 10 // bytes that share a Huffman table
	sampleSize = 8 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoders are shared by all packers. fast is zstd's fastest level, for columns. thorough is the
// next level: for columns it is hardly better, but for text without columns it compresses much
// better.
type encoders struct{ fast, thorough *zstd.Encoder }

func newEncoders(jobs int) (e encoders, err error) {
	if e.fast, err = newEncoder(jobs, zstd.SpeedFastest); err == nil {
		e.thorough, err = newEncoder(jobs, zstd.SpeedDefault)
	}
	return e, err
}

func newEncoder(jobs int, level zstd.EncoderLevel) (*zstd.Encoder, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(jobs), zstd.WithEncoderLevel(level),
		zstd.WithEncoderCRC(false), zstd.WithWindowSize(blockSize))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return e, nil
}

func (e encoders) close() error {
	if err := errors.Join(e.fast.Close(), e.thorough.Close()); err != nil {
		return fmt.Errorf("end zstd: %w", err)
	}
	return nil
}

// packer compresses one block at a time.
type packer struct {
	encoders
	content []byte
	block   []byte // valid until the next pack
	ready   chan struct{}

	columns columns
	huffman huff0.Scratch
	packed  []byte // a compressed part, until its length is known
}

func newPacker(e encoders) *packer {
	return &packer{encoders: e, content: make([]byte, 0, blockSize), ready: make(chan struct{}, 1),
		huffman: huff0.Scratch{Reuse: huff0.ReusePolicyNone}}
}

// pack compresses the block.
func (p *packer) pack() {
	p.columns.split(p.content)
	b := sized(p.block, blockHead)
	b = binary.AppendUvarint(b, uint64(len(p.columns.runs)))
	for _, r := range p.columns.runs {
		b = binary.AppendUvarint(b, uint64(r.lines))
		b = binary.AppendUvarint(b, uint64(r.fields))
	}
	for i := range width(p.columns.runs) {
		b = p.part(b, p.columns.fields[i], p.fast)
	}
	b = p.part(b, p.columns.rest, p.thorough)
	binary.BigEndian.PutUint32(b, uint32(len(p.content)))
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-blockHead))
	binary.BigEndian.PutUint32(b[8:], crc32.Checksum(p.content, castagnoli))
	p.block = b
}

// part appends a part, stored in a way that is small and fast for its content.
func (p *packer) part(b, content []byte, enc *zstd.Encoder) []byte {
	how := byte(asIs)
	p.packed = p.packed[:0]
	if len(content) > 0 {
		how = p.compress(content, enc)
	}
	b = binary.AppendUvarint(append(b, how), uint64(len(content)))
	return append(binary.AppendUvarint(b, uint64(len(p.packed))), p.packed...)
}

// compress stores the compressed content in p.packed. It chooses the method from a sample of the
// beginning. Data with few repetitions, such as measurements and random keys, is coded by byte
// frequency, which is both smaller and faster than zstd's fastest level. Nearly constant data uses
// that level.
func (p *packer) compress(content []byte, enc *zstd.Encoder) (how byte) {
	sample := content[:min(max(len(content)/16, sampleSize), pieceSize, len(content))]
	p.packed = p.fast.EncodeAll(sample, p.packed[:0])
	quick := len(p.packed)
	if quick*8 > len(sample) { // coding by frequency needs at least one bit per byte
		table, data, _, err := huff0.EstimateSizes(sample, &p.huffman)
		if err == nil && table+data < quick && p.encodeHuffman(content) {
			return asHuffman
		}
	}
	if quick*10 <= len(sample) {
		enc = p.fast
	}
	p.packed = enc.EncodeAll(content, p.packed[:0])
	if len(p.packed) < len(content) {
		return asZstd
	}
	p.packed = append(p.packed[:0], content...)
	return asIs
}

// encodeHuffman stores the content in p.packed, in pieces that are coded by byte frequency. It
// returns false if a piece cannot be coded.
func (p *packer) encodeHuffman(content []byte) bool {
	p.packed = p.packed[:0]
	for piece := range slices.Chunk(content, pieceSize) {
		coded, _, err := huff0.Compress4X(piece, &p.huffman)
		if err != nil {
			return false
		}
		p.packed = append(binary.AppendUvarint(p.packed, uint64(len(coded))), coded...)
	}
	return true
}
