package delta

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"snap/internal/archive"
)

// Apply writes the result of a delta to w. The delta's header has already been read. An encrypted
// delta must be unsealed first; see [Header.Unseal]. The base must be the file that the header
// names; if the base is encrypted, call its Unlock first. Apply fails with corrupt_snapshot unless
// the bytes written have the size and the SHA-256 that the header states; the caller must then
// discard them. It never writes more than the announced size.
func Apply(ctx context.Context, w io.Writer, h Header, base *archive.Reader, r io.Reader) error {
	if h.Sealed != nil {
		return damaged("it is encrypted", nil)
	}
	content, err := base.Content(ctx)
	if err != nil {
		return damaged("the base cannot be used", err)
	}
	defer content.Close()
	blocks, err := archive.NewBlockCoder()
	if err != nil {
		return err
	}
	defer func() { _ = blocks.Close() }()
	content.LimitLoads(loadsAllowed(content.Blocks(), h.outline().Size()))
	p := &resultReader{ctx: ctx, r: r, base: content, blocks: blocks, left: h.outline().Size()}
	out := &limitedWriter{w: w, left: h.Result.Size, tooLong: errors.New("the result is larger than announced")}
	rebuild := archive.Rebuild
	if h.envelope != nil {
		rebuild = h.envelope.Rebuild
	}
	got, err := rebuild(out, h.outline(), p)
	if err == nil {
		err = p.end()
	}
	switch {
	case err != nil && (out.failed || ctx.Err() != nil):
		return err
	case err != nil:
		return damaged("its operations cannot be carried out", err)
	case got.Size != h.Result.Size || got.SHA256 != h.Result.SHA256:
		return damaged("the result has a different checksum", nil)
	}
	return nil
}

// loadsAllowed returns how many blocks of the base may be decompressed to apply a delta, and also
// to write one. Deltas of real databases need each block once or twice. A hostile delta could
// otherwise decompress a block for each of its bytes, and a hostile pair of files one for each of
// their lines.
func loadsAllowed(blocks, size int64) int64 { return 1024 + 8*blocks + size/(32<<10) }

// limitedWriter writes at most left bytes.
type limitedWriter struct {
	w       io.Writer
	left    int64
	tooLong error // returned for bytes beyond the limit
	failed  bool  // w failed
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, l.tooLong
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	l.failed = err != nil
	return n, err
}

// resultReader reads the content of the result, which it makes from the base and the operations.
type resultReader struct {
	ctx    context.Context
	r      io.Reader
	base   *archive.Content
	blocks *archive.BlockCoder
	left   int64 // bytes of content still to come

	ops      []op
	literals []byte
	at       int64 // in the base: the end of the last range
	body     []byte
}

// Read implements io.Reader.
func (p *resultReader) Read(b []byte) (int, error) {
	var chunk []byte
	for len(b) > 0 && len(chunk) == 0 {
		o, err := p.next()
		if err == nil {
			chunk, err = p.chunk(o, len(b))
		}
		if err != nil {
			return 0, err
		}
	}
	if p.left -= int64(len(chunk)); p.left < 0 {
		return 0, errors.New("it yields more content than announced")
	}
	return copy(b, chunk), nil
}

// next returns the next operation that is not finished, or io.EOF. When no literals are left in the
// operation, the size of its range is known.
func (p *resultReader) next() (*op, error) {
	for {
		for len(p.ops) > 0 && p.ops[0].ended() {
			p.ops = p.ops[1:]
		}
		if len(p.ops) > 0 {
			o := &p.ops[0]
			if o.literal > 0 || o.line == 0 {
				return o, nil
			}
			return o, p.measure(o)
		}
		if p.left == 0 {
			return nil, io.EOF
		}
		if err := p.group(); err != nil {
			return nil, err
		}
	}
}

// NextBlock implements [archive.Compressed]: a range that is a whole block of the base need not be
// compressed again.
func (p *resultReader) NextBlock(size int64) ([]byte, error) {
	o, err := p.next()
	if err != nil || o.literal > 0 || int64(o.copied) < size || size > p.left {
		return nil, err
	}
	block, err := p.base.StoredBlock(p.at+o.jump, size)
	if block == nil || err != nil {
		return nil, err
	}
	p.at, p.left = p.at+o.jump+size, p.left-size
	o.copied, o.jump = o.copied-int(size), 0
	return block, nil
}

// ended reports whether an operation was carried out.
func (o *op) ended() bool { return o.literal == 0 && o.copied == 0 && o.line == 0 }

// measure finds the number of bytes in a range that ends before a newline.
func (p *resultReader) measure(o *op) error {
	begin := p.at + o.jump
	for at := begin + int64(o.line); ; {
		content, err := p.base.From(at)
		if err != nil {
			return fmt.Errorf("read the base: %w", err)
		}
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			o.copied, o.line = int(at-begin)+i-o.line+1, 0
			return nil
		}
		at += int64(len(content))
	}
}

// chunk carries out a part of an operation, of at most limit bytes.
func (p *resultReader) chunk(o *op, limit int) (chunk []byte, err error) {
	if o.literal > 0 {
		n := min(o.literal, limit)
		chunk, p.literals = p.literals[:n], p.literals[n:]
		o.literal -= n
		return chunk, nil
	}
	if chunk, err = p.base.From(p.at + o.jump); err != nil {
		return nil, fmt.Errorf("read the base: %w", err)
	}
	chunk = chunk[:min(o.copied, limit, len(chunk))]
	p.at += o.jump + int64(len(chunk))
	o.copied, o.jump = o.copied-len(chunk), 0
	return chunk, nil
}

func (p *resultReader) group() (err error) {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.body, err = readGroup(p.r, p.body); err != nil {
		return errors.Join(errGroup, err)
	}
	c := cursor{b: p.body}
	count := c.number(maxOps)
	dict := make([]span, c.number(maxRanges))
	total, at := uint64(0), int64(0)
	for i := range dict {
		at += c.signed()
		dict[i] = span{at, int64(c.number(maxDict - total))}
		total += uint64(dict[i].size)
		at += dict[i].size
	}
	literals, ops := c.part(maxLiteral), c.part(maxGroup)
	if c.bad || len(c.b) > 0 || count == 0 {
		return errGroup
	}
	packed, err := p.unpack(ops, nil)
	if err != nil {
		return err
	}
	if p.ops, err = decodeOps(packed, int(count), literals.size); err != nil {
		return err
	}
	p.literals, err = p.unpack(literals, dict)
	return err
}

// unpack returns the content of a part.
func (p *resultReader) unpack(x part, dict []span) ([]byte, error) {
	switch {
	case x.how == asIs && len(x.stored) == x.size:
		return x.stored, nil
	case x.how == asBlock && x.size > 0 && x.size <= maxLiteral:
		return p.blocks.Unpack(x.stored, x.size)
	case x.how != asZstd:
		return nil, errGroup
	}
	words, err := readSpans(p.base, dict)
	if err != nil {
		return nil, err
	}
	o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(maxGroup), zstd.WithDecodeAllCapLimit(true)}
	if len(words) > 0 {
		o = append(o, zstd.WithDecoderDictRaw(dictID, words))
	}
	dec, err := zstd.NewReader(nil, o...)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	content, err := dec.DecodeAll(x.stored, make([]byte, 0, x.size))
	if err != nil || len(content) != x.size {
		return nil, errors.Join(errGroup, err)
	}
	return content, nil
}

// window is the size of zstd's window. A dictionary and the literals of a group fit into it.
const window = 2 << 20

// dictID is the ID of a group's dictionary in its zstd frame.
const dictID = 1

// readSpans returns the content of ranges of the base.
func readSpans(base *archive.Content, spans []span) ([]byte, error) {
	total := int64(0)
	for _, s := range spans {
		total += s.size
	}
	words, n := make([]byte, total), int64(0)
	for _, s := range spans {
		if _, err := base.ReadAt(words[n:n+s.size], s.at); err != nil {
			return nil, fmt.Errorf("read the base: %w", err)
		}
		n += s.size
	}
	return words, nil
}

// end returns an error unless the delta ends exactly where its result is complete.
func (p *resultReader) end() error {
	var one [1]byte
	if n, err := io.ReadFull(p.r, one[:]); n > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("it does not end where it should"), err)
	}
	if p.left != 0 || slices.ContainsFunc(p.ops, func(o op) bool { return !o.ended() }) {
		return errors.New("it does not end where it should")
	}
	return nil
}
