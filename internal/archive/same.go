package archive

import (
	"bytes"
	"context"
	"io"
)

// Most blocks of a file can be equal to those of an earlier file, because each block is compressed
// separately. Such blocks can be recognized and copied without decompressing them.

// Same is a run of blocks that two files store as the same bytes.
type Same struct {
	At, From int64 // where the run begins in the first and in the second content
	Size     int64 // number of bytes of content
}

// Same returns the runs of blocks that c and other have in common, in the order of c.
func (c *Content) Same(ctx context.Context, other *Content) (runs []Same, err error) {
	type head struct {
		sum          uint32
		size, stored int64
	}
	headOf := func(c *Content, i int) head {
		b, next := c.blocks[i], c.after(i)
		return head{b.sum, next.at - b.at, next.offset - b.offset}
	}
	known := map[head]int{}
	for i := range other.blocks {
		known[headOf(other, i)] = i
	}
	next := 0 // the block after the last run, in other.blocks
	for i, b := range c.blocks {
		h := headOf(c, i)
		from, found := known[h]
		if found && next < len(other.blocks) && headOf(other, next) == h {
			from = next
		}
		if found {
			if found, err = c.equal(ctx, i, other, from); err != nil {
				return nil, err
			}
		}
		if !found {
			continue
		}
		next = from + 1
		at := other.blocks[from].at
		if n := len(runs) - 1; n >= 0 && runs[n].At+runs[n].Size == b.at && runs[n].From+runs[n].Size == at {
			runs[n].Size += h.size
		} else {
			runs = append(runs, Same{b.at, at, h.size})
		}
	}
	return runs, nil
}

// equal reports whether two blocks are stored as the same bytes.
func (c *Content) equal(ctx context.Context, i int, other *Content, from int) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	a, err := c.storedBlock(i)
	if err != nil {
		return false, err
	}
	b, err := other.storedBlock(from)
	return bytes.Equal(a, b), err
}

// storedBlock returns the bytes of a block in the file. They are valid until the next call.
func (c *Content) storedBlock(i int) ([]byte, error) {
	c.raw = sized(c.raw, int(c.after(i).offset-c.blocks[i].offset))
	return c.raw, c.r.readAt(c.raw, c.blocks[i].offset)
}

// StoredBlock returns the bytes of the block that has exactly this range of the content, or nil if
// there is none or if another version of the encoder wrote it. They are valid until the next call.
func (c *Content) StoredBlock(at, size int64) ([]byte, error) {
	if at < 0 || at >= c.end || c.r.manifest.Encoder != Encoder {
		return nil, nil
	}
	i := c.blockAt(at)
	if c.blocks[i].at != at || c.after(i).at != at+size {
		return nil, nil
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c.storedBlock(i)
}

// Compressed is content that may partly consist of blocks of other files.
type Compressed interface {
	io.Reader
	// NextBlock returns the next size bytes of the content as a block that this version of the
	// encoder (see [Encoder]) wrote, and advances past them. It returns nil if there is no such
	// block. The bytes are valid until the next call.
	NextBlock(size int64) ([]byte, error)
}

// fill writes size bytes of content to an empty section.
func (s *sectionWriter) fill(content io.Reader, size int64) error {
	compressed, _ := content.(Compressed)
	for size > 0 {
		n := min(size, blockSize)
		size -= n
		var block []byte
		var err error
		if compressed != nil {
			block, err = compressed.NextBlock(n)
		}
		switch {
		case err != nil:
			return err
		case block != nil:
			err = s.blocks.copyBlock(block, n)
		default:
			_, err = io.CopyN(s, content, n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Range returns a reader for a range of the content, which decompresses several blocks at a time.
// The manifest follows the blocks and counts as content here. The range must begin and end at the
// boundary of a block or inside the manifest.
func (c *Content) Range(from, until int64) (io.ReadCloser, error) {
	begin := max(from, c.end)
	text := io.NewSectionReader(readerAt(c.r.readAt), int64(c.r.foot.offset)+begin-c.end, max(0, until-begin))
	size := min(until, c.end) - from
	if size <= 0 {
		return io.NopCloser(text), nil
	}
	at, last := c.blocks[c.blockAt(from)].offset, c.blockAt(from+size-1)
	blocks, err := newBlockReader(buffered(io.NewSectionReader(c.r.src, at, c.after(last).offset-at)), unpackJobs())
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&sectionReader{blocks, size}, text), blocks}, nil
}
