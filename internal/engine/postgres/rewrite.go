package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// A dump is masked as a stream: its table of contents is copied, and the rows of every table are
// rewritten. Masking needs no server, and no original value leaves this machine.

var _ engine.Rewriter = Engine{}

// tableData describes the data of one table in the dump.
type tableData struct {
	schema, name string
	columns      []string
	definitions  []string // see engine.Shape
}

// openDump reads the header and the table of contents. It returns the tables by the numbers of the
// entries with their data, and these numbers in order.
func openDump(d *dumpReader) (tables map[int]tableData, order []int, err error) {
	d.header()
	entries := d.contents()
	if errors.Is(d.err, errLargeContents) {
		return nil, nil, errLargeContents
	}
	if d.err != nil {
		return nil, nil, engine.CannotMask("the dump has an unknown version", d.err)
	}
	tables = map[int]tableData{}
	defined := definitionsOf(entries)
	d.composites = d.compositesOf(entries)
	for _, e := range entries {
		switch e.desc {
		case "TABLE DATA":
			as, columns, err := parseCopy(e.copy)
			if err != nil {
				return nil, nil, engine.CannotMask("the data of the table "+e.tag+" is not in COPY format", err)
			}
			for i, c := range columns {
				columns[i] = d.stored.Label(c)
			}
			tables[e.id] = tableData{schema: e.namespace, name: e.tag, columns: columns,
				definitions: append(defined[as], defined[e.namespace+"\x00"+e.tag]...)}
			order = append(order, e.id)
		case "STATISTICS DATA":
			return nil, nil, engine.CannotMask(
				"the dump contains the planner's statistics, which contain values of rows", nil)
		}
	}
	return tables, order, nil
}

// definitionsOf returns the SQL of indexes and checks by table. The key for indexes is the table as
// CREATE INDEX writes it. The key for checks is the schema and the table with a NUL between them.
func definitionsOf(entries []dumpEntry) map[string][]string {
	all := map[string][]string{}
	for _, e := range entries {
		switch e.desc {
		case "INDEX":
			table, _ := indexedTable(e.definition)
			all[table] = append(all[table], e.definition)
		case "TABLE", "CHECK CONSTRAINT":
			name := e.tag
			if e.desc == "CHECK CONSTRAINT" { // its tag is "table constraint"
				name, _, _ = strings.Cut(e.tag, " ")
			}
			for line := range strings.Lines(e.definition) {
				if _, check, ok := strings.Cut(line, " CHECK ("); ok {
					key := e.namespace + "\x00" + name
					all[key] = append(all[key], "CHECK ("+strings.TrimSpace(check))
				}
			}
		}
	}
	return all
}

// Inspect implements [engine.Rewriter].
func (Engine) Inspect(ctx context.Context, dump engine.Dump, samples int, o engine.Options) (engine.Contents, error) {
	in, err := dump.Open()
	if err != nil {
		return engine.Contents{}, err
	}
	defer in.Close()
	d := newDumpReader(ctx, dump, in)
	tables, order, err := openDump(d)
	if err != nil {
		return engine.Contents{}, err
	}
	c := engine.Contents{Composites: d.composites, Stored: func(value string) []string {
		b, _ := d.stored.Bytes(value) // it was decoded from this charset
		return []string{b}
	}}
	at := map[int]int{}
	for _, id := range order {
		at[id] = len(c.Tables)
		c.Tables = append(c.Tables, shapeOf(tables[id], dump.Info.Tables))
	}
	err = d.blocks(func(kind byte, id int) error {
		i, ok := at[id]
		if kind == blockData && ok {
			return sampleRows(d, &c.Tables[i], samples, o)
		}
		c.LargeObjects += d.skip(kind)
		return nil
	})
	return c, err
}

// shapeOf returns a table's shape, from the dump and the manifest.
func shapeOf(t tableData, known []engine.Table) engine.Shape {
	s := engine.Shape{Schema: t.schema, Name: t.name, Samples: make([][]string, len(t.columns)),
		Definitions: t.definitions}
	types := map[string]engine.Column{}
	for _, k := range known {
		if k.Schema == t.schema && k.Name == t.name {
			for _, c := range k.Columns {
				types[c.Name] = c
			}
		}
	}
	for _, name := range t.columns {
		c := types[name]
		c.Name = name
		s.Columns = append(s.Columns, c)
	}
	return s
}

// sampleRows collects values from a table's rows until each column has enough samples. It passes
// every value that is not NULL to the function that o.Observe returns for the column, if any.
func sampleRows(d *dumpReader, s *engine.Shape, limit int, o engine.Options) error {
	lines, wanting := &lineReader{d: d}, len(s.Columns)
	observers, all := o.Observers(s.Schema, s.Name, s.Columns)
	full := make([]bool, len(s.Columns))
	sampled := make([]map[string]bool, len(s.Columns)) // the short fields of each column
	for i := range sampled {
		sampled[i] = map[string]bool{}
	}
	for {
		line, err := lines.next()
		if err != nil || line == nil {
			return err
		}
		if wanting == 0 && !all {
			return lines.rest()
		}
		for i := 0; ; i++ {
			field, rest, more := bytes.Cut(line, []byte("\t"))
			if i >= len(s.Columns) {
				return engine.CannotMask("a row of the table "+s.Name+" has too many fields", nil)
			}
			if observers[i] != nil && string(field) != `\N` {
				observers[i](d.stored.Text(unescape(field)))
			}
			if !full[i] && !sampled[i][string(field)] && string(field) != `\N` {
				if len(field) <= maxCachedField {
					sampled[i][string(field)] = true
				}
				s.Samples[i] = engine.AddSample(s.Samples[i], d.stored.Text(unescape(field)), limit)
				if full[i] = engine.EnoughSamples(s.Samples[i], limit); full[i] {
					wanting--
				}
			}
			if line = rest; !more {
				break
			}
		}
	}
}

// Rewrite implements [engine.Rewriter].
func (Engine) Rewrite(ctx context.Context, dump engine.Dump, p engine.Plan, w io.Writer,
	o engine.Options) (engine.Info, error) {
	in, err := dump.Open()
	if err != nil {
		return engine.Info{}, err
	}
	defer in.Close()
	out := bufio.NewWriterSize(&engine.Counter{W: w, O: o, Of: dump.Size}, 1<<20)
	d := newDumpReader(ctx, dump, in)
	d.echo, d.schema = &bytes.Buffer{}, p.Schema
	tables, _, err := openDump(d)
	if err != nil {
		return engine.Info{}, err
	}
	head := d.echo.Bytes()
	d.echo = nil
	if _, err := out.Write(head); err != nil {
		return engine.Info{}, err
	}
	counts := map[[2]string]tally{}
	r := &rewriter{d: d, out: out, plan: p, tables: tables, counts: counts}
	if err := r.check(); err != nil {
		return engine.Info{}, err
	}
	if err := r.blocks(r.table); err != nil {
		return engine.Info{}, err
	}
	info := dump.Info
	info.Tables = merge(dump.Info.Tables, counts)
	for _, t := range dump.Info.Tables {
		if _, dumped := counts[[2]string{t.Schema, t.Name}]; !dumped && t.Rows == 0 { // its rows were left out
			info.Tables = append(info.Tables, t)
		}
	}
	engine.Sort(info.Tables)
	return info, out.Flush()
}

type rewriter struct {
	d      *dumpReader
	out    *bufio.Writer
	plan   engine.Plan
	tables map[int]tableData
	counts map[[2]string]tally
	wrote  int64 // bytes of chunks written
}

// tally is the number and size of a table's rows.
type tally struct{ rows, bytes int64 }

// tally returns the tally of a table. before is the value of wrote before the table's rows were
// written.
func (r *rewriter) tally(rows, before int64) tally {
	return tally{rows, max(0, r.wrote-before-int64(len(endOfRows)))}
}

// check returns an error if the plan does not cover all data. It runs before any rows are written.
func (r *rewriter) check() error {
	for _, t := range r.tables {
		if _, _, err := r.plan.Masks(t.schema, t.name, t.columns); err != nil {
			return err
		}
		r.counts[[2]string{t.schema, t.name}] = tally{}
	}
	return nil
}

// blocks writes the head of every block, and the blocks of large objects. For each block with a
// table's data, it calls rows with the number of the entry.
func (r *rewriter) blocks(rows func(id int) error) error {
	return r.d.blocks(func(kind byte, id int) error { return r.block(kind, id, rows) })
}

func (r *rewriter) block(kind byte, id int, rows func(id int) error) error {
	if err := r.out.WriteByte(kind); err != nil {
		return err
	}
	r.int(id)
	if kind == blockObjects {
		return r.objects()
	}
	return rows(id)
}

// table writes the masked rows of the table whose data is in an entry.
func (r *rewriter) table(id int) error {
	t, ok := r.tables[id]
	if !ok {
		return engine.CannotMask("it contains data that belongs to no table", nil)
	}
	masks, drop, err := r.plan.Masks(t.schema, t.name, t.columns)
	if err != nil {
		return err
	}
	fields, err := r.fieldMasks(t, masks)
	if err != nil {
		return err
	}
	before := r.wrote
	rows, err := r.rows(fields, drop)
	if err != nil {
		return err
	}
	r.counts[[2]string{t.schema, t.name}] = r.tally(rows, before)
	return nil
}

// rows writes the masked rows of a table's block and returns their number.
func (r *rewriter) rows(fields []*fieldMask, drop bool) (rows int64, err error) {
	if !drop && !slices.ContainsFunc(fields, func(m *fieldMask) bool { return m != nil }) {
		return r.copyRows()
	}
	lines, chunk := &lineReader{d: r.d}, make([]byte, 0, 128<<10)
	for {
		line, err := lines.next()
		if err != nil {
			return rows, err
		}
		if line == nil {
			break
		}
		if drop {
			continue
		}
		rows++
		if chunk, err = maskLine(chunk, line, fields); err != nil {
			return rows, err
		}
		if len(chunk) > chunkSize {
			r.chunk(chunk)
			chunk = chunk[:0]
		}
	}
	r.chunk(append(chunk, endOfRows...))
	r.int(0)
	return rows, nil
}

// maskLine appends a row with its masks applied. A field with a nil mask is copied unchanged.
func maskLine(out, line []byte, masks []*fieldMask) (_ []byte, err error) {
	if len(masks) == 0 {
		return append(append(out, line...), '\n'), nil
	}
	whole := line
	for i := 0; ; i++ {
		field, rest, more := bytes.Cut(line, []byte("\t"))
		if i >= len(masks) || !more && i != len(masks)-1 {
			return out, engine.CannotMask("the fields of a row do not match its table's columns", nil)
		}
		if masks[i] == nil || string(field) == `\N` {
			out = append(out, field...)
		} else if out, err = masks[i].append(out, field, whole); err != nil {
			return out, err
		}
		if !more {
			return append(out, '\n'), nil
		}
		out, line = append(out, '\t'), rest
	}
}

// fieldMask masks the fields of one column. It caches some results, because many columns have few
// different values. It must not be used by several goroutines.
type fieldMask struct {
	column string // as shown in errors
	stored *charset.Charset
	mask   engine.Mask
	row    *engine.BoundMask // replaces mask if it is not nil
	seed   maphash.Seed
	cache  [256]struct {
		known         bool
		field, masked []byte
	}
}

// maxCachedField is the length of the longest cached field.
const maxCachedField = 256

// fieldMasks returns the mask of each column of a table, nil for columns that are not masked.
func (r *rewriter) fieldMasks(t tableData, masks []engine.Mask) ([]*fieldMask, error) {
	rows, err := r.plan.RowMasks(t.schema, t.name, t.columns)
	if err != nil {
		return nil, err
	}
	all := make([]*fieldMask, len(masks))
	for i, m := range masks {
		if m != nil {
			all[i] = &fieldMask{column: t.schema + "." + t.name + "." + t.columns[i], stored: r.d.stored, mask: m,
				seed: maphash.MakeSeed()}
			if len(rows) > 0 {
				all[i].row = rows[i]
			}
		}
	}
	return all, nil
}

// append appends the masked value of a field that is not \N. row is the field's row.
func (m *fieldMask) append(out, field, row []byte) ([]byte, error) {
	if m.row != nil {
		mask, err := m.forRow(row)
		if err != nil {
			return nil, err
		}
		return m.appendMasked(out, field, mask)
	}
	if len(field) > maxCachedField {
		return m.appendMasked(out, field, m.mask)
	}
	k := &m.cache[maphash.Bytes(m.seed, field)%uint64(len(m.cache))]
	if !k.known || !bytes.Equal(k.field, field) {
		masked, err := m.appendMasked(k.masked[:0], field, m.mask)
		if err != nil {
			return nil, err
		}
		k.known, k.field, k.masked = true, append(k.field[:0], field...), masked
	}
	return append(out, k.masked...), nil
}

// forRow returns the mask for a row.
func (m *fieldMask) forRow(row []byte) (engine.Mask, error) {
	fields := bytes.Split(row, []byte("\t"))
	return m.row.For(func(at int) (*string, error) {
		if at >= len(fields) || string(fields[at]) == `\N` {
			return nil, nil
		}
		text := m.stored.Text(unescape(fields[at]))
		return &text, nil
	})
}

func (m *fieldMask) appendMasked(out, field []byte, mask engine.Mask) ([]byte, error) {
	value, null := mask(m.stored.Text(unescape(field)))
	if null {
		return append(out, `\N`...), nil
	}
	value, err := m.stored.Bytes(value)
	if err != nil {
		return nil, snap.Invalid(fmt.Sprintf("the mask of %s produces text that the database cannot store: %v",
			m.column, err), "choose a mask or a value whose characters exist in the database's encoding")
	}
	return appendEscaped(out, value), nil
}

// objects copies a block of large objects, or empties it.
func (r *rewriter) objects() error {
	for {
		oid := r.d.int()
		if r.d.err != nil {
			return r.d.err
		}
		if r.plan.KeepLargeObjects || oid == 0 {
			r.int(oid)
		}
		if oid == 0 {
			return nil
		}
		r.d.chunks(func(p []byte) {
			if r.plan.KeepLargeObjects {
				r.chunk(p)
			}
		})
		if r.plan.KeepLargeObjects {
			r.int(0)
		}
	}
}

// chunk writes a chunk in the dump's format. If it cannot be written, reading stops.
func (r *rewriter) chunk(p []byte) {
	r.wrote += int64(len(p))
	if len(p) > 0 {
		r.int(len(p))
		if _, err := r.out.Write(p); err != nil {
			r.d.fail(err)
		}
	}
}

// int writes a number in the dump's format. The next chunk or the final flush reports its error.
func (r *rewriter) int(n int) {
	_, _ = r.out.Write([]byte{0, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
}
