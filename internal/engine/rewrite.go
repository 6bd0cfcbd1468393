package engine

import (
	"context"
	"fmt"
	"io"

	"snap"
	"snap/internal/schema"
)

// Rewriter is an engine that can mask the values in a dump by column.
type Rewriter interface {
	// Inspect returns every table and column of a dump, with up to a number of
	// sampled values of each column. It may leave what it unpacked in
	// o.TempDir, for Rewrite of the same dump in the same folder.
	Inspect(ctx context.Context, d Dump, samples int, o Options) (Contents, error)

	// Rewrite writes the dump to w with the plan applied. It fails when the
	// plan does not name every table and column of the dump. No trace of a
	// value that was masked or dropped is in what it wrote.
	Rewrite(ctx context.Context, d Dump, p Plan, w io.Writer, o Options) (Info, error)
}

// Contents is what a dump holds.
type Contents struct {
	Tables       []Shape
	LargeObjects int // how many large objects, which no column rule reaches

	Schema *schema.Schema // the dump's description, when it has one

	// Stored returns the bytes that a sampled value may stand as in the dump, which
	// may be in another encoding; nil when they are the value's own.
	Stored func(value string) []string
}

// Shape is a table with its columns, as far as they hold values of their own.
type Shape struct {
	Schema, Name string
	Columns      []Column
	Samples      [][]string // by column: distinct values as UTF-8 text, without NULL

	// Definitions are the SQL of the table's indexes, and of its checks from the
	// word CHECK, as far as the dump has them as texts of their own.
	Definitions []string
}

// Column is one column of a table.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"` // as the database writes it
	NotNull bool   `json:"not_null,omitempty"`

	Generated bool `json:"generated,omitempty"` // computed, but present in the rows of the dump
}

// Mask replaces a value that is not NULL by another, or by NULL. Both are UTF-8 where the dump's
// encoding is known; a byte
// of it that is no character is one of the private use area, or stands as it is.
type Mask func(value string) (masked string, null bool)

// Plan says what becomes of every table of a dump, by schema and name.
type Plan struct {
	Tables           map[[2]string]TablePlan
	KeepLargeObjects bool // else they are emptied
}

// TablePlan says what becomes of a table. Columns has an entry for every
// column; a nil Mask keeps it.
type TablePlan struct {
	DropRows bool
	Columns  map[string]Mask
	Permuted []string // columns whose masked values can be other rows' originals, and that are unique
}

// Masks returns the masks for the columns in their order, and whether there is
// any.
func (p Plan) Masks(schema, table string, columns []string) (masks []Mask, drop bool, err error) {
	t, ok := p.Tables[[2]string{schema, table}]
	if !ok {
		return nil, false, uncovered(Table{Schema: schema, Name: table}.label())
	}
	masks = make([]Mask, len(columns))
	for i, c := range columns {
		mask, ok := t.Columns[c]
		if !ok {
			return nil, false, uncovered(Table{Schema: schema, Name: table}.label() + "." + c)
		}
		masks[i] = mask
	}
	return masks, t.DropRows, nil
}

func uncovered(what string) error {
	return &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf("no rule covers %s", what),
		Hint: "give it a rule, or keep it explicitly"}
}

// AddSample notes a value as a sample, when there are not enough yet and it is
// not one already.
func AddSample(samples []string, value string, most int) []string {
	if len(samples) >= most {
		return samples
	}
	for _, s := range samples {
		if s == value {
			return samples
		}
	}
	return append(samples, value)
}
