package engine

import (
	"context"
	"fmt"
	"io"
	"slices"

	"snap"
	"snap/internal/schema"
)

// Rewriter is an engine that can mask the values in a dump by column.
type Rewriter interface {
	// Inspect returns every table and column of a dump, with up to the given number of sampled
	// values per column, see [EnoughSamples]. It may leave unpacked data in o.TempDir for a
	// Rewrite of the same dump with the same folder.
	Inspect(ctx context.Context, d Dump, samples int, o Options) (Contents, error)

	// Rewrite writes the dump to w with the plan applied. It fails if the plan does not cover every
	// table and column of the dump. Its output contains no trace of masked or dropped values.
	Rewrite(ctx context.Context, d Dump, p Plan, w io.Writer, o Options) (Info, error)
}

// Contents describes the content of a dump.
type Contents struct {
	Tables       []Shape
	LargeObjects int // number of large objects, to which no column rule applies

	Schema *schema.Schema // the dump's description, if it has one

	// Composites are the fields of PostgreSQL's composite types, by schema and name.
	Composites map[[2]string][]Column

	// Stored returns the possible encoded forms of a sampled value in the dump. Nil means that
	// values are stored as they are.
	Stored func(value string) []string
}

// Shape is a table and those of its columns that store values.
type Shape struct {
	Schema, Name string
	Columns      []Column
	Samples      [][]string // by column: distinct values as UTF-8 text, without NULL

	// Definitions are the SQL definitions of the table's indexes and checks, if the dump stores
	// them separately. The definition of a check begins with the word CHECK.
	Definitions []string
}

// Column is one column of a table.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"` // as the database writes it
	NotNull bool   `json:"not_null,omitempty"`

	Generated bool `json:"generated,omitempty"` // in MySQL and MariaDB: computed, so not in the rows of the dump
}

// Mask replaces a value that is not NULL with another one, or with NULL. Both values are UTF-8 if
// the dump's encoding is known. A byte that is not part of a character is a rune of the private use
// area, or remains unchanged.
type Mask func(value string) (masked string, null bool)

// Plan defines how every table of a dump is treated, by schema and name.
type Plan struct {
	Tables           map[[2]string]TablePlan
	KeepLargeObjects bool // if false, large objects are emptied

	// Schema is called with the SQL of every object of the schema, in the dump's encoding, before
	// the SQL is written. The function may overwrite bytes of sql, but not change its length. kind
	// is the SQL name of the object's kind, in lower case. Schema itself may be nil.
	Schema func(kind, name string, sql []byte)
}

// TablePlan defines how a table is treated. Columns has an entry for every column. A column with a
// nil Mask is not masked.
type TablePlan struct {
	DropRows bool
	Columns  map[string]Mask
	Permuted []string // unique columns in which a masked value can be the original of another row

	// Rows are the masks that depend on other columns of the row. They replace the masks in
	// Columns.
	Rows map[string]RowMask
}

// Changes reports whether the plan masks any column of a table.
func (p Plan) Changes(schema, table string) bool {
	t := p.Tables[[2]string{schema, table}]
	for _, mask := range t.Columns {
		if mask != nil {
			return true
		}
	}
	return len(t.Rows) > 0
}

// RowMask is a mask that needs the original values of other columns of its row. others are those
// values in the order of Needs, nil for NULL.
type RowMask struct {
	Needs []string // names of columns
	Mask  func(value string, others []*string) (masked string, null bool)
}

// BoundMask is a row mask with the positions of the columns that it needs.
type BoundMask struct {
	RowMask
	At []int // positions, in the order of Needs
}

// For returns the mask for a row. text returns the value at a position, nil for NULL.
func (m BoundMask) For(text func(at int) (*string, error)) (Mask, error) {
	others := make([]*string, len(m.At))
	for i, at := range m.At {
		var err error
		if others[i], err = text(at); err != nil {
			return nil, err
		}
	}
	return func(v string) (string, bool) { return m.Mask(v, others) }, nil
}

// RowMasks returns the row masks of the columns, in order, with nil for columns without one. If the
// table has none, the list is nil. It fails if a mask needs a column that is missing.
func (p Plan) RowMasks(schema, table string, columns []string) ([]*BoundMask, error) {
	rows := p.Tables[[2]string{schema, table}].Rows
	if len(rows) == 0 {
		return nil, nil
	}
	all := make([]*BoundMask, len(columns))
	for i, c := range columns {
		row, ok := rows[c]
		if !ok {
			continue
		}
		all[i] = &BoundMask{RowMask: row}
		for _, need := range row.Needs {
			at := slices.Index(columns, need)
			if at < 0 {
				return nil, uncovered(snap.TableName(schema, table) + "." + need)
			}
			all[i].At = append(all[i].At, at)
		}
	}
	return all, nil
}

// Masks returns the masks of the columns, in order, and whether the table's rows are dropped. It
// fails if the plan does not cover the table or a column.
func (p Plan) Masks(schema, table string, columns []string) (masks []Mask, drop bool, err error) {
	t, ok := p.Tables[[2]string{schema, table}]
	if !ok {
		return nil, false, uncovered(snap.TableName(schema, table))
	}
	masks = make([]Mask, len(columns))
	for i, c := range columns {
		mask, ok := t.Columns[c]
		if !ok {
			return nil, false, uncovered(snap.TableName(schema, table) + "." + c)
		}
		masks[i] = mask
	}
	return masks, t.DropRows, nil
}

// CannotMask returns the error for a dump that rules cannot mask.
func CannotMask(why string, cause error) error {
	return &snap.Error{Code: snap.CodeInvalid, Detail: "the snapshot cannot be masked by rules: " + why,
		Hint: "rebuild it with this version of snapcli, or mask it with a SQL file", Cause: cause}
}

func uncovered(what string) error {
	return &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf("no rule covers %s", what),
		Hint: "give it a rule, or list it under keep"}
}

// AddSample adds a value to the samples of a column, unless it is already one of them or the column
// has enough samples.
func AddSample(samples []string, value string, limit int) []string {
	if EnoughSamples(samples, limit) || slices.Contains(samples, value) {
		return samples
	}
	return append(samples, value)
}

// EnoughSamples reports whether a column needs no more samples: their number has reached the limit,
// or their total size exceeds 1 MiB.
func EnoughSamples(samples []string, limit int) bool {
	if len(samples) >= limit {
		return true
	}
	size := 0
	for _, s := range samples {
		size += len(s)
	}
	return size > 1<<20
}
