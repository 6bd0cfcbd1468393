package delta

import (
	"hash/maphash"
	"io"
)

// step is the number of bytes of the result after which the nearby range is moved.
const step = nearBytes / 4

// nearby indexes all or most anchors of a range of the base that extends at least one step to both
// sides of the expected position (see [writer.expected]). The index of the whole base has only a
// sample of its anchors, which is sparser for a larger base. Short unchanged stretches between two
// changes, such as a few rows, therefore often have no anchor in that index.
type nearby struct {
	older, newer      *index
	begin, mid, until int64 // older indexes the base from begin to mid, newer from mid to until
	due               int64 // offset in the result at which the range is moved
}

func newNearby(seed maphash.Seed) nearby {
	return nearby{older: newIndex(seed, slotsNearby), newer: newIndex(seed, slotsNearby)}
}

// find returns the offset of an anchor with this hash, or -1.
func (x *nearby) find(hash uint64) int64 {
	if at := x.newer.find(hash); at >= 0 {
		return at
	}
	return x.older.find(hash)
}

// follow moves the nearby range to the expected position in the base, if that is due. For each step
// of the result, it reads at most four steps of the base, and usually one.
func (w *writer) follow() error {
	x, result := &w.nearby, w.in.at+int64(w.lit)
	if result < x.due {
		return nil
	}
	x.due = result + step
	at := w.expected()
	if at < x.begin+step && x.begin > 0 || at > x.until { // the position has jumped
		x.begin = max(at-2*step, 0)
		x.mid, x.until = x.begin, x.begin
		x.older.clear()
		x.newer.clear()
	}
	for until := min(at+2*step, w.base.Size()); x.until < until; {
		if x.until-x.mid >= nearBytes {
			x.older, x.newer, x.begin, x.mid = x.newer, x.older, x.mid, x.until
			x.newer.clear()
		}
		size := min(until, x.mid+nearBytes) - x.until
		content := io.NewSectionReader(w.base, x.until, size+anchorBytes) // an anchor needs bytes after it
		if err := x.newer.fill(w.ctx, content, x.until, w.anchors); err != nil {
			return err
		}
		x.until += size
	}
	return nil
}
