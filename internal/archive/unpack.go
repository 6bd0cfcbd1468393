package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// errBlock means that no writer could have produced the block.
var errBlock = errors.New("a block is damaged")

// unpacker decompresses one block at a time. It checks the sizes that a block states before it
// allocates memory.
type unpacker struct {
	zstd *zstd.Decoder // shared
	size int           // of the content
	sum  uint32
	body []byte

	columns columns
	huffman huff0.Scratch
	parts   []byte // concatenated content of the parts
	content []byte
	ready   chan error
}

// read reads a block. At the end of the section it returns io.EOF.
func (u *unpacker) read(r io.Reader) error {
	var head [blockHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size, stored := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
	if size == 0 || size > maxBlock || stored > 2*maxBlock {
		return errBlock
	}
	u.size, u.sum = int(size), binary.BigEndian.Uint32(head[8:])
	u.body = sized(u.body, int(stored))
	_, err := io.ReadFull(r, u.body)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// unpack decompresses the body that was read.
func (u *unpacker) unpack() error {
	in := cursor{b: u.body}
	u.runs(&in)
	u.parts, u.columns.fields = sized(u.parts, u.size)[:0], u.columns.fields[:0]
	for range width(u.columns.runs) {
		u.columns.fields = append(u.columns.fields, u.part(&in))
	}
	u.columns.rest = u.part(&in)
	if in.bad || len(in.b) > 0 || len(u.parts) != u.size {
		return errBlock
	}
	content, ok := u.columns.join(sized(u.content, u.size)[:0])
	u.content = content
	if !ok || len(content) != u.size || crc32.Checksum(content, castagnoli) != u.sum {
		return errBlock
	}
	return nil
}

func (u *unpacker) runs(in *cursor) {
	u.columns.runs = u.columns.runs[:0]
	for n := in.number(maxRuns); n > 0 && !in.bad; n-- {
		r := run{in.number(u.size), in.number(maxColumns)}
		in.bad = in.bad || r.lines == 0 || r.fields == 0
		u.columns.runs = append(u.columns.runs, r)
	}
}

// part reads a part and returns its content. All parts together may not exceed the size that the
// block states.
func (u *unpacker) part(in *cursor) []byte {
	how := in.bytes(1)
	from, size := len(u.parts), in.number(u.size-len(u.parts))
	stored := in.bytes(in.number(len(in.b)))
	if in.bad {
		return nil
	}
	room := u.parts[from : from : from+size]
	var err error
	switch how[0] {
	case asIs:
		room = append(room, stored...)
	case asZstd:
		room, err = u.zstd.DecodeAll(stored, room)
	case asHuffman:
		room, err = u.decodeHuffman(stored, room)
	default:
		err = errBlock
	}
	if err != nil || len(room) != size {
		in.bad = true
		return nil
	}
	u.parts = u.parts[:from+size]
	return u.parts[from:]
}

// decodeHuffman fills room with the content of a part that [packer.encodeHuffman] stored.
func (u *unpacker) decodeHuffman(stored, room []byte) ([]byte, error) {
	in := cursor{b: stored}
	for len(room) < cap(room) && !in.bad {
		piece := in.bytes(in.number(len(in.b)))
		_, piece, err := huff0.ReadTable(piece, &u.huffman)
		if err != nil {
			return nil, fmt.Errorf("read a Huffman table: %w", err)
		}
		end := min(len(room)+pieceSize, cap(room))
		out, err := u.huffman.Decoder().Decompress4X(room[len(room):len(room):end], piece)
		if err != nil {
			return nil, fmt.Errorf("decode with a Huffman table: %w", err)
		}
		room = room[:len(room)+len(out)]
	}
	if in.bad || len(in.b) > 0 {
		return nil, errBlock
	}
	return room, nil
}

// cursor reads a block's body. After an error it stays bad.
type cursor struct {
	b   []byte
	bad bool
}

// number reads a number from 0 to limit.
func (c *cursor) number(limit int) int {
	v, n := binary.Uvarint(c.b)
	if c.bad || n <= 0 || v > uint64(limit) {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return int(v)
}

func (c *cursor) bytes(n int) []byte {
	if c.bad || n > len(c.b) {
		c.bad = true
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

// sized returns the buffer resliced to length n, or a new one if its capacity is too small.
func sized(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
