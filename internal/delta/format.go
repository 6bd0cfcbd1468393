package delta

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"snap"
	"snap/internal/archive"
)

const (
	magic      = "\x89SNAD\r\n\x1a"
	version    = 4
	sealed     = 2 // the version of a delta that is encrypted
	headSize   = 16
	maxHeader  = 64 << 10
	maxGroup   = 4 << 20  // bytes of a group
	maxLiteral = 1 << 20  // bytes of a group's literals
	maxOps     = 64 << 10 // operations of a group
	maxDict    = 1 << 20  // bytes of a group's dictionary
	maxRanges  = 4096     // ranges of a group's dictionary
	minPacked  = 256      // bytes below which nothing is compressed
	maxShort   = 15       // bytes between a range and the newline that determines its end
	maxRatio   = 1000     // bytes of content per byte of the result's file, if the content exceeds manyBytes
	manyBytes  = 64 << 20
)

// The ways to store the literals and the operations of a group.
const (
	asIs    = 0
	asZstd  = 1 // a zstd frame, as if the dictionary's bytes preceded the content
	asBlock = 2 // as a block of a snapshot file
)

// File identifies a snapshot file.
type File struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Header is the beginning of a delta. The header of an encrypted delta does not have the sizes
// of the result's content.
type Header struct {
	Base     File             `json:"base"`
	Result   File             `json:"result"`
	Encoder  int              `json:"encoder"`
	Sections []archive.Extent `json:"sections,omitempty"` // of the result
	Manifest int64            `json:"manifest,omitempty"` // bytes
	Sealed   *archive.Sealing `json:"sealed,omitempty"`   // set if the delta and its result are encrypted

	envelope *archive.Envelope // set by Unseal
}

func (h Header) outline() archive.Outline {
	return archive.Outline{Sections: h.Sections, Manifest: h.Manifest}
}

// checkRatio limits the work of carrying out a delta. A few bytes could otherwise describe
// terabytes that are compressed to a small result. Databases hardly reach a tenth of maxRatio.
func (h Header) checkRatio() error {
	if size := h.outline().Size(); size > manyBytes && size/maxRatio > h.Result.Size {
		return snap.Invalid("the snapshot's content is too large for its file", "transfer the whole file")
	}
	return nil
}

func writeHeader(w io.Writer, h Header) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	v := version
	if h.Sealed != nil {
		v = sealed
	}
	b := binary.BigEndian.AppendUint16([]byte(magic), uint16(v))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	_, err = w.Write(append(b, text...))
	return err
}

// ReadHeader reads the header of a delta. It fails with corrupt_snapshot if the header is damaged,
// and with [snap.CodeInvalid] if this version cannot apply the delta or the result's content is too
// large for its file.
func ReadHeader(r io.Reader) (h Header, err error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return h, damaged("its header is incomplete", err)
	}
	length := binary.BigEndian.Uint32(head[12:])
	if !bytes.HasPrefix(head, []byte(magic)) || length > maxHeader {
		return h, damaged("it is not a delta", nil)
	}
	v := binary.BigEndian.Uint32(head[8:])
	if v != version<<16 && v != sealed<<16 {
		return h, errOtherVersion
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, damaged("its header is incomplete", err)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, damaged("its header cannot be read", err)
	}
	if !h.Base.valid() || !h.Result.valid() || (v == sealed<<16) != (h.Sealed != nil) {
		return h, damaged("its header is invalid", nil)
	}
	if err := h.outline().Check(); err != nil {
		return h, damaged("its header is invalid", err)
	}
	if h.Sealed != nil {
		if err := h.Sealed.Check(); err != nil {
			return h, damaged("its header is invalid", err)
		}
	}
	if h.Encoder != archive.Encoder {
		return h, errOtherVersion
	}
	return h, h.checkRatio()
}

// Unseal reads the header of the delta inside an encrypted one. The envelope and the content are
// those that [archive.OpenSealed] returned.
func (h Header) Unseal(e *archive.Envelope, content io.Reader) (Header, error) {
	inside, err := ReadHeader(content)
	if err != nil {
		return h, err
	}
	if inside.Sealed != nil || inside.Base != h.Base || inside.Result != h.Result {
		return h, damaged("the delta inside is not the one that its header describes", nil)
	}
	inside.envelope = e
	return inside, nil
}

func (f File) valid() bool {
	sum, err := hex.DecodeString(f.SHA256)
	return err == nil && len(sum) == 32 && f.Size > 0
}

// errOtherVersion is the error for a delta of another version of the format or of the encoder.
var errOtherVersion = snap.Invalid("the delta is for another version of snapcli", "transfer the whole file")

// damaged returns the error for a delta that cannot be applied.
func damaged(why string, cause error) error {
	var known *snap.Error
	if errors.As(cause, &known) && known.Code != snap.CodeCorrupt {
		return cause
	}
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the delta cannot be used: " + why,
		Hint: "transfer the whole file", Cause: cause}
}

// op is one operation: literals, followed by a range of the base. jump is the distance of the range
// from the end of the previous one. If line is 0, copied is the size of the range. Otherwise the
// size is not stored, and [resultReader.measure] finds it in the base: it skips line bytes from the
// start of the range and finds the next newline. The range ends line-1 bytes before that newline.
type op struct {
	literal, copied int
	jump            int64
	line            int
}

// span is a range of the base's content.
type span struct{ at, size int64 }

// group holds some operations with their literals.
type group struct {
	ops      []op
	literals []byte
	dict     []span
}

// encodeOps returns the operations as varints.
func (g *group) encodeOps() []byte {
	var b []byte
	for _, o := range g.ops {
		b = binary.AppendUvarint(b, uint64(o.literal))
		if o.line > 0 {
			b = binary.AppendUvarint(b, 2*uint64(o.line)-1)
		} else {
			b = binary.AppendUvarint(b, 2*uint64(o.copied))
		}
		if o.copied > 0 {
			b = binary.AppendVarint(b, o.jump)
		}
	}
	return b
}

// decodeOps reads count operations, which must use all literals.
func decodeOps(b []byte, count, literals int) ([]op, error) {
	c, left := cursor{b: b}, uint64(literals)
	ops := make([]op, count)
	for i := range ops {
		n := c.number(left)
		left -= n
		copied := c.number(1 << 51)
		ops[i] = op{literal: int(n), copied: int(copied / 2)}
		if copied%2 > 0 {
			c.bad = c.bad || copied/2 > maxShort
			ops[i].copied, ops[i].line = 0, int(copied/2)+1
		}
		if copied > 0 {
			ops[i].jump = c.signed()
		}
	}
	if c.bad || len(c.b) > 0 || left > 0 {
		return nil, errGroup
	}
	return ops, nil
}

var errGroup = errors.New("a group of operations is damaged")

// cursor reads varints. After an error it stays bad.
type cursor struct {
	b   []byte
	bad bool
}

// number reads a number from 0 to limit.
func (c *cursor) number(limit uint64) uint64 {
	v, n := binary.Uvarint(c.b)
	if c.bad || n <= 0 || v > limit {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) signed() int64 {
	v, n := binary.Varint(c.b)
	if c.bad || n <= 0 {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)) {
		c.bad = true
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

// part is content and how it is stored.
type part struct {
	how    byte
	size   int
	stored []byte
}

func (p part) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, p.how), uint64(p.size))
	return append(binary.AppendUvarint(b, uint64(len(p.stored))), p.stored...)
}

func (c *cursor) part(limit uint64) (p part) {
	if how := c.bytes(1); !c.bad {
		p.how = how[0]
	}
	p.size = int(c.number(limit))
	p.stored = c.bytes(c.number(uint64(len(c.b))))
	return p
}

// readGroup reads the bytes of the next group into buf. At the end of the delta it returns io.EOF.
func readGroup(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxGroup {
		return nil, fmt.Errorf("%w: it has %d bytes", errGroup, n)
	}
	if cap(buf) < int(n) {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(r, buf)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return buf, err
}
