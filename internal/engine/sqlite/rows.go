package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"snap"
	"snap/internal/engine/charset"
	"snap/internal/schema"
)

// layout describes how a file stores a table's rows, and into which columns they are inserted.
type layout struct {
	rowid   string   // a name for the rowid; "" if there is none
	alias   int      // index of the stored value that is NULL because it is the rowid, or -1
	stored  int      // maximum number of values in a row
	insert  []int    // indexes of the stored values to insert, without the rowid
	columns []string // by position in insert: the name of the value's column
	keyed   bool     // the table is WITHOUT ROWID
	needed  int      // minimum number of values in a row; a shorter row would need a default that is a program
}

// layoutOf returns the layout of a table. Virtual generated columns are not stored, and a table
// WITHOUT ROWID stores its key first.
func layoutOf(d definition) layout {
	l := layout{alias: -1, keyed: d.Options[withoutRowid] != ""}
	order := make([]int, 0, len(d.Columns)) // the columns in stored order
	if l.keyed {
		order = keyOrder(d)
	}
	for i := range d.Columns {
		if !d.virtual[i] && !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	l.stored = len(order)
	alias := d.rowidAlias()
	for at, column := range order {
		c := d.Columns[column]
		switch {
		case column == alias:
			l.alias, l.rowid = at, c.Name
		case !c.Computed:
			l.insert, l.columns = append(l.insert, at), append(l.columns, c.Name)
		}
		if slices.ContainsFunc(d.programs, func(p schema.Program) bool {
			return p.Kind == "default" && p.Name.Name == c.Name
		}) {
			l.needed = at + 1
		}
	}
	if !l.keyed && alias < 0 {
		l.rowid = freeRowid(d)
	}
	return l
}

func keyOrder(d definition) []int {
	var order []int
	for _, k := range d.Keys {
		for _, c := range k.Columns {
			if at := d.indexOf(c.Name); k.Primary && !slices.Contains(order, at) {
				order = append(order, at)
			}
		}
	}
	return order
}

// freeRowid returns a name for the rowid that no column has, or "" if columns have all such names.
func freeRowid(d definition) string {
	for _, name := range []string{"rowid", "_rowid_", "oid"} {
		if d.indexOf(name) < 0 {
			return name
		}
	}
	return ""
}

// statement returns a statement that inserts n rows with the given number of stored values.
func (l layout) statement(table string, values, n int) string {
	var names []string
	if l.rowid != "" {
		names = append(names, quote(l.rowid))
	}
	for i, at := range l.insert {
		if at < values {
			names = append(names, quote(l.columns[i]))
		}
	}
	if len(names) == 0 {
		return "INSERT OR ABORT INTO " + quote(table) + " DEFAULT VALUES"
	}
	row := "(?" + strings.Repeat(",?", len(names)-1) + ")"
	return "INSERT OR ABORT INTO " + quote(table) + " (" + strings.Join(names, ",") + ") VALUES " + row +
		strings.Repeat(","+row, n-1)
}

// The limits of a batch, which is a group of rows that one statement can insert.
const (
	batchRows   = 64
	batchValues = 2000
	batchBytes  = 256 << 10
	batches     = 4 // in flight at a time
)

// batch is a group of rows on the way from the reader to the inserter.
type batch struct {
	values []driver.NamedValue
	rows   int
	stored int    // number of values in each row
	bytes  []byte // the blobs of the rows
	size   int    // approximate size of the rows
}

// copyRows inserts the rows of a tree into a table. One goroutine reads and another inserts.
func (b *builder) copyRows(ctx context.Context, table string, root int64, l layout) error {
	label := charset.Readable(table)
	full, free := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		free <- &batch{}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(full)
		r := &rowReader{builder: b, layout: l, full: full, free: free}
		return r.read(ctx, uint32(root))
	})
	g.Go(func() error {
		return b.conn.Raw(func(conn any) error {
			in := &inserter{conn: conn.(driver.ConnPrepareContext), table: table, layout: l,
				statements: map[[2]int]driver.StmtExecContext{}}
			defer in.close()
			for batch := range full {
				if err := in.insert(batch); err != nil {
					return err
				}
				b.inserted(label, batch.rows, batch.size)
				free <- batch
			}
			return nil
		})
	})
	return g.Wait()
}

// maxRows returns the maximum number of rows in a batch.
func (l layout) maxRows() int { return max(1, min(batchRows, batchValues/(len(l.insert)+1))) }

// rowReader reads rows into batches.
type rowReader struct {
	*builder
	layout
	full   chan<- *batch
	free   chan *batch
	next   *batch // nil if no batch has been started
	values []any  // of the current row
}

func (r *rowReader) read(ctx context.Context, root uint32) error {
	row := func(rowid int64, payload []byte) error { return r.row(ctx, rowid, payload) }
	var err error
	if r.keyed {
		err = r.file.Keys(root, func(payload []byte) error { return row(0, payload) })
	} else {
		err = r.file.Rows(root, row)
	}
	if err == nil && r.next != nil {
		err = r.send(ctx)
	}
	return err
}

// errNoDefault is the error for a row from before ALTER TABLE added a column. The row has no value
// for the column, and the description lacks the default.
var errNoDefault = &snap.Error{
	Code:   snap.CodeInvalid,
	Detail: "the snapshot is from somebody else, and its rows need a default that cannot be loaded",
	Hint:   "to load it anyway, trust its owner",
}

// row adds a row to the batch. It sends the batch when it is full, or when the next row has a
// different number of values.
func (r *rowReader) row(ctx context.Context, rowid int64, payload []byte) error {
	var err error
	if r.values, err = r.file.Values(r.values[:0], payload, r.stored); err != nil {
		return err
	}
	if len(r.values) < r.needed && !r.withPrograms {
		return errNoDefault
	}
	if r.next != nil && (r.next.stored != len(r.values) || r.next.rows >= r.maxRows() ||
		r.next.size+len(payload) > batchBytes) {
		if err := r.send(ctx); err != nil {
			return err
		}
	}
	if r.next == nil {
		select {
		case r.next = <-r.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		*r.next = batch{values: r.next.values[:0], bytes: r.next.bytes[:0], stored: len(r.values)}
	}
	r.next.size += len(payload)
	r.add(rowid)
	if r.next.size > batchBytes {
		return r.send(ctx) // before the payload becomes invalid, because it was not copied
	}
	return nil
}

func (r *rowReader) add(rowid int64) {
	n := r.next
	n.rows++
	put := func(v any) { n.values = append(n.values, driver.NamedValue{Ordinal: len(n.values) + 1, Value: v}) }
	if r.rowid != "" {
		put(rowid)
	}
	for _, at := range r.insert {
		if at >= len(r.values) {
			break
		}
		v := r.values[at]
		if blob, ok := v.([]byte); ok && n.size <= batchBytes {
			start := len(n.bytes)
			n.bytes = append(n.bytes, blob...)
			if len(blob) == 0 {
				n.bytes = append(n.bytes, 0)[:start] // an empty blob must not be nil
			}
			v = n.bytes[start:len(n.bytes):len(n.bytes)]
		}
		put(v)
	}
}

func (r *rowReader) send(ctx context.Context) error {
	large := r.next.size > batchBytes
	select {
	case r.full <- r.next:
		r.next = nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if large {
		return r.wait(ctx)
	}
	return nil
}

// wait waits until all batches are inserted and frees their memory, so that only one large row is
// in memory at a time.
func (r *rowReader) wait(ctx context.Context) error {
	for range batches {
		select {
		case <-r.free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range batches {
		r.free <- &batch{}
	}
	return nil
}

// inserter inserts batches with prepared statements.
type inserter struct {
	conn       driver.ConnPrepareContext
	table      string
	layout     layout
	statements map[[2]int]driver.StmtExecContext // by the numbers of stored values and of rows
}

// maxStatements is the maximum number of prepared statements. A hostile table can have rows with as
// many different lengths as it has columns.
const maxStatements = 40

func (in *inserter) insert(b *batch) error {
	if b.rows == in.layout.maxRows() && len(b.values) > 0 { // DEFAULT VALUES inserts only one row
		return in.run(b.stored, b.rows, b.values)
	}
	width := len(b.values) / b.rows
	for i := range b.rows {
		row := b.values[i*width : (i+1)*width]
		for j := range row {
			row[j].Ordinal = j + 1
		}
		if err := in.run(b.stored, 1, row); err != nil {
			return err
		}
	}
	return nil
}

func (in *inserter) run(stored, rows int, values []driver.NamedValue) error {
	key := [2]int{stored, rows}
	s, ok := in.statements[key]
	if !ok {
		if len(in.statements) >= maxStatements {
			in.close()
		}
		prepared, err := in.conn.PrepareContext(context.Background(), in.layout.statement(in.table, stored, rows))
		if err != nil {
			return err
		}
		if s, ok = prepared.(driver.StmtExecContext); !ok {
			return errors.New("the driver cannot run statements")
		}
		in.statements[key] = s
	}
	// This context is never canceled, because the driver would otherwise start a goroutine for each
	// statement. The rowReader checks the caller's context between batches.
	if _, err := s.ExecContext(context.Background(), values); err != nil {
		return fmt.Errorf("table %s: %w", in.table, err)
	}
	return nil
}

func (in *inserter) close() {
	for key, s := range in.statements {
		if c, ok := s.(driver.Stmt); ok {
			_ = c.Close() // an error would repeat that of the last execution
		}
		delete(in.statements, key)
	}
}
