package delta

import (
	"cmp"
	"slices"

	"snap/internal/archive"
)

// Blocks that both files have are copied unchanged. Their content is neither compared nor indexed.

// fill indexes the content of the base, except the blocks that both files have.
func (w *writer) fill(runs []archive.Same) error {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b archive.Same) int { return cmp.Compare(a.From, b.From) })
	at := int64(0)
	for _, r := range append(runs, archive.Same{From: w.base.Size()}) {
		if err := w.fillRange(at, r.From); err != nil {
			return err
		}
		at = max(at, r.From+r.Size)
	}
	return nil
}

func (w *writer) fillRange(from, until int64) error {
	if from >= until {
		return nil
	}
	stream, err := w.base.Range(from, until)
	if err != nil {
		return err
	}
	defer stream.Close()
	return w.index.fill(w.ctx, stream, from, w.anchors)
}

// writeAll writes the operations for the content of the result. runs are the blocks of the result
// that the base also has.
func (w *writer) writeAll(now *archive.Content, runs []archive.Same) error {
	at := int64(0)
	for _, r := range runs {
		if err := w.compare(now, at, r.At, r.From); err != nil {
			return err
		}
		if r.At != r.From {
			w.differs = true
		}
		w.groups.copied(int(r.Size), r.From, 0, &w.at)
		w.since += r.Size
		if err := w.groups.flushIfFull(); err != nil {
			return err
		}
		at = r.At + r.Size
	}
	if err := w.compare(now, at, now.Size(), unknown); err != nil {
		return err
	}
	return w.groups.flush()
}

// compare adds the operations for a range of the result. next is where the base continues after it,
// or unknown.
func (w *writer) compare(now *archive.Content, from, until, next int64) error {
	if from == until {
		return nil
	}
	stream, err := now.Range(from, until)
	if err != nil {
		return err
	}
	defer stream.Close()
	w.in, w.lit = windowReader{src: stream, b: w.in.b[:0], at: from}, 0
	return w.run(next)
}
