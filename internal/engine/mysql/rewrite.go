package mysql

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"snap/internal/engine"
)

// A dump is masked as a stream: the rows of its INSERT statements are rewritten. Masking needs no
// server, and no original value leaves this machine.

var _ engine.Rewriter = Engine{}

var numberPattern = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$`)

// columnsOf returns the columns of each table, from the manifest.
func columnsOf(dump engine.Dump) (map[string][]engine.Column, error) {
	all := map[string][]engine.Column{}
	for _, t := range dump.Info.Tables {
		if len(t.Columns) == 0 {
			return nil, engine.CannotMask("it does not list the columns of the table "+t.Name, nil)
		}
		all[t.Name] = t.Columns
	}
	return all, nil
}

// matchColumns returns the columns of a statement's rows: the columns of its table that are not
// generated. It excludes the two columns of a period that may follow, because no rule applies to
// the times of a row.
func matchColumns(known map[string][]engine.Column, parts structure, s statement) ([]engine.Column, error) {
	columns, ok := known[s.table]
	own := withoutGenerated(columns)
	if !ok || !slices.Equal(append(columnNames(own), parts.periodOf(s.table)...), s.columns) {
		return nil, errTableAltered(s.table)
	}
	return own, nil
}

func errTableAltered(table string) error {
	return engine.CannotMask("the table "+table+" changed during the build", nil)
}

func withoutGenerated(columns []engine.Column) []engine.Column {
	return slices.DeleteFunc(slices.Clone(columns), func(c engine.Column) bool { return c.Generated })
}

func columnNames(columns []engine.Column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// Inspect implements [engine.Rewriter].
func (Engine) Inspect(ctx context.Context, dump engine.Dump, samples int, o engine.Options) (engine.Contents, error) {
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
	parts, tables, err := splitHead(engine.Reader(ctx, in), headLimit(dump))
	if err != nil {
		return c, err
	}
	c.Stored = storedIn(parts.charsets())
	for {
		s, err := next(tables, rowLimit(dump))
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		columns, err := matchColumns(known, parts, s)
		if err != nil {
			return c, err
		}
		if err := sampleRows(&c.Tables[at[s.table]], columns, s, samples, o); err != nil {
			return c, err
		}
	}
}

// sampleRows collects values from a statement's rows until each column has enough samples. It
// passes every value that is not NULL to the function that o.Observe returns for the column, if
// any.
func sampleRows(t *engine.Shape, columns []engine.Column, s statement, limit int, o engine.Options) error {
	every, all := o.Observers("", t.Name, columns)
	var fields [][]byte
	var err error
	for line := range rowsOf(s.rows) {
		enough := true
		for _, seen := range t.Samples {
			enough = enough && engine.EnoughSamples(seen, limit)
		}
		if enough && !all {
			return nil
		}
		if fields, err = fieldsOf(line, fields); err != nil {
			return err
		}
		if len(fields) != len(s.columns) && len(s.columns) > 0 {
			return errTableAltered(s.table)
		}
		for i := range columns {
			text, kind, err := value(fields[i])
			if err != nil {
				return badDump(err)
			}
			if kind != kindNull && every[i] != nil {
				every[i](text)
			}
			if kind != kindNull {
				t.Samples[i] = engine.AddSample(t.Samples[i], text, limit)
			}
		}
	}
	return nil
}

// rowsOf yields the rows of a statement, without the separators.
func rowsOf(rows []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(rows) {
			if !yield(line[:max(0, len(line)-len(",\n"))]) {
				return
			}
		}
	}
}

// Rewrite implements [engine.Rewriter]. It masks several statements at a time and writes them in
// order.
func (Engine) Rewrite(ctx context.Context, dump engine.Dump, p engine.Plan, out io.Writer,
	o engine.Options) (engine.Info, error) {
	known, err := columnsOf(dump)
	if err != nil {
		return engine.Info{}, err
	}
	in, err := dump.Open()
	if err != nil {
		return engine.Info{}, err
	}
	defer in.Close()
	parts, tables, err := splitHead(engine.Reader(ctx, in), headLimit(dump))
	if err != nil {
		return engine.Info{}, err
	}
	parts.rewriteSchema(p.Schema)
	line, err := json.Marshal(parts)
	if err != nil {
		return engine.Info{}, fmt.Errorf("write the dump: %w", err)
	}
	counted := &engine.Counter{W: out, O: o, Of: dump.Size}
	if _, err := fmt.Fprintf(counted, "%s%s\n", head, line); err != nil {
		return engine.Info{}, err
	}
	m := masker{limit: rowLimit(dump), plan: p, known: known, parts: parts, rows: map[string]int64{},
		bytes: map[string]int64{}}
	for table := range known { // tables without rows need rules too
		if _, err := m.masks(table); err != nil {
			return engine.Info{}, err
		}
	}
	if err := m.run(ctx, tables, counted, max(1, o.Jobs)); err != nil {
		return engine.Info{}, err
	}
	info := dump.Info
	info.Tables = append([]engine.Table(nil), dump.Info.Tables...)
	for i, t := range info.Tables {
		info.Tables[i].Rows, info.Tables[i].Bytes = m.rows[t.Name], m.bytes[t.Name]
	}
	return info, nil
}

// masker applies a plan to statements.
type masker struct {
	limit int // maximum bytes of a statement
	plan  engine.Plan
	known map[string][]engine.Column
	parts structure
	rows  map[string]int64
	bytes map[string]int64
}

// tableMasks are the masks of a table's columns that are not generated.
type tableMasks struct {
	drop    bool
	columns []engine.Mask
	rows    []*engine.BoundMask // by column, or empty
	members []*members          // by column
}

func (m *masker) masks(table string) (all tableMasks, err error) {
	var names []string
	for _, c := range withoutGenerated(m.known[table]) {
		names, all.members = append(names, c.Name), append(all.members, membersOf(table, c))
	}
	if all.columns, all.drop, err = m.plan.Masks("", table, names); err == nil {
		all.rows, err = m.plan.RowMasks("", table, names)
	}
	return all, err
}

// maskOf returns the mask of a field of a row.
func (m tableMasks) maskOf(i int, fields [][]byte) (engine.Mask, error) {
	if i >= len(m.rows) || m.rows[i] == nil {
		return m.columns[i], nil
	}
	return m.rows[i].For(func(at int) (*string, error) {
		text, kind, err := value(fields[at])
		switch {
		case err != nil:
			return nil, badDump(err)
		case kind == kindNull:
			return nil, nil
		}
		return &text, nil
	})
}

// maskedStatement is the result of masking one statement.
type maskedStatement struct {
	table string
	text  []byte
	err   error
}

// run masks up to jobs statements at a time, in bounded memory.
func (m *masker) run(ctx context.Context, in *bufio.Reader, out io.Writer, jobs int) error {
	g, ctx := errgroup.WithContext(ctx)
	order, slots := make(chan chan maskedStatement, jobs), make(chan struct{}, jobs)
	g.Go(func() error {
		defer close(order)
		for {
			s, err := next(in, m.limit)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			masks, err := m.masksOf(s)
			if err != nil {
				return err
			}
			if masks.drop {
				continue
			}
			m.rows[s.table] += s.count
			done := make(chan maskedStatement, 1)
			select {
			case order <- done:
			case <-ctx.Done():
				return ctx.Err()
			}
			slots <- struct{}{}
			go func() {
				text, err := mask(s, masks)
				done <- maskedStatement{s.table, text, err}
				<-slots
			}()
		}
	})
	g.Go(func() error {
		for done := range order {
			r := <-done
			if r.err != nil {
				return r.err
			}
			m.bytes[r.table] += int64(len(r.text))
			if _, err := out.Write(r.text); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// masksOf returns the masks of a statement.
func (m *masker) masksOf(s statement) (tableMasks, error) {
	if _, err := matchColumns(m.known, m.parts, s); err != nil {
		return tableMasks{}, err
	}
	masks, err := m.masks(s.table)
	masks.columns = append(masks.columns, make([]engine.Mask, len(s.columns)-len(masks.columns))...)
	masks.members = append(masks.members, make([]*members, len(s.columns)-len(masks.members))...)
	return masks, err
}

// mask returns the SQL of a statement with its rows masked.
func mask(s statement, masks tableMasks) ([]byte, error) {
	out := append(make([]byte, 0, len(s.start)+len(s.rows)+len(s.rows)/4), s.start...)
	if !slices.ContainsFunc(masks.columns, func(m engine.Mask) bool { return m != nil }) {
		return append(out, s.rows...), nil
	}
	var fields [][]byte
	var err error
	for line := range bytes.Lines(s.rows) {
		end := max(0, len(line)-len(",\n"))
		if fields, err = fieldsOf(line[:end], fields); err != nil {
			return nil, err
		}
		if len(fields) != len(masks.columns) {
			return nil, errTableAltered(s.table)
		}
		out = append(out, '(')
		for i, f := range fields {
			if i > 0 {
				out = append(out, ',')
			}
			mask, err := masks.maskOf(i, fields)
			if err != nil {
				return nil, err
			}
			if out, err = appendMasked(out, f, mask, masks.members[i]); err != nil {
				return nil, err
			}
		}
		out = append(append(out, ')'), line[end:]...)
	}
	return out, nil
}

func appendMasked(out, literal []byte, mask engine.Mask, of *members) ([]byte, error) {
	if mask == nil {
		return append(out, literal...), nil
	}
	text, kind, err := value(literal)
	if err != nil {
		return nil, badDump(err)
	}
	if kind == kindNull {
		return append(out, literal...), nil
	}
	now, null := mask(text)
	if null {
		return append(out, "NULL"...), nil
	}
	if n, err := strconv.ParseUint(now, 10, 64); err == nil && kind == kindBits {
		return fmt.Appendf(out, "0x%0*x", len(literal)-len("0x"), n), nil
	}
	return literalOf(out, now, kind), of.check(text, now)
}

// maxForeign limits the size in bytes of a statement in a dump from elsewhere. In a load, the
// server's limit applies instead. A quarter of maxForeign limits the size of the first line. A
// statement and the first line are held in memory.
const maxForeign = 64 << 20

func rowLimit(dump engine.Dump) int {
	if dump.Trust == engine.Mine {
		return maxStatement
	}
	return maxForeign
}

func headLimit(dump engine.Dump) int {
	if dump.Trust == engine.Mine {
		return maxHead
	}
	return maxForeign / 4
}
