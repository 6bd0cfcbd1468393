package engine

import "context"

// DumpReader is an engine that can read the content of a dump without a server.
type DumpReader interface {
	// ReadDump opens a dump for reading. It may unpack the dump into o.TempDir. The caller must
	// close the result.
	ReadDump(ctx context.Context, d Dump, o Options) (Reading, error)
}

// Reading reads a dump once, from its start to its end.
type Reading interface {
	// Tables returns the tables that have rows in the dump, with the columns of those rows.
	Tables() []Table

	// Definitions returns the SQL in the dump that defines objects. It is empty if the definitions
	// were not read.
	Definitions() []Definition

	// Rows calls the function see for each row, with the index of its table in Tables and one field
	// for each of the table's columns. Rows of different tables can alternate. NULL is a nil field.
	// Two fields of the same column have equal values if and only if their bytes are equal. The
	// fields are valid until see returns.
	Rows(ctx context.Context, see func(table int, fields [][]byte) error) error

	// Text returns a field as UTF-8 for display. The field must not be nil.
	Text(field []byte) string

	// Close frees the resources of the reading.
	Close() error
}

// Definition is the SQL that defines one object. Kind is its SQL name, singular and in lower case;
// On is the table that it belongs to, if any.
type Definition struct {
	Kind, Schema, Name, On string
	Text                   string
}
