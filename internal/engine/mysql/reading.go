package mysql

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"snap"
	"snap/internal/engine"
)

var _ engine.DumpReader = Engine{}

// dumpReading implements [engine.Reading].
type dumpReading struct {
	in     io.Closer
	rows   *bufio.Reader
	limit  int // maximum bytes of a statement
	parts  structure
	tables []engine.Table
	at     map[string]int // indexes of tables by name
}

// ReadDump implements [engine.DumpReader].
func (Engine) ReadDump(ctx context.Context, dump engine.Dump, _ engine.Options) (engine.Reading, error) {
	in, err := dump.Open()
	if err != nil {
		return nil, err
	}
	parts, rows, err := splitHead(engine.Reader(ctx, in), headLimit(dump))
	if err != nil {
		in.Close()
		return nil, err
	}
	r := &dumpReading{in: in, rows: rows, limit: rowLimit(dump), parts: parts, at: map[string]int{}}
	for _, t := range dump.Info.Tables {
		columns := withoutGenerated(t.Columns)
		for _, name := range parts.periodOf(t.Name) {
			columns = append(columns, engine.Column{Name: name, Type: "timestamp(6)"})
		}
		r.at[t.Name] = len(r.tables)
		r.tables = append(r.tables, engine.Table{Name: t.Name, Columns: columns})
	}
	return r, nil
}

// Tables implements [engine.Reading].
func (r *dumpReading) Tables() []engine.Table { return r.tables }

// Definitions implements [engine.Reading].
func (r *dumpReading) Definitions() []engine.Definition {
	var all []engine.Definition
	for _, list := range append([]programList{{"sequence", r.parts.Sequences}, {"table", r.parts.Tables}},
		r.parts.programLists()...) {
		for _, d := range list.definitions {
			one := engine.Definition{Kind: cmp.Or(strings.ToLower(d.Kind), list.kind), Name: d.Name, On: d.On,
				Text: d.SQL}
			if list.kind == "table" {
				one.Text = nextNumber.ReplaceAllString(d.SQL, "")
			}
			all = append(all, one)
		}
	}
	return all
}

// Rows implements [engine.Reading].
func (r *dumpReading) Rows(_ context.Context, see func(table int, fields [][]byte) error) error {
	var fields [][]byte
	for {
		s, err := next(r.rows, r.limit)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at, err := r.tableOf(s)
		if err != nil {
			return err
		}
		for line := range rowsOf(s.rows) {
			if len(s.columns) == 0 {
				fields = fields[:0]
			} else if fields, err = fieldsOf(line, fields); err != nil {
				return err
			}
			if len(fields) != len(s.columns) {
				return errOtherColumns(s.table)
			}
			for i, f := range fields {
				if string(f) == "NULL" {
					fields[i] = nil
				}
			}
			if err := see(at, fields); err != nil {
				return err
			}
		}
	}
}

// tableOf returns the index of the table that a statement's rows belong to. It returns an error if
// the statement has other columns than the table.
func (r *dumpReading) tableOf(s statement) (int, error) {
	at, ok := r.at[s.table]
	if !ok {
		return 0, badDump(fmt.Errorf("it has rows of the unknown table %.80q", s.table))
	}
	if !slices.Equal(columnNames(r.tables[at].Columns), s.columns) {
		return 0, &snap.Error{Code: snap.CodeInvalid,
			Detail: fmt.Sprintf("the snapshot does not list the columns of the table %s, so its rows cannot be read",
				s.table),
			Hint: "rebuild it with this version of snapcli"}
	}
	return at, nil
}

// Text implements [engine.Reading].
func (r *dumpReading) Text(field []byte) string {
	text, kind, err := value(field)
	switch {
	case err != nil || kind == kindBits:
		return string(field)
	case kind == kindBinary:
		return "0x" + hex.EncodeToString([]byte(text))
	}
	return text
}

// Close implements [engine.Reading].
func (r *dumpReading) Close() error { return r.in.Close() }
