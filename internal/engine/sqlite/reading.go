package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"snap/internal/engine"
	"snap/internal/engine/charset"
)

var _ engine.DumpReader = Engine{}

// dumpReading implements [engine.Reading]. The dump is unpacked into a scratch file.
type dumpReading struct {
	scratch     *scratch
	db          *sql.DB
	tables      []engine.Table // with the names as they are in the file
	definitions []engine.Definition
}

// ReadDump implements [engine.DumpReader]. The definitions of a foreign dump are not read.
func (Engine) ReadDump(ctx context.Context, dump engine.Dump, o engine.Options) (engine.Reading, error) {
	s, err := unpack(ctx, dump, o)
	if err != nil {
		return nil, err
	}
	r := &dumpReading{scratch: s}
	if r.db, err = s.open(ctx, "ro"); err == nil {
		err = r.open(ctx, dump.Trust != engine.Foreign)
	}
	if err != nil {
		return nil, errors.Join(failure(s.path, unreadable(err)), r.Close())
	}
	return r, nil
}

func (r *dumpReading) open(ctx context.Context, defined bool) error {
	all, err := tables(ctx, r.db)
	if err == nil {
		all, err = withoutShadows(ctx, r.db, all)
	}
	if err != nil {
		return err
	}
	r.tables = slices.DeleteFunc(all, func(t engine.Table) bool { return len(t.Columns) == 0 })
	if !defined {
		return nil
	}
	entries, err := entriesOf(ctx, r.db)
	for _, e := range entries {
		if e.sql == "" || e.internal() {
			continue
		}
		definition := engine.Definition{Kind: e.kind, Name: charset.Readable(e.name), Text: charset.Readable(e.sql)}
		if e.kind == "index" || e.kind == "trigger" {
			definition.On = charset.Readable(e.table)
		}
		r.definitions = append(r.definitions, definition)
	}
	return err
}

// Tables implements [engine.Reading].
func (r *dumpReading) Tables() []engine.Table { return labeled(r.tables) }

// Definitions implements [engine.Reading].
func (r *dumpReading) Definitions() []engine.Definition { return r.definitions }

// Rows implements [engine.Reading].
func (r *dumpReading) Rows(ctx context.Context, see func(table int, fields [][]byte) error) error {
	for i, t := range r.tables {
		if err := r.table(ctx, t, func(fields [][]byte) error { return see(i, fields) }); err != nil {
			return failure(r.scratch.path, unreadable(err))
		}
	}
	return nil
}

// table reads the rows of one table. It uses the driver directly, because it needs the stored type
// of each value.
func (r *dumpReading) table(ctx context.Context, t engine.Table, see func(fields [][]byte) error) error {
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = "+" + quote(c.Name) // the + removes the declared type, so that the driver converts no value
	}
	query := "SELECT " + strings.Join(names, ", ") + " FROM " + quote(t.Name)
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(raw any) error {
		q, ok := raw.(driver.QueryerContext)
		if !ok {
			return errors.New("the driver cannot run queries")
		}
		rows, err := q.QueryContext(ctx, query, nil)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // the rows were only read
		values, fields, buf := make([]driver.Value, len(names)), make([][]byte, len(names)), []byte(nil)
		for {
			if err := rows.Next(values); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			buf = buf[:0]
			for i, v := range values {
				start := len(buf)
				if fields[i] = nil; v == nil {
					continue
				}
				buf = appendValue(buf, v)
				fields[i] = buf[start:len(buf):len(buf)]
			}
			if err := see(fields); err != nil {
				return err
			}
		}
	})
}

// The first byte of a field is the storage class of its value.
const (
	storedInteger = 'i'
	storedReal    = 'r'
	storedText    = 't'
	storedBlob    = 'b'
)

// appendValue appends a value with its storage class.
func appendValue(out []byte, v driver.Value) []byte {
	switch v := v.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(out, storedInteger), uint64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(out, storedReal), math.Float64bits(v))
	case []byte:
		return append(append(out, storedBlob), v...)
	case string:
		return append(append(out, storedText), v...)
	}
	return append(append(out, storedText), fmt.Sprint(v)...)
}

// Text implements [engine.Reading].
func (r *dumpReading) Text(field []byte) string {
	if len(field) == 0 {
		return ""
	}
	kind, content := field[0], field[1:]
	switch {
	case kind == storedInteger && len(content) == 8:
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(content)), 10)
	case kind == storedReal && len(content) == 8:
		return strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(content)), 'g', -1, 64)
	case kind == storedBlob:
		return "0x" + hex.EncodeToString(content)
	}
	return charset.Readable(string(content))
}

// Close implements [engine.Reading].
func (r *dumpReading) Close() error {
	var err error
	if r.db != nil {
		err = r.db.Close()
	}
	r.scratch.remove()
	return err
}
