package diff

import (
	"context"
	"errors"
	"slices"

	"snap/internal/engine"
)

// Row is one row that differs. Before and After have a value for each of the columns; nil is NULL.
// Before is nil for an added row, and After for a removed one.
type Row struct {
	Change        Kind
	Before, After []*string
}

// Rows holds the rows of one table that differ.
type Rows struct {
	Columns []string // the columns that exist on both sides
	Key     []string // the columns of the primary key by which rows are matched; nil if there is none
	Rows    []Row
	More    int64 // number of differing rows beyond the limit, or beyond 16 MiB of values
}

// ErrNoTable means that a table is missing on at least one side.
var ErrNoTable = errors.New("the table is missing on at least one side")

// newDifferingRows begins to collect the wanted rows. It returns nil if none are wanted.
func (c *comparison) newDifferingRows(want *Wanted, before Side) (*differingRows, error) {
	if want == nil {
		return nil, nil //nolint:nilnil // no rows are wanted
	}
	f := &differingRows{table: c.index(want.Table), limit: int64(want.Limit), pairs: map[identity]*pair{}}
	if f.table < 0 || !c.tables[f.table].shared {
		return nil, ErrNoTable
	}
	f.describe(c, before)
	return f, nil
}

// note records the rows of an identity. If they would exceed the limit, it only counts them.
func (f *differingRows) note(id identity, removed, added, changed int64) {
	n := removed + added + changed
	if f.size+n > f.limit {
		f.Rows.More += n
		return
	}
	f.size += n
	f.pairs[id] = &pair{size: n, left: [2]int64{removed + changed, added + changed}}
}

// rows reads the values of the noted rows on both sides.
func (f *differingRows) rows(ctx context.Context, c *comparison, sides ...Opener) (*Rows, error) {
	for i, open := range sides {
		if err := f.read(ctx, c, i, open); err != nil {
			return nil, err
		}
	}
	f.pairUp()
	return &f.Rows, nil
}

// index returns the index of a table, or -1.
func (c *comparison) index(name [2]string) int {
	return slices.IndexFunc(c.tables, func(t comparedTable) bool { return [2]string{t.Schema, t.Name} == name })
}

// differingRows holds the rows that differ while their values are read.
type differingRows struct {
	Rows

	table int
	limit int64
	size  int64 // number of noted rows
	bytes int   // of the values that were read
	pairs map[identity]*pair
	order []identity // in the order of the dumps
}

// pair holds the rows of one identity that differ.
type pair struct {
	size   int64    // number of rows
	left   [2]int64 // for each side, number of rows still to be read
	values [2][][]*string
}

func (f *differingRows) describe(c *comparison, side Side) {
	t := c.tables[f.table]
	columns := side.Tables()[slices.Index(c.at[0], f.table)].Columns
	for _, at := range t.columns[0] {
		f.Columns = append(f.Columns, columns[at].Name)
	}
	for _, at := range t.key[0] {
		f.Key = append(f.Key, columns[at].Name)
	}
}

// read reads the values of the noted rows on one side.
func (f *differingRows) read(ctx context.Context, c *comparison, side int, open Opener) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // it was only read
	var buf []byte
	return s.Rows(ctx, func(table int, fields [][]byte) error {
		if c.at[side][table] != f.table {
			return nil
		}
		row, key := c.encode(buf[:0], side, f.table, fields)
		id := c.identify(row[:key])
		buf = row
		p := f.pairs[id]
		if p == nil || p.left[side] == 0 {
			return nil
		}
		p.left[side]--
		for _, at := range c.tables[f.table].columns[side] {
			f.bytes += len(fields[at])
		}
		if f.bytes > maxBytes {
			f.omit(id)
			return nil
		}
		if len(p.values[0])+len(p.values[1]) == 0 {
			f.order = append(f.order, id)
		}
		var values []*string
		for _, at := range c.tables[f.table].columns[side] {
			values = append(values, textOf(s, fields[at]))
		}
		p.values[side] = append(p.values[side], values)
		return nil
	})
}

// maxBytes limits the total size of the values in the listed rows.
const maxBytes = 16 << 20

// omit counts the rows of an identity among those that are not listed.
func (f *differingRows) omit(id identity) {
	f.Rows.More += f.pairs[id].size
	delete(f.pairs, id)
	f.order = slices.DeleteFunc(f.order, func(o identity) bool { return o == id })
}

func textOf(r engine.Reading, field []byte) *string {
	if field == nil {
		return nil
	}
	text := r.Text(field)
	return &text
}

func (f *differingRows) pairUp() {
	for _, id := range f.order {
		before, after := f.pairs[id].values[0], f.pairs[id].values[1]
		for i := range max(len(before), len(after)) {
			switch {
			case i >= len(before):
				f.Rows.Rows = append(f.Rows.Rows, Row{Change: Added, After: after[i]})
			case i >= len(after):
				f.Rows.Rows = append(f.Rows.Rows, Row{Change: Removed, Before: before[i]})
			default:
				f.Rows.Rows = append(f.Rows.Rows, Row{Changed, before[i], after[i]})
			}
		}
	}
}
