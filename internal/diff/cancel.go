package diff

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Most rows are equal and in about the same order on both sides. Those cancel each other out while
// they are read, and only the others are kept.
const (
	batchRows   = 512
	windowRows  = 1 << 16
	windowSlots = 2 // entries that a place of the window has room for
)

// window holds the latest rows of both sides that have not found an equal row on the other side.
type window struct {
	places [][windowSlots]waiting
	spills [2]*spill
}

// waiting is a row of one side.
type waiting struct {
	entry

	side int8 // 0 for an empty slot, 1 and 2 for the sides
	at   int64
}

func newWindow(rows int, spills [2]*spill) *window {
	return &window{places: make([][windowSlots]waiting, rows/windowSlots), spills: spills}
}

// add adds row number at of a side. If the other side has an equal row in the window, both are gone,
// and add returns the number of that row. Otherwise it returns -1. The oldest row of a full place moves
// to the spill of its side.
func (w *window) add(side int, e entry, at int64) (other int64, err error) {
	place := &w.places[(e.identity[1]^e.row)%uint64(len(w.places))]
	for i := range place {
		if s := &place[i]; s.side == int8(2-side) && s.entry == e {
			s.side = 0
			return s.at, nil
		}
	}
	free := windowSlots - 1
	for i := range place {
		if place[i].side == 0 {
			free = i
			break
		}
	}
	if last := place[free]; last.side != 0 {
		err = w.spills[last.side-1].add(last.entry)
	}
	copy(place[1:free+1], place[:free]) // the newest comes first
	place[0] = waiting{e, int8(side + 1), at}
	return -1, err
}

// flush moves all rows to the spills.
func (w *window) flush() error {
	for i := range w.places {
		for _, s := range w.places[i] {
			if s.side == 0 {
				continue
			}
			if err := w.spills[s.side-1].add(s.entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the rows of both sides, and keeps those that have not cancelled each other out.
func (c *comparison) read(ctx context.Context, before, after Side) error {
	g, ctx := errgroup.WithContext(ctx)
	var batches [2]chan []entry
	free := make(chan []entry, 8)
	for i, side := range []Side{before, after} {
		batches[i] = make(chan []entry, 2)
		g.Go(func() error {
			defer close(batches[i])
			return c.hashRows(ctx, i, side, batches[i], free)
		})
	}
	g.Go(func() error { return c.cancel(ctx, batches, free) })
	return g.Wait()
}

// hashRows counts the rows of a side, and sends the entries of those in common tables in batches. It
// reuses batches that are free.
func (c *comparison) hashRows(ctx context.Context, i int, side Side, to chan<- []entry, free <-chan []entry) error {
	h, batch := c.hasher(i), make([]entry, 0, batchRows)
	send := func() error {
		select {
		case to <- batch:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case batch = <-free:
		default:
			batch = make([]entry, 0, batchRows)
		}
		return nil
	}
	err := side.Rows(ctx, func(table int, fields [][]byte) error {
		at := c.at[i][table]
		if c.counts[i][at]++; !c.tables[at].shared {
			return nil
		}
		id, row := h.hash(at, fields)
		if batch = append(batch, entry{identity: id, row: row, table: uint32(at), rows: 1}); len(batch) < batchRows {
			return nil
		}
		return send()
	})
	if err == nil && len(batch) > 0 {
		err = send()
	}
	return err
}

// cancel keeps the rows of both sides that have no equal row. It reads next from the side that is less
// far beyond the latest pair of equal rows, so that the sides stay together where rows were added or
// removed.
func (c *comparison) cancel(ctx context.Context, batches [2]chan []entry, free chan<- []entry) error {
	w := newWindow(c.window, c.spills)
	var read, paired [2]int64 // number of rows, and that of the row of the latest pair
	for batches[0] != nil || batches[1] != nil {
		side := 0
		if batches[0] == nil || batches[1] != nil && read[1]-paired[1] < read[0]-paired[0] {
			side = 1
		}
		batch, ok := <-batches[side]
		if !ok {
			batches[side] = nil
			continue
		}
		for _, e := range batch {
			other, err := w.add(side, e, read[side])
			if err != nil {
				return err
			}
			if other >= 0 {
				paired[side], paired[1-side] = read[side], other
			}
			read[side]++
		}
		select {
		case free <- batch[:0]:
		default:
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.flush()
}
