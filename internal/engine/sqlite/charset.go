package sqlite

import (
	"context"
	"encoding/binary"
	"slices"
	"unicode/utf16"

	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// SQLite allows any bytes in names. Messages and manifests show such names as readable labels.

// labeled returns the tables with all names and column types as readable labels.
func labeled(all []engine.Table) []engine.Table {
	all = slices.Clone(all)
	for i, t := range all {
		all[i].Name, all[i].Columns = charset.Readable(t.Name), labels(t.Columns)
	}
	return all
}

func labels(columns []engine.Column) []engine.Column {
	columns = slices.Clone(columns)
	for i, c := range columns {
		columns[i].Name, columns[i].Type = charset.Readable(c.Name), charset.Readable(c.Type)
	}
	return columns
}

// storedIn returns a function that lists the encoded forms in which the file can store a string. It
// returns nil if the file's encoding is UTF-8.
func storedIn(ctx context.Context, q querier) (func(value string) []string, error) {
	var encoding string
	if err := q.QueryRowContext(ctx, "PRAGMA encoding").Scan(&encoding); err != nil {
		return nil, err
	}
	var order binary.AppendByteOrder
	switch encoding {
	case "UTF-16le":
		order = binary.LittleEndian
	case "UTF-16be":
		order = binary.BigEndian
	default:
		return nil, nil //nolint:nilnil // nil means UTF-8
	}
	return func(value string) []string {
		var b []byte
		for _, unit := range utf16.Encode([]rune(value)) {
			b = order.AppendUint16(b, unit)
		}
		return []string{string(b), value} // a blob can contain UTF-8
	}, nil
}
