package mysql

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"

	"snap"
	"snap/internal/engine"
)

// A dump is masked as a stream: the rows of its INSERT statements are written
// anew. No server is needed, and no original leaves this machine.

var _ engine.Rewriter = Engine{}

var number10 = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$`)

// columnsOf returns the columns of the tables, as the manifest tells them.
func columnsOf(dump engine.Dump) (map[string][]engine.Column, error) {
	all := map[string][]engine.Column{}
	for _, t := range dump.Info.Tables {
		if len(t.Columns) == 0 {
			return nil, cannotMask("it does not tell the columns of the table "+t.Name, nil)
		}
		all[t.Name] = t.Columns
	}
	return all, nil
}

func cannotMask(why string, cause error) error {
	return &snap.Error{Code: snap.CodeInvalid, Detail: "the snapshot cannot be masked by rules: " + why, Hint: "build it again with this snapcli, or mask it with a SQL file", Cause: cause}
}

// agreeing returns the columns of a table's rows, in their order: all of them,
// or those that the statement lists, which must be the ones that are not
// generated.
func agreeing(known map[string][]engine.Column, table string, listed []string) ([]engine.Column, error) {
	columns, ok := known[table]
	if !ok {
		return nil, changed(table)
	}
	if listed == nil {
		return columns, nil
	}
	own := withoutGenerated(columns)
	if len(listed) != len(own) {
		return nil, changed(table)
	}
	for i, c := range own {
		if listed[i] != c.Name {
			return nil, changed(table)
		}
	}
	return own, nil
}

func changed(table string) error {
	return cannotMask("the table "+table+" changed while it was built", nil)
}

func withoutGenerated(columns []engine.Column) []engine.Column {
	return slices.DeleteFunc(slices.Clone(columns), func(c engine.Column) bool { return c.Generated })
}

// Inspect implements [engine.Rewriter].
func (Engine) Inspect(ctx context.Context, dump engine.Dump, samples int, _ engine.Options) (engine.Contents, error) {
	var c engine.Contents
	known, err := columnsOf(dump)
	if err != nil {
		return c, err
	}
	at := map[string]int{}
	for i, t := range dump.Info.Tables {
		at[t.Name] = i
		own := withoutGenerated(t.Columns)
		c.Tables = append(c.Tables, engine.Shape{Name: t.Name, Columns: own, Samples: make([][]string, len(own))})
	}
	in, err := dump.Open()
	if err != nil {
		return c, err
	}
	defer in.Close()
	_, tables, err := split(engine.Reader(ctx, in))
	if err != nil {
		return c, err
	}
	var now *engine.Shape
	var columns []engine.Column
	w := walker{r: bufio.NewReaderSize(tables, 1<<20), out: bufio.NewWriter(io.Discard)}
	w.begin = func(table string, listed []string) (_ bool, err error) {
		columns, err = agreeing(known, table, listed)
		now = &c.Tables[at[table]]
		return false, err
	}
	w.row = func(fields [][]byte) error {
		if len(fields) != len(columns) {
			return changed(now.Name)
		}
		return sampleRow(now, columns, fields, samples)
	}
	return c, w.walk()
}

// sampleRow notes a row's values as samples.
func sampleRow(s *engine.Shape, columns []engine.Column, fields [][]byte, most int) error {
	at := -1
	for i, f := range fields {
		if columns[i].Generated {
			continue
		}
		if at++; len(s.Samples[at]) >= most {
			continue
		}
		text, kind, err := value(f)
		if err != nil {
			return badDump(err)
		}
		if kind != isNull {
			s.Samples[at] = engine.AddSample(s.Samples[at], text, most)
		}
	}
	return nil
}

// Rewrite implements [engine.Rewriter].
func (Engine) Rewrite(ctx context.Context, dump engine.Dump, p engine.Plan, out io.Writer, o engine.Options) (engine.Info, error) {
	known, err := columnsOf(dump)
	if err != nil {
		return engine.Info{}, err
	}
	in, err := dump.Open()
	if err != nil {
		return engine.Info{}, err
	}
	defer in.Close()
	parts, tables, err := split(engine.Reader(ctx, in))
	if err != nil {
		return engine.Info{}, err
	}
	line, err := json.Marshal(parts)
	if err != nil {
		return engine.Info{}, fmt.Errorf("write the dump: %w", err)
	}
	buffered := bufio.NewWriterSize(&engine.Counter{W: out, O: o, Of: dump.Size}, 1<<20)
	if _, err := fmt.Fprintf(buffered, "%s%s\n", programsMark, line); err != nil {
		return engine.Info{}, err
	}
	m := masker{plan: p, known: known, rows: map[string]int64{}}
	for table := range known { // also those without a row must be covered
		if _, err := m.begin(table, nil); err != nil {
			return engine.Info{}, err
		}
	}
	w := walker{r: bufio.NewReaderSize(tables, 1<<20), out: buffered, begin: m.begin, row: m.row}
	if err := w.walk(); err != nil {
		return engine.Info{}, err
	}
	info := dump.Info
	info.Tables = append([]engine.Table(nil), dump.Info.Tables...)
	for i, t := range info.Tables {
		info.Tables[i].Rows = m.rows[t.Name]
	}
	return info, nil
}

// masker applies a plan to rows.
type masker struct {
	plan    engine.Plan
	known   map[string][]engine.Column
	rows    map[string]int64
	table   string
	columns []engine.Column
	masks   []engine.Mask // of the columns that are not generated
}

func (m *masker) begin(table string, listed []string) (drop bool, err error) {
	if m.columns, err = agreeing(m.known, table, listed); err != nil {
		return false, err
	}
	var names []string
	for _, c := range withoutGenerated(m.columns) {
		names = append(names, c.Name)
	}
	m.table = table
	m.masks, drop, err = m.plan.Masks("", table, names)
	return drop, err
}

func (m *masker) row(fields [][]byte) error {
	if len(fields) != len(m.columns) {
		return changed(m.table)
	}
	m.rows[m.table]++
	at := -1
	for i, c := range m.columns {
		if c.Generated { // computed from values that may have been masked
			fields[i] = []byte("DEFAULT")
			continue
		}
		if at++; m.masks[at] == nil {
			continue
		}
		text, kind, err := value(fields[i])
		if err != nil {
			return badDump(err)
		}
		if kind == isNull {
			continue
		}
		if masked, null := m.masks[at](text); null {
			fields[i] = []byte("NULL")
		} else {
			fields[i] = literalOf(masked, kind)
		}
	}
	return nil
}
