// Package diff compares the content of two databases of one engine: the objects of their schemas,
// and the rows of their tables as sets.
//
// It reads both sides once, in parallel, and keeps hashes of the rows for which the other side has
// no equal row at about the same position. Large numbers of rows are kept in temporary files, so
// that memory use does not grow with the databases.
package diff

import (
	"context"

	"snap/internal/engine"
	"snap/internal/schema"
)

// Side is one of the two databases.
type Side struct {
	engine.Reading

	Schema *schema.Schema // the description of its schema; nil if there is none
}

// Result lists the differences between two databases. Equal objects and tables have no entries.
type Result struct {
	Schema []Change
	Tables []Table // tables with different rows, in the order of their names
}

// Equal reports whether there are no differences.
func (r Result) Equal() bool { return len(r.Schema) == 0 && len(r.Tables) == 0 }

// Kind is the kind of a difference.
type Kind string

// The kinds of differences.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Table counts the rows of a table that differ. A row is changed if both sides have a row with its
// primary key and another column has a different value. Without a common primary key, a changed
// row counts as one removed and one added row. Only columns that exist on both sides are compared.
type Table struct {
	Schema, Name            string
	Before, After           int64 // number of rows
	Added, Removed, Changed int64
	Keyed                   bool // rows are matched by the primary key
}

// Opener opens a side. The rows of a side can be read only once.
type Opener func(context.Context) (Side, error)

// Wanted requests the differing rows of one table, which is given by schema and name.
type Wanted struct {
	Table [2]string
	Limit int // maximum number of rows
}

// Compare compares two databases. Temporary files are created in dir. If want is not nil, Compare
// reads each side a second time and also returns the differing rows of the wanted table, which must
// exist on both sides.
func Compare(ctx context.Context, before, after Opener, want *Wanted, dir string) (Result, *Rows, error) {
	b, err := before(ctx)
	if err != nil {
		return Result{}, nil, err
	}
	defer b.Close() //nolint:errcheck // it was only read
	a, err := after(ctx)
	if err != nil {
		return Result{}, nil, err
	}
	defer a.Close() //nolint:errcheck // it was only read
	c, err := newComparison(b, a, dir)
	if err != nil {
		return Result{}, nil, err
	}
	defer c.close()
	f, err := c.newDifferingRows(want, b)
	if err != nil {
		return Result{}, nil, err
	}
	r, err := c.compare(ctx, b, a, f)
	if err != nil || f == nil {
		return r, nil, err
	}
	rows, err := f.rows(ctx, c, before, after)
	return r, rows, err
}

// compare reads both sides and counts the rows that differ. It records those of a wanted table in
// f.
func (c *comparison) compare(ctx context.Context, before, after Side, f *differingRows) (Result, error) {
	if err := c.read(ctx, before, after); err != nil {
		return Result{}, err
	}
	c.countTables()
	err := c.differences(func(table int, id identity, removed, added, changed int64) {
		t := &c.tables[table]
		t.Removed, t.Added, t.Changed = t.Removed+removed, t.Added+added, t.Changed+changed
		if f != nil && f.table == table {
			f.note(id, removed, added, changed)
		}
	})
	if err != nil {
		return Result{}, err
	}
	r := Result{Schema: compareSchemas(before, after)}
	for _, t := range c.tables {
		if t.Added+t.Removed+t.Changed > 0 {
			r.Tables = append(r.Tables, t.Table)
		}
	}
	return r, nil
}

// countTables sets the numbers of rows of all tables. If a table exists on one side only, all of its
// rows were added or removed.
func (c *comparison) countTables() {
	for at := range c.tables {
		t := &c.tables[at]
		t.Before, t.After = c.counts[0][at], c.counts[1][at]
		if !t.shared {
			t.Removed, t.Added = t.Before, t.After
		}
	}
}
