package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"snap"
	"snap/internal/archive"
)

const (
	nearBytes      = 8 << 20   // a jump of more bytes can be a far jump; see isFar
	minFar         = 1 << 10   // minimum bytes of a range after a far jump, while there are few such jumps
	minFrequentFar = 32 << 10  // the same, once there was more than one far jump per this many bytes
	readAhead      = 64 << 10  // bytes that are read ahead, at least minFrequentFar
	maxPending     = 256 << 10 // literals that may still become part of a range
	dictTail       = 128 << 10 // bytes before an insertion that serve as its dictionary
	dictExtra      = 256       // bytes of a replaced range for the dictionary, in addition to twice its literals
	unknown        = -1        // the position where the base continues has not been found yet
	nextBytes      = 1 << 10   // bytes of the base in which a line is searched for without the index
	nextLines      = 4         // number of lines to search there
	minLine        = 8         // minimum bytes of such a line
	maxReach       = 12 << 20  // bytes of the result after which a group ends, so that the base it uses fits the cache
	minLiterals    = 16 << 10  // minimum literals of such a group
)

// ErrLarge means that a delta would be larger than the limit given to [Write].
var ErrLarge = errors.New("the delta is too large to be of use")

// CheckWritable returns an error if no delta to this result can be written, because it is locked or
// another encoder wrote it.
func CheckWritable(result *archive.Reader) error {
	if result.Locked() || result.Manifest().Encoder != archive.Encoder {
		return errNotWritable
	}
	return nil
}

var errNotWritable = snap.Invalid("no delta to this snapshot can be written: it is encrypted and not unlocked, or "+
	"another version of snapcli wrote it", "transfer the whole file")

// Written describes a delta that [Write] has written.
type Written struct {
	Size int64 // bytes
	Same bool  // both files have the same sections, so that only their manifests differ
}

// Write writes the delta from base to result to dst. If the delta has more than limit bytes, it
// fails with [ErrLarge] and has written at most limit bytes. It fails with [archive.ErrLoads] if
// comparing the two files reads more of the base than [Apply] allows. The arguments from and to
// identify the files of the two readers. The delta to an encrypted file, which must be unlocked, is
// encrypted to the recipients of that file.
func Write(ctx context.Context, dst io.Writer, base, result *archive.Reader, from, to File, limit int64) (Written,
	error) {
	if err := CheckWritable(result); err != nil {
		return Written{}, err
	}
	old, err := base.Content(ctx)
	if err != nil {
		return Written{}, err
	}
	defer old.Close()
	now, err := result.Content(ctx)
	if err != nil {
		return Written{}, err
	}
	defer now.Close()
	h := Header{Base: from, Result: to, Encoder: archive.Encoder, Sections: now.Sections, Manifest: now.Manifest}
	if err := h.checkRatio(); err != nil {
		return Written{}, err
	}
	out := &limitedWriter{w: dst, left: limit, tooLong: ErrLarge}
	if result.Encrypted() == 0 {
		same, err := writeContent(ctx, out, h, base.Manifest().Engine, old, now)
		return Written{limit - out.left, same}, err
	}
	plain, err := seal(out, h, result)
	if err != nil {
		return Written{}, err
	}
	same, err := writeContent(ctx, plain, h, base.Manifest().Engine, old, now)
	if err == nil {
		err = plain.Close()
	}
	return Written{limit - out.left, same}, err
}

// seal begins an encrypted delta.
func seal(dst io.Writer, h Header, result *archive.Reader) (io.WriteCloser, error) {
	envelope, err := result.Envelope()
	if err != nil {
		return nil, err
	}
	outside := Header{Base: h.Base, Result: h.Result, Encoder: h.Encoder, Sealed: &envelope.Sealing}
	if err := writeHeader(dst, outside); err != nil {
		return nil, err
	}
	return envelope.Seal(dst)
}

// writeContent writes a delta, and reports whether both files have the same sections.
func writeContent(ctx context.Context, dst io.Writer, h Header, e snap.Engine, old, now *archive.Content) (same bool,
	err error) {
	seed := maphash.MakeSeed()
	w := &writer{ctx: ctx, base: old, index: newIndex(seed, slotsOfAll),
		nearby: newNearby(seed), anchors: anchors{binary: e == snap.SQLite},
		manifest: now.Size() - now.Manifest, groups: groups{base: old, dst: dst},
		next: [2]lookahead{{at: -1}, {at: -1}}}
	if w.groups.blocks, err = archive.NewBlockCoder(); err != nil {
		return false, err
	}
	defer func() { _ = w.groups.blocks.Close() }()
	old.LimitLoads(loadsAllowed(old.Blocks(), now.Size()))
	runs, err := now.Same(ctx, old)
	if err != nil {
		return false, err
	}
	if err := w.fill(runs); err != nil {
		return false, err
	}
	if err = writeHeader(dst, h); err == nil {
		err = w.writeAll(now, runs)
	}
	return !w.differs && slices.Equal(old.Sections, now.Sections), err
}

// writer compares the result with the base.
type writer struct {
	ctx      context.Context
	base     *archive.Content
	anchors  anchors
	index    *index // of the whole base
	nearby   nearby
	in       windowReader // bytes of the result
	lit      int          // index in these bytes; the bytes before it already belong to an operation
	manifest int64        // where the result's manifest begins
	at       int64        // in the base: the end of the last range
	jumps    int          // number of far jumps
	since    int64        // bytes of the base used since the last jump, near or far
	left     int64        // in the base: where the last jump began, unless it came right after another jump
	drift    int64        // position in the base minus position in the result; see expected
	groups   groups
	differs  bool         // a section has different content or a different position
	next     [2]lookahead // the bytes after the offsets w.at and w.left
	before   []byte       // a buffer for the bytes before an anchor
}

// lookahead is a part of the base in which lines are searched for without the index.
type lookahead struct {
	b  []byte
	at int64 // of b in the base
}

// load reads the lines that follow an offset. One of them may begin at the offset.
func (l *lookahead) load(base *archive.Content, from int64) error {
	if from = max(from-1, 0); from == l.at {
		return nil
	}
	if l.b == nil {
		l.b = make([]byte, nextBytes)
	}
	l.b, l.at = l.b[:min(nextBytes, base.Size()-from)], from
	_, err := base.ReadAt(l.b, from)
	return err
}

// run adds the operations for the bytes that have not been read yet. next is where the base
// continues after them, or unknown.
func (w *writer) run(next int64) error {
	scan := 0 // anchors before it match nothing
	for {
		if err := w.in.ensure(w.ctx, scan, readAhead); err != nil {
			return err
		}
		if err := w.follow(); err != nil {
			return err
		}
		at, from, found, err := w.match(&scan)
		switch {
		case err != nil:
			return err
		case found:
			err = w.copyFrom(at, from)
			scan = w.lit
		case w.in.end:
			return w.literals(len(w.in.b), next)
		case scan-w.lit > maxPending:
			err = w.literals(scan, unknown)
		}
		if err != nil {
			return err
		}
		kept := w.in.drop(min(w.lit, scan-1))
		moved := min(w.lit, scan-1) - kept
		w.lit, scan = w.lit-moved, scan-moved
	}
}

// match finds the next range of the base in the bytes that were read. It moves scan past the
// anchors that match nothing.
func (w *writer) match(scan *int) (at int, from int64, found bool, err error) {
	b := w.in.b
	for {
		n := w.anchors.next(b, *scan, w.in.at)
		if n+anchorBytes > len(b) || !w.in.end && n+readAhead > len(b) {
			*scan = min(n, len(b))
			return 0, 0, false, nil
		}
		*scan = n + 1
		if at, from, err = w.line(n); err != nil || at >= 0 {
			return at, from, err == nil, err
		}
		hash, shifted := w.index.hash(b[n:n+anchorBytes]), w.groups.expect+int64(n-w.lit)
		for _, candidate := range [...]int64{shifted, w.nearby.find(hash), w.index.find(hash)} {
			at, from, err := w.extend(n, candidate)
			if err != nil || at >= 0 {
				return at, from, err == nil, err
			}
		}
	}
}

// line looks for the line at index n among the lines of the base that follow the last range or the
// range before the last jump. A line that occurs often, such as the beginning of a statement, may
// have caused a jump away from the position where the base continues. This search recognizes lines
// that have become longer, and lines that are too short or too many for the index. If it finds
// none, it returns a negative index.
func (w *writer) line(n int) (int, int64, error) {
	if w.anchors.binary {
		return -1, 0, nil
	}
	for i, place := range [...]int64{w.at, w.left} {
		l := &w.next[i]
		if err := l.load(w.base, place); err != nil {
			return -1, 0, err
		}
		if from := l.lineLike(w.in.b[n:], place == 0); from >= 0 {
			for n > w.lit && from > place && w.in.b[n-1] == l.b[from-1-l.at] {
				n, from = n-1, from-1
			}
			return n, from, nil
		}
	}
	return -1, 0, nil
}

// lineLike searches the next lines of the base for an earlier form of the first line of text, and
// returns its offset, or -1. If first is set, these lines are the first lines of the base.
func (l *lookahead) lineLike(text []byte, first bool) int64 {
	b, from := l.b, l.at
	for k := range nextLines {
		next := bytes.IndexByte(b, '\n') + 1
		if k == 0 && first {
			next = 0
		} else if next == 0 {
			break
		}
		b, from = b[next:], from+int64(next)
		if size := bytes.IndexByte(b, '\n'); size >= minLine && grew(text, b[:size]) {
			return from
		}
	}
	return -1
}

// grew reports whether b begins with the old line, or with a line that has the old line's beginning
// and its last two bytes. A row of an INSERT statement gets longer before its closing parenthesis
// and comma.
func grew(b, old []byte) bool {
	if bytes.HasPrefix(b, old) {
		return true
	}
	head, end := old[:len(old)-2], old[len(old)-2:]
	if !bytes.HasPrefix(b, head) {
		return false
	}
	size := bytes.IndexByte(b[len(head):], '\n')
	return size >= 2 && bytes.HasSuffix(b[:len(head)+size], end)
}

// extend extends the bytes at index n to the left, if the base has the same bytes at the offset
// from, and a jump to that offset is worthwhile. Otherwise it returns a negative index.
func (w *writer) extend(n int, from int64) (int, int64, error) {
	if from < 0 {
		return -1, 0, nil
	}
	least := anchorBytes
	if w.isFar(from) {
		if least = minFar; int64(w.jumps)*minFrequentFar > w.in.at+int64(n) {
			least = minFrequentFar
		}
	}
	same, err := w.common(w.in.b[n:min(n+least, len(w.in.b))], from)
	if err != nil || same < anchorBytes {
		return -1, 0, err
	}
	if same < least {
		if alike, err := w.alike(w.in.b[n:], from, least); !alike || err != nil {
			return -1, 0, err
		}
	}
	back := min(int64(n-w.lit), maxPending, from)
	w.before = slices.Grow(w.before[:0], int(back))
	before := w.before[:back]
	if _, err := w.base.ReadAt(before, from-back); err != nil {
		return -1, 0, err
	}
	for len(before) > 0 && w.in.b[n-1] == before[len(before)-1] {
		n, from, before = n-1, from-1, before[:len(before)-1]
	}
	return n, from, nil
}

// alike reports whether b begins with the lines in base[from:from+least], which may have grown, as
// in a table with a new column. It does not look beyond a block of the base.
func (w *writer) alike(b []byte, from int64, least int) (bool, error) {
	old, err := w.base.From(from)
	if err != nil || w.anchors.binary || len(old) < least {
		return false, err
	}
	for old = old[:least]; ; {
		size := bytes.IndexByte(old, '\n')
		if size < 0 {
			return len(old) < least, nil
		}
		if size < minLine || !grew(b, old[:size]) {
			return false, nil
		}
		old, b = old[size+1:], b[bytes.IndexByte(b, '\n')+1:]
	}
}

// expected returns the position in the base that corresponds to the current position in the result.
// It assumes that both have advanced equally since the writer last used nextBytes bytes of the base
// without a jump. Short ranges that exist all over the base, such as the cell offsets in a page of
// SQLite, do not change it.
func (w *writer) expected() int64 {
	return min(max(0, w.in.at+int64(w.lit)+w.drift), w.base.Size())
}

// isFar reports whether an offset of the base is far both from the end of the last range and from
// the expected position.
func (w *writer) isFar(from int64) bool {
	at := w.expected()
	return (from > w.at+nearBytes || from < w.at-nearBytes) && (from > at+nearBytes || from < at-nearBytes)
}

// common returns the number of bytes at the start of b that the base also has at an offset.
func (w *writer) common(b []byte, from int64) (n int, err error) {
	for n < len(b) {
		old, err := w.base.From(from + int64(n))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
		old = old[:min(len(old), len(b)-n)]
		same := prefix(old, b[n:])
		if n += same; same < len(old) {
			break
		}
	}
	return n, nil
}

// prefix returns the length of the common prefix of a and b. a is not longer than b.
func prefix(a, b []byte) (n int) {
	const chunk = 256
	for n+chunk <= len(a) && bytes.Equal(a[n:n+chunk], b[n:n+chunk]) {
		n += chunk
	}
	for n < len(a) && a[n] == b[n] {
		n++
	}
	return n
}

// copyFrom adds the literals before index at, and the longest range that begins there.
func (w *writer) copyFrom(at int, from int64) error {
	if w.isFar(from) {
		w.jumps++
	}
	if from < w.at || from > w.at+nextBytes {
		if w.since >= nextBytes {
			w.left = w.at
		}
		w.since = 0
	}
	if err := w.literals(at, from); err != nil {
		return err
	}
	for {
		n, err := w.common(w.in.b[w.lit:], from)
		if err != nil {
			return err
		}
		if at := w.in.at + int64(w.lit); at < w.manifest && from != at {
			w.differs = true
		}
		line, err := w.lineOf(w.in.b[w.lit:w.lit+n], from)
		if err != nil {
			return err
		}
		w.groups.copied(n, from, line, &w.at)
		w.lit, from, w.since = w.lit+n, from+int64(n), w.since+int64(n)
		if w.since >= nextBytes {
			w.drift = w.at - w.in.at - int64(w.lit)
		}
		if w.lit < len(w.in.b) || w.in.end {
			return w.groups.flushIfFull()
		}
		w.lit = w.in.drop(w.lit-1) + 1
		if err := w.in.ensure(w.ctx, w.lit, 1); err != nil {
			return err
		}
	}
}

// lineOf returns the value of [op].line for a range of the base. It returns 0 for long ranges,
// which are rare.
func (w *writer) lineOf(b []byte, from int64) (int, error) {
	if len(b) == 0 || len(b) > nextBytes {
		return 0, nil
	}
	next, err := w.base.From(from + int64(len(b)))
	if errors.Is(err, io.EOF) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	short := bytes.IndexByte(next[:min(len(next), maxShort+1)], '\n')
	if short < 0 || bytes.IndexByte(b[min(short+1, len(b)):], '\n') >= 0 {
		return 0, nil
	}
	return short + 1, nil
}

// literals adds the bytes from lit up to an index. next is where the base continues, or unknown.
func (w *writer) literals(until int, next int64) error {
	for w.lit < until {
		n := min(until-w.lit, w.groups.room())
		if left := w.manifest - w.in.at - int64(w.lit); left == 0 {
			w.groups.expect = w.base.Size() - w.base.Manifest // the manifests are similar
		} else if left > 0 {
			w.differs, n = true, int(min(int64(n), left))
		}
		if err := w.groups.literal(w.in.b[w.lit:w.lit+n], next); err != nil {
			return err
		}
		w.lit += n
		if err := w.groups.flushIfFull(); err != nil {
			return err
		}
	}
	return nil
}

// groups collects operations and writes them.
type groups struct {
	group
	base        *archive.Content
	dst         io.Writer
	blocks      *archive.BlockCoder
	expect      int64  // where the base is expected to have bytes similar to the next literals
	words       []byte // the content of the dictionary
	resultBytes int    // bytes of the result in the group
}

func (g *groups) room() int { return maxLiteral - len(g.literals) }

// literal adds literals of at most room bytes. next is where the base continues after them, or
// unknown.
func (g *groups) literal(b []byte, next int64) (err error) {
	if last := len(g.ops) - 1; last >= 0 && g.ops[last].copied == 0 {
		g.ops[last].literal += len(b)
	} else {
		g.ops = append(g.ops, op{literal: len(b)})
	}
	g.literals, g.resultBytes = append(g.literals, b...), g.resultBytes+len(b)
	switch until := g.expect + int64(len(b)); {
	case next == unknown:
		err = g.addToDictionary(g.expect, until)
		g.expect = until
	case next > g.expect:
		err = g.addToDictionary(g.expect, min(next, until+int64(len(b))+dictExtra))
	}
	return err
}

// addToDictionary adds a range of the base to the dictionary, while its block is in memory.
func (g *groups) addToDictionary(from, until int64) error {
	until = min(until, g.base.Size(), from+maxDict-int64(len(g.words)))
	if until <= from {
		return nil
	}
	if last := len(g.dict) - 1; last >= 0 && g.dict[last].at+g.dict[last].size == from {
		g.dict[last].size += until - from
	} else if len(g.dict) == maxRanges {
		return nil
	} else {
		g.dict = append(g.dict, span{from, until - from})
	}
	n := len(g.words)
	g.words = slices.Grow(g.words, int(until-from))[:n+int(until-from)]
	_, err := g.base.ReadAt(g.words[n:], from)
	return err
}

// copied adds a range of n bytes of the base. at is the end of the previous range. line is as in
// [op].
func (g *groups) copied(n int, from int64, line int, at *int64) {
	if n == 0 {
		return
	}
	g.resultBytes += n
	last := len(g.ops) - 1
	switch {
	case last >= 0 && g.ops[last].copied > 0 && *at == from:
		g.ops[last].copied, g.ops[last].line = g.ops[last].copied+n, 0
	case last >= 0 && g.ops[last].copied == 0:
		g.ops[last].copied, g.ops[last].jump, g.ops[last].line = n, from-*at, line
	default:
		g.ops = append(g.ops, op{copied: n, jump: from - *at, line: line})
	}
	*at = from + int64(n)
	g.expect = *at
}

// flushIfFull writes the group if it is full.
func (g *groups) flushIfFull() error {
	if g.room() > 0 && len(g.ops) < maxOps && (g.resultBytes < maxReach || len(g.literals) < minLiterals) {
		return nil
	}
	return g.flush()
}

func (g *groups) flush() error {
	if len(g.ops) == 0 {
		return nil
	}
	if first := g.expect - dictTail; len(g.words) < dictTail && len(g.literals) >= minPacked {
		if err := g.addToDictionary(max(first, 0), g.expect); err != nil {
			return err
		}
	}
	literals, err := g.pack()
	if err != nil {
		return err
	}
	b := binary.AppendUvarint(make([]byte, 4), uint64(len(g.ops)))
	if literals.how != asZstd {
		g.dict = g.dict[:0]
	}
	b = binary.AppendUvarint(b, uint64(len(g.dict)))
	at := int64(0)
	for _, s := range g.dict {
		b = binary.AppendVarint(b, s.at-at)
		b = binary.AppendUvarint(b, uint64(s.size))
		at = s.at + s.size
	}
	ops, err := compressed(g.encodeOps(), nil)
	if err != nil {
		return err
	}
	b = ops.append(literals.append(b))
	if len(b) > maxGroup {
		return fmt.Errorf("%w: it has %d bytes", errGroup, len(b))
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	g.group = group{ops: g.ops[:0], literals: g.literals[:0], dict: g.dict[:0]}
	g.words, g.resultBytes = g.words[:0], 0
	_, err = g.dst.Write(b)
	return err
}

// pack encodes the literals in the form that is smallest.
func (g *groups) pack() (part, error) {
	if len(g.literals) < minPacked {
		return part{asIs, len(g.literals), g.literals}, nil
	}
	p, err := compressed(g.literals, g.words)
	if block := g.blocks.Pack(g.literals); err == nil && len(block) < len(p.stored) {
		p = part{asBlock, len(g.literals), block}
	}
	return p, err
}

// compressed stores content with zstd, unless that makes it larger.
func compressed(content, words []byte) (part, error) {
	p := part{asIs, len(content), content}
	if len(content) < minPacked {
		return p, nil
	}
	o := []zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true)}
	if len(words) > 0 {
		o = append(o, zstd.WithEncoderDictRaw(dictID, words))
	}
	enc, err := zstd.NewWriter(nil, o...)
	if err != nil {
		return p, fmt.Errorf("start zstd: %w", err)
	}
	defer func() { _ = enc.Close() }()
	if packed := enc.EncodeAll(content, nil); len(packed) < len(content) {
		p.how, p.stored = asZstd, packed
	}
	return p, nil
}
