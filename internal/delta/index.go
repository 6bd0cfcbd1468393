package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/maphash"
	"io"
	"slices"
)

// An anchor is a position in the content at which a range of the base can be recognized: the
// beginning of a line. In a SQLite file, whose rows move when other rows change, about one position
// in 64 is an anchor instead; the eight bytes that follow decide which. An anchor is recognized by
// a hash of the bytes that follow.
type anchors struct{ binary bool }

// anchorBytes is the number of bytes that are hashed at an anchor.
const anchorBytes = 64

// next returns the index of the first anchor in b from i on. If there is none, it returns the first
// index that cannot be decided without more bytes, at most len(b). at is the offset of b in the
// content.
func (a anchors) next(b []byte, i int, at int64) int {
	if i == 0 && at == 0 {
		return 0
	}
	if a.binary {
		for ; i+8 <= len(b); i++ {
			if binary.LittleEndian.Uint64(b[i:])*0x9e3779b97f4a7c15>>58 == 63 { // never in zeros
				return i
			}
		}
		return i
	}
	if i > 0 && b[i-1] == '\n' {
		return i
	}
	n := bytes.IndexByte(b[i:], '\n')
	if n < 0 {
		return len(b)
	}
	return i + n + 1
}

// The maximum numbers of slots limit the memory of an index: each slot takes 16 bytes.
const (
	slotsOfAll  = 1 << 19 // for the whole base
	slotsNearby = 1 << 18 // for each half of the nearby range
)

// index maps the hashes of a sample of the base's anchors to their offsets. When it is full, it
// keeps every second anchor.
type index struct {
	seed  maphash.Seed
	slots []slot
	limit int // slots
	used  int
	mask  uint64 // an anchor is sampled if these bits of its hash are 0
}

// slot is an anchor. Offsets are stored with 1 added, so that 0 means an empty slot.
type slot struct {
	hash   uint64
	offset int64
}

// newIndex returns an index of at most limit slots. limit is a power of 2.
func newIndex(seed maphash.Seed, limit int) *index {
	return &index{seed: seed, slots: make([]slot, min(limit, 1<<12)), limit: limit}
}

func (x *index) hash(b []byte) uint64 { return maphash.Bytes(x.seed, b) }

// clear removes all anchors.
func (x *index) clear() {
	clear(x.slots)
	x.used, x.mask = 0, 0
}

// place returns the slot of a hash, or the empty slot where it belongs. The sampling uses the
// highest bits, so that the sample is spread evenly over the slots.
func (x *index) place(hash uint64) *slot {
	for i := hash; ; i++ {
		s := &x.slots[i&uint64(len(x.slots)-1)]
		if s.offset == 0 || s.hash == hash {
			return s
		}
	}
}

// add adds an anchor if it is in the sample and no earlier anchor has the same hash.
func (x *index) add(hash uint64, offset int64) {
	if hash&x.mask != 0 {
		return
	}
	s := x.place(hash)
	if s.offset != 0 {
		return
	}
	*s = slot{hash, offset + 1}
	if x.used++; x.used*4 > len(x.slots)*3 {
		x.grow()
	}
}

// grow doubles the slots, or halves the sample.
func (x *index) grow() {
	size := 2 * len(x.slots)
	if size > x.limit {
		size, x.mask = len(x.slots), x.mask>>1|1<<63
	}
	kept := slices.DeleteFunc(x.slots, func(s slot) bool { return s.offset == 0 || s.hash&x.mask != 0 })
	if size > len(x.slots) {
		x.slots = make([]slot, size)
	} else {
		kept = slices.Clone(kept)
		clear(x.slots)
	}
	for _, s := range kept {
		*x.place(s.hash) = s
	}
	x.used = len(kept)
}

// find returns the offset of the anchor with this hash, or -1.
func (x *index) find(hash uint64) int64 {
	if hash&x.mask != 0 {
		return -1
	}
	return x.place(hash).offset - 1
}

// fill adds the anchors in r that are in the sample. at is the offset in the content at which r
// begins.
func (x *index) fill(ctx context.Context, r io.Reader, at int64, a anchors) error {
	w := &windowReader{src: r, at: at}
	for i := 0; ; {
		n := a.next(w.b, i, w.at)
		if n+anchorBytes <= len(w.b) {
			x.add(x.hash(w.b[n:n+anchorBytes]), w.at+int64(n))
			i = n + 1
			continue
		}
		i = w.drop(n-1) + 1
		if w.end {
			return nil
		}
		if err := w.ensure(ctx, i, anchorBytes); err != nil {
			return err
		}
	}
}

// windowReader reads a stream and keeps a window of the bytes that are currently examined.
type windowReader struct {
	src io.Reader
	b   []byte
	at  int64 // of b[0] in the stream
	end bool
}

// readSize is the number of bytes that are read at a time.
const readSize = 1 << 20

// ensure reads until at least n bytes follow index i, or the stream ends.
func (w *windowReader) ensure(ctx context.Context, i, n int) error {
	for len(w.b)-i < n && !w.end {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.b = slices.Grow(w.b, readSize)
		got, err := io.ReadFull(w.src, w.b[len(w.b):len(w.b)+readSize])
		w.b = w.b[:len(w.b)+got]
		w.end = err == io.EOF || err == io.ErrUnexpectedEOF
		if !w.end && err != nil {
			return err
		}
	}
	return nil
}

// drop may discard the bytes before index i, and returns the new index of the same byte. It
// discards them only if the rest, which must be copied, is small enough.
func (w *windowReader) drop(i int) int {
	if i < len(w.b)/2 {
		return i
	}
	w.b = w.b[:copy(w.b, w.b[i:])]
	w.at += int64(i)
	return 0
}
