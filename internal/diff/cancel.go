package diff

import (
	"bytes"
	"context"

	"golang.org/x/sync/errgroup"
)

// Most rows are equal and in about the same order on both sides. Equal rows cancel each other out
// while they are read. Only the remaining rows are hashed and kept.
const (
	batchRows   = 512
	batchBytes  = 64 << 10
	windowRows  = 1 << 16
	windowSlots = 2 // number of rows in a bucket of the window
)

// batch holds rows of one side, encoded one after the other.
type batch struct {
	bytes []byte
	rows  []encodedRow
}

// encodedRow is a row in a batch. table is the index of its table in comparison.tables, key is the
// end of the bytes that identify the row, and end is the end of the row. The row begins where the
// previous one ends.
type encodedRow struct{ table, key, end int }

// add appends a row of c.tables[table] to the batch.
func (b *batch) add(c *comparison, side, table int, fields [][]byte) {
	var key int
	b.bytes, key = c.encode(b.bytes, side, table, fields)
	b.rows = append(b.rows, encodedRow{table, key, len(b.bytes)})
}

func (b *batch) full() bool { return len(b.rows) >= batchRows || len(b.bytes) >= batchBytes }

// window holds the latest rows of both sides that have had no equal row on the other side so far.
type window struct {
	buckets [][windowSlots]windowRow
	spills  [2]*spill
}

// windowRow is a slot of the window. It holds a row of one side or is empty.
type windowRow struct {
	entry

	side int8 // 0 for an empty slot, 1 and 2 for the sides
	at   int64
}

func newWindow(rows int, spills [2]*spill) *window {
	return &window{buckets: make([][windowSlots]windowRow, rows/windowSlots), spills: spills}
}

// add adds a row of a side; at is the number of the row. If the window has an equal row of the
// other side, add removes that row and returns its number. Otherwise it returns -1. The oldest row
// of a full bucket moves to the spill of its side.
func (w *window) add(side int, e entry, at int64) (other int64, err error) {
	bucket := &w.buckets[(e.identity[1]^e.row)%uint64(len(w.buckets))]
	for i := range bucket {
		if s := &bucket[i]; s.side == int8(2-side) && s.entry == e {
			s.side = 0
			return s.at, nil
		}
	}
	free := windowSlots - 1
	for i := range bucket {
		if bucket[i].side == 0 {
			free = i
			break
		}
	}
	if last := bucket[free]; last.side != 0 {
		err = w.spills[last.side-1].add(last.entry)
	}
	copy(bucket[1:free+1], bucket[:free]) // the newest comes first
	bucket[0] = windowRow{e, int8(side + 1), at}
	return -1, err
}

// flush moves all rows to the spills.
func (w *window) flush() error {
	for i := range w.buckets {
		for _, s := range w.buckets[i] {
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

// read reads the rows of both sides, and keeps those that have not canceled each other out.
func (c *comparison) read(ctx context.Context, before, after Side) error {
	g, ctx := errgroup.WithContext(ctx)
	var batches [2]chan batch
	free := make(chan batch, 8)
	for i, side := range []Side{before, after} {
		batches[i] = make(chan batch, 2)
		g.Go(func() error {
			defer close(batches[i])
			return c.readSide(ctx, i, side, batches[i], free)
		})
	}
	g.Go(func() error { return c.cancel(ctx, batches, free) })
	return g.Wait()
}

// readSide counts the rows of a side, and sends those in common tables in batches. It reuses batches
// that are free.
func (c *comparison) readSide(ctx context.Context, i int, side Side, to chan<- batch, free <-chan batch) error {
	var b batch
	send := func() error {
		select {
		case to <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case b = <-free:
		default:
			b = batch{}
		}
		return nil
	}
	err := side.Rows(ctx, func(table int, fields [][]byte) error {
		at := c.at[i][table]
		c.counts[i][at]++
		if !c.tables[at].shared {
			return nil
		}
		b.add(c, i, at, fields)
		if !b.full() {
			return nil
		}
		return send()
	})
	if err == nil && len(b.rows) > 0 {
		err = send()
	}
	return err
}

// feed is one side while its rows are canceled.
type feed struct {
	batch

	from         <-chan batch
	free         chan<- batch
	next, start  int   // index and start of the next row
	read, paired int64 // how many rows were read so far, and the number of the row in the latest pair of equal rows
}

// more reports whether there is another row. It waits for the next batch.
func (f *feed) more() bool {
	for f.next == len(f.rows) {
		select {
		case f.free <- batch{f.bytes[:0], f.rows[:0]}:
		default:
		}
		f.batch, f.next, f.start = <-f.from, 0, 0
		if f.rows == nil {
			return false
		}
	}
	return true
}

// nextRow returns the next row. There must be one.
func (f *feed) nextRow() []byte { return f.bytes[f.start:f.rows[f.next].end] }

func (f *feed) skipRow() {
	f.start = f.rows[f.next].end
	f.next++
	f.read++
}

// cancel drops equal rows of the two sides, and moves the rows that had no equal row in the window to
// the spills. As long as the next rows of both sides are equal, it compares only their bytes.
func (c *comparison) cancel(ctx context.Context, batches [2]chan batch, free chan<- batch) error {
	w := newWindow(c.window, c.spills)
	sides := [2]feed{{from: batches[0], free: free}, {from: batches[1], free: free}}
	table := -1 // of the latest equal rows
	for {
		side := nextSide(&sides, table)
		if side < 0 {
			break
		}
		f, o := &sides[side], &sides[1-side]
		if o.more() && bytes.Equal(f.nextRow(), o.nextRow()) {
			table, f.paired, o.paired = f.rows[f.next].table, f.read, o.read
			f.skipRow()
			o.skipRow()
			continue
		}
		other, err := w.add(side, c.entry(f.nextRow(), f.rows[f.next].table, f.rows[f.next].key-f.start), f.read)
		if err != nil {
			return err
		}
		if other >= 0 {
			f.paired, o.paired = f.read, other
		}
		f.skipRow()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.flush()
}

// nextSide returns the side to read from, or -1 at the end of both. It chooses the side that is still
// in the table of the latest equal rows, or else the one that has read fewer rows since the latest
// pair. This keeps the sides aligned where rows were added or removed.
func nextSide(sides *[2]feed, table int) int {
	switch before, after := sides[0].more(), sides[1].more(); {
	case !before && !after:
		return -1
	case !before:
		return 1
	case !after:
		return 0
	}
	f, o := &sides[0], &sides[1]
	if at, other := f.rows[f.next].table, o.rows[o.next].table; at != other {
		if at == table {
			return 0
		}
		if other == table {
			return 1
		}
	}
	if o.read-o.paired < f.read-f.paired {
		return 1
	}
	return 0
}
