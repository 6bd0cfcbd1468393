package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/klauspost/compress/zstd"

	"snap"
)

// Outline is the order of a file's content: the sections, followed by the text of the manifest.
type Outline struct {
	Sections []Extent
	Manifest int64 // bytes
}

// Extent is the name of a section and the size of its content.
type Extent struct {
	Name string
	Size int64
}

// Size returns the number of bytes of the content.
func (o Outline) Size() int64 {
	n := o.Manifest
	for _, s := range o.Sections {
		n += s.Size
	}
	return n
}

// A file's content may have fewBlocks blocks, and one more for each minBlock bytes, but never more
// than maxBlocks. [Writer] reaches maxBlocks at 2 TiB. A hostile file needs only a few bytes for
// each of its blocks.
const (
	fewBlocks = 1024
	minBlock  = 64 << 10
	maxBlocks = 2 << 20
)

// ErrLoads is returned when reading exceeds the limit of [Content.LimitLoads].
var ErrLoads = errors.New("reading the content would load too many blocks")

// maxCached is the maximum number of bytes of decompressed blocks that a [Content] keeps.
const maxCached = 16 << 20

// Content gives access to all content of a file in one address space, in the order of its
// [Outline]. It decompresses the blocks that are needed and keeps the most recent ones. It is not
// safe for concurrent use.
type Content struct {
	Outline
	r      *Reader
	blocks []blockPosition
	end    int64 // of the sections' content
	unpack unpacker
	cached []cachedBlock // the most recently used block is last
	kept   int           // bytes of content in cached
	loads  int64
	limit  int64  // blocks that may be loaded; 0 means any number
	textAt int64  // where the loaded piece of the manifest begins
	text   []byte // that piece
	raw    []byte // the bytes of a block in the file
}

// blockPosition is the position of a block in the content and in the file, and the checksum of its
// content.
type blockPosition struct {
	at, offset int64
	sum        uint32
}

type cachedBlock struct {
	block   int
	content []byte
}

// Content returns the content of the file, or of the file inside an unlocked one. It fails with
// [snap.CodeInvalid] for a locked file, for one of an older format and for one with too many
// blocks, and with [snap.CodeCorrupt] for a file whose blocks do not match its manifest.
func (r *Reader) Content(ctx context.Context) (*Content, error) {
	if r.sealed != nil && r.sealed.inside != nil {
		return r.sealed.inside.Content(ctx)
	}
	if r.sealed != nil || r.manifest.Format != Format {
		return nil, snap.Invalid("the content of a locked file, or of one of an older format, cannot be addressed",
			"use the whole file")
	}
	dec, err := newBlockDecoder(1)
	if err != nil {
		return nil, err
	}
	c := &Content{r: r, unpack: unpacker{zstd: dec}, Outline: Outline{Manifest: int64(r.foot.length)}}
	for _, s := range r.manifest.Sections {
		c.Sections = append(c.Sections, Extent{s.Name, s.Size})
		if err := c.index(ctx, s); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// index finds the blocks of a section.
func (c *Content) index(ctx context.Context, s Section) error {
	at, until := s.Offset, c.end+s.Size
	var head [blockHead]byte
	for at < s.Offset+s.Stored {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.r.readAt(head[:], at); err != nil {
			return err
		}
		size, body := int64(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint32(head[4:]))
		if size == 0 || size > maxBlock || body > 2*maxBlock {
			return corrupt("a section is damaged", errBlock)
		}
		if n := int64(len(c.blocks)); n > fewBlocks+c.end/minBlock || n >= maxBlocks {
			return snap.Invalid("the content is in too many blocks to be addressed", "use the whole file")
		}
		c.blocks = append(c.blocks, blockPosition{c.end, at, binary.BigEndian.Uint32(head[8:])})
		c.end, at = c.end+size, at+blockHead+body
	}
	if at != s.Offset+s.Stored || c.end != until {
		return corrupt("a section does not have its stated size", nil)
	}
	return nil
}

// Blocks returns the number of blocks.
func (c *Content) Blocks() int64 { return int64(len(c.blocks)) }

// LimitLoads makes reading fail with [ErrLoads] after this many blocks and pieces of the manifest
// have been loaded. [Content.Range] and [Content.Same] do not count.
func (c *Content) LimitLoads(limit int64) { c.limit = limit }

// load counts a block or a piece of the manifest that is about to be loaded.
func (c *Content) load() error {
	c.loads++
	if c.limit > 0 && c.loads > c.limit {
		return ErrLoads
	}
	return nil
}

// Close frees the decoder and the cached blocks. It does not close the [Reader].
func (c *Content) Close() {
	c.unpack.zstd.Close()
	c.cached = nil
}

// ReadAt implements io.ReaderAt.
func (c *Content) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) && err == nil {
		var b []byte
		if b, err = c.From(at + int64(n)); err == nil {
			n += copy(p[n:], b)
		}
	}
	return n, err
}

// From returns content from an offset to the end of its block, at least one byte, or io.EOF. The
// bytes are valid until the next call.
func (c *Content) From(at int64) ([]byte, error) {
	switch {
	case at < 0 || at >= c.Size():
		return nil, io.EOF
	case at >= c.end:
		return c.manifestFrom(at)
	}
	i := c.blockAt(at)
	content, err := c.block(i)
	if err != nil {
		return nil, err
	}
	return content[at-c.blocks[i].at:], nil
}

// blockAt returns the block with the byte at an offset.
func (c *Content) blockAt(at int64) int {
	return sort.Search(len(c.blocks), func(i int) bool { return c.blocks[i].at > at }) - 1
}

// after returns the position that follows block i: that of the next block, or of the manifest.
func (c *Content) after(i int) blockPosition {
	if i+1 < len(c.blocks) {
		return c.blocks[i+1]
	}
	return blockPosition{at: c.end, offset: int64(c.r.foot.offset)}
}

// manifestFrom is like From, for the text of the manifest, which is loaded in pieces of a block's
// size.
func (c *Content) manifestFrom(at int64) ([]byte, error) {
	if at < c.textAt || at >= c.textAt+int64(len(c.text)) {
		if err := c.load(); err != nil {
			return nil, err
		}
		c.textAt = at - (at-c.end)%blockSize
		c.text = make([]byte, min(c.Size()-c.textAt, blockSize))
		if err := c.r.readAt(c.text, int64(c.r.foot.offset)+c.textAt-c.end); err != nil {
			c.text = nil
			return nil, err
		}
	}
	return c.text[at-c.textAt:], nil
}

func (c *Content) block(i int) ([]byte, error) {
	for n := len(c.cached) - 1; n >= 0; n-- {
		if b := c.cached[n]; b.block == i {
			copy(c.cached[n:], c.cached[n+1:])
			c.cached[len(c.cached)-1] = b
			return b.content, nil
		}
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	b := c.blocks[i]
	stored := io.NewSectionReader(readerAt(c.r.readAt), b.offset, c.r.size-b.offset)
	if err := c.unpack.read(stored); err != nil {
		return nil, fmt.Errorf("read a block: %w", err)
	}
	if err := c.unpack.unpack(); err != nil || int64(len(c.unpack.content)) != c.after(i).at-b.at {
		return nil, corrupt("a section is damaged", errBlock)
	}
	var content []byte
	for len(c.cached) > 0 && c.kept+len(c.unpack.content) > maxCached {
		content = c.cached[0].content // its memory is reused
		c.kept -= len(content)
		c.cached = slices.Delete(c.cached, 0, 1)
	}
	content = append(content[:0], c.unpack.content...)
	c.cached, c.kept = append(c.cached, cachedBlock{i, content}), c.kept+len(content)
	return content, nil
}

// Rebuild writes a file again from its content. The result equals the original byte for byte only
// if this version of the encoder (see [Encoder]) wrote the original, so the caller must compare the
// checksums. content yields the bytes that the outline describes, and may end with an error. Blocks
// that come from another file (see [Compressed]) are not compressed again.
func Rebuild(dst io.Writer, o Outline, content io.Reader) (Summary, error) {
	w, err := NewWriter(dst, 0)
	if err != nil {
		return Summary{}, err
	}
	for _, s := range o.Sections {
		section, err := w.section(s.Name)
		if err != nil {
			return Summary{}, err
		}
		err = section.fill(content, s.Size)
		if closeErr := section.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return Summary{}, err
		}
	}
	return w.finish(io.LimitReader(content, o.Manifest))
}

// Check returns an error for an outline that no file can have.
func (o Outline) Check() error {
	seen := map[string]bool{}
	for _, s := range o.Sections {
		if !sectionName.MatchString(s.Name) || seen[s.Name] || s.Size < 0 || s.Size > maxStructure {
			return corrupt("it has an invalid section", nil)
		}
		seen[s.Name] = true
	}
	if len(o.Sections) > maxSections || o.Manifest < 0 || o.Manifest > maxManifest {
		return corrupt("its outline is out of bounds", nil)
	}
	return nil
}

// BlockCoder compresses and decompresses content of at most 1 MiB in the same way as the blocks of
// a section. It is not safe for concurrent use.
type BlockCoder struct {
	packer   *packer
	unpacker unpacker
}

// NewBlockCoder returns a coder, which the caller must close.
func NewBlockCoder() (*BlockCoder, error) {
	e, err := newEncoders(1)
	if err != nil {
		return nil, err
	}
	dec, err := newBlockDecoder(1)
	return &BlockCoder{newPacker(e), unpacker{zstd: dec}}, err
}

// Close frees the encoder and the decoder.
func (b *BlockCoder) Close() error {
	b.unpacker.zstd.Close()
	return b.packer.close()
}

// Pack returns content of 1 byte to 1 MiB as a block. The block is valid until the next call.
func (b *BlockCoder) Pack(text []byte) []byte {
	b.packer.content = append(b.packer.content[:0], text...)
	b.packer.pack()
	return b.packer.block
}

// Unpack returns the content of a block. It fails unless the content has exactly size bytes. The
// content is valid until the next call.
func (b *BlockCoder) Unpack(block []byte, size int) ([]byte, error) {
	if size < 1 || size > blockSize || len(block) < blockHead || int(binary.BigEndian.Uint32(block)) != size ||
		int(binary.BigEndian.Uint32(block[4:])) != len(block)-blockHead {
		return nil, errBlock
	}
	b.unpacker.size, b.unpacker.sum = size, binary.BigEndian.Uint32(block[8:])
	b.unpacker.body = block[blockHead:]
	err := b.unpacker.unpack()
	return b.unpacker.content, err
}

// newBlockDecoder returns the decoder of the zstd frames in blocks.
func newBlockDecoder(jobs int) (*zstd.Decoder, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(jobs), zstd.WithDecoderMaxWindow(maxBlock),
		zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return dec, nil
}
