package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
)

var _ engine.DumpReader = Engine{}

// objects is the table that represents large objects in a reading: one row for each, with the
// SHA-256 of its content.
var objects = engine.Table{Schema: "pg_catalog", Name: "pg_largeobject",
	Columns: []engine.Column{{Name: "loid", Type: "oid"}, {Name: "sha256", Type: "text"}}}

// dumpReading implements [engine.Reading].
type dumpReading struct {
	in          io.Closer
	d           *dumpReader
	tables      []engine.Table
	at          map[int]int // indexes of tables, by the number of the entry with their data
	definitions []engine.Definition
}

// ReadDump implements [engine.DumpReader].
func (Engine) ReadDump(ctx context.Context, dump engine.Dump, _ engine.Options) (engine.Reading, error) {
	in, err := dump.Open()
	if err != nil {
		return nil, err
	}
	r := &dumpReading{in: in, at: map[int]int{}, d: newDumpReader(ctx, dump, in)}
	if err := r.open(dump.Info.Tables); err != nil {
		in.Close()
		return nil, err
	}
	return r, nil
}

func (r *dumpReading) open(known []engine.Table) error {
	r.d.header()
	entries := r.d.contents()
	if errors.Is(r.d.err, errLargeContents) {
		return errLargeContents
	}
	if r.d.err != nil {
		return cannotRead("its dump has an unknown version", r.d.err)
	}
	for _, e := range entries {
		if e.desc == "TABLE DATA" {
			_, columns, err := parseCopy(e.copy)
			if err != nil {
				return cannotRead("the data of the table "+e.tag+" is not in COPY format", err)
			}
			for i, c := range columns {
				columns[i] = r.d.stored.Label(c)
			}
			shape := shapeOf(tableData{schema: e.namespace, name: e.tag, columns: columns}, known)
			r.at[e.id] = len(r.tables)
			r.tables = append(r.tables, engine.Table{Schema: shape.Schema, Name: shape.Name, Columns: shape.Columns})
		} else if definition, ok := r.d.definitionOf(e); ok {
			r.definitions = append(r.definitions, definition)
		}
	}
	if slices.ContainsFunc(entries, func(e dumpEntry) bool { return strings.HasPrefix(e.desc, "BLOB") }) {
		r.at[largeObjects] = len(r.tables)
		r.tables = append(r.tables, objects)
	}
	return nil
}

// largeObjects is the key of the large objects in dumpReading.at. No entry has this number.
const largeObjects = -1

// nonObjects are the kinds of entries that define no object of the schema: data, privileges,
// comments and settings of the session.
var nonObjects = []string{"ACL", "BLOB", "BLOBS", "BLOB METADATA", "COMMENT", "DATABASE", "DATABASE PROPERTIES",
	"DEFAULT ACL", "ENCODING", "SEARCHPATH", "SECURITY LABEL", "SEQUENCE SET", "STDSTRINGS", "STATISTICS DATA"}

// definitionOf returns the definition in an entry of the table of contents, if it has one.
func (d *dumpReader) definitionOf(e dumpEntry) (engine.Definition, bool) {
	if slices.Contains(nonObjects, e.desc) || e.definition == "" {
		return engine.Definition{}, false
	}
	one := engine.Definition{Kind: strings.ToLower(e.desc), Schema: e.namespace, Name: e.tag,
		Text: d.stored.Text(e.definition)}
	switch e.desc {
	case "CONSTRAINT", "CHECK CONSTRAINT", "FK CONSTRAINT", "DEFAULT", "TRIGGER", "RULE", "POLICY":
		if table, name, ok := strings.Cut(e.tag, " "); ok { // its tag is "table name"
			one.On, one.Name = table, name
		}
	}
	return one, true
}

func cannotRead(why string, cause error) error {
	return &snap.Error{Code: snap.CodeInvalid, Detail: "the rows in the snapshot cannot be read: " + why,
		Hint: "rebuild it with this version of snapcli", Cause: cause}
}

// Tables implements [engine.Reading].
func (r *dumpReading) Tables() []engine.Table { return r.tables }

// Definitions implements [engine.Reading].
func (r *dumpReading) Definitions() []engine.Definition { return r.definitions }

// Text implements [engine.Reading].
func (r *dumpReading) Text(field []byte) string { return r.d.stored.Text(unescape(field)) }

// Close implements [engine.Reading].
func (r *dumpReading) Close() error { return r.in.Close() }

// Rows implements [engine.Reading].
func (r *dumpReading) Rows(_ context.Context, see func(table int, fields [][]byte) error) error {
	return r.d.blocks(func(kind byte, id int) error {
		if kind == blockObjects {
			return r.objects(see)
		}
		at, ok := r.at[id]
		if !ok {
			return cannotRead("it contains data that belongs to no table", nil)
		}
		return r.table(at, see)
	})
}

// table reads the rows of one table.
func (r *dumpReading) table(at int, see func(int, [][]byte) error) error {
	lines, fields := &lineReader{d: r.d}, make([][]byte, 0, len(r.tables[at].Columns))
	for {
		line, err := lines.next()
		if err != nil || line == nil {
			return err
		}
		if fields = splitRow(fields[:0], line); len(r.tables[at].Columns) == 0 {
			fields = fields[:0]
		}
		if len(fields) != len(r.tables[at].Columns) {
			return cannotRead("the fields of a row do not match the columns of the table "+r.tables[at].Name, nil)
		}
		if err := see(at, fields); err != nil {
			return err
		}
	}
}

// splitRow appends the fields of a row of COPY's text format to fields. A field that is \N is nil.
func splitRow(fields [][]byte, line []byte) [][]byte {
	for more := true; more; {
		var field []byte
		if field, line, more = bytes.Cut(line, []byte("\t")); string(field) == `\N` {
			field = nil
		} else if field == nil {
			field = []byte{}
		}
		fields = append(fields, field)
	}
	return fields
}

// objects reads a block of large objects.
func (r *dumpReading) objects(see func(int, [][]byte) error) error {
	at, ok := r.at[largeObjects]
	if !ok {
		return cannotRead("it contains large objects that it does not list", nil)
	}
	for oid := r.d.int(); oid != 0 && r.d.err == nil; oid = r.d.int() {
		sum := sha256.New()
		r.d.chunks(func(p []byte) { sum.Write(p) })
		if r.d.err != nil {
			break
		}
		fields := [][]byte{strconv.AppendInt(nil, int64(oid), 10), hex.AppendEncode(nil, sum.Sum(nil))}
		if err := see(at, fields); err != nil {
			return err
		}
	}
	return r.d.err
}
