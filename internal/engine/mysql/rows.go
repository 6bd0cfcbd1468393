package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"snap/internal/engine"
)

// source is a table to read, or a part of one.
type source struct {
	table  *engine.Table
	period []string // the columns of the period of a system-versioned table, if its history is read
	where  string   // for a subset or a part, including WHERE
	order  string   // the rows' storage order, including ORDER BY
	number string   // quoted name of the integer column that the primary key begins with
	size   int64
	rows   int64 // number of rows read
	bytes  int64 // size of these rows in the dump

	charsets map[[2]string]string // of strings that are read as bytes, by table and column
}

// sourcesOf returns the tables, the largest first, so that concurrent connections finish reading at
// about the same time.
func sourcesOf(ctx context.Context, c *sql.Conn, name string, tables []engine.Table) ([]source, error) {
	at, all := map[string]int{}, make([]source, len(tables))
	charsets, err := charsetsOf(ctx, c, name)
	if err != nil {
		return nil, err
	}
	for i := range tables {
		all[i].table, all[i].charsets, at[tables[i].Name] = &tables[i], charsets, i
	}
	rows, err := c.QueryContext(ctx,
		`SELECT t.table_name, coalesce(CAST(t.data_length AS SIGNED), 0), coalesce(s.column_name, ''),
		coalesce(s.seq_in_index = 1 AND c.data_type LIKE '%int', 0) FROM information_schema.tables t
		LEFT JOIN information_schema.statistics s ON s.table_schema = t.table_schema AND s.table_name = t.table_name
			AND s.index_name = 'PRIMARY' AND t.engine = 'InnoDB'
		LEFT JOIN information_schema.columns c ON c.table_schema = s.table_schema AND c.table_name = s.table_name
			AND c.column_name = s.column_name
		WHERE t.table_schema = ? ORDER BY t.table_name, s.seq_in_index`, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		var size int64
		var numbered bool
		if err := rows.Scan(&table, &size, &column, &numbered); err != nil {
			return nil, err
		}
		i, ok := at[table]
		if !ok {
			continue
		}
		all[i].size = size
		if numbered {
			all[i].number = quote(column)
		}
		if column != "" {
			all[i].order += map[bool]string{true: " ORDER BY ", false: ", "}[all[i].order == ""] + quote(column)
		}
	}
	slices.SortStableFunc(all, func(a, b source) int { return cmp.Compare(b.size, a.size) })
	return all, rows.Err()
}

// readTable writes a table's rows as INSERT statements and returns their number and size. It uses a
// prepared statement, whose values arrive in binary, so that no number is rounded for display. The
// rows are read in storage order, which needs no sorting and is fast to load.
func readTable(ctx context.Context, c *sql.Conn, from source, out turn) (n, bytes int64, err error) {
	t := from.table
	own := withoutGenerated(t.Columns)
	var list, selected []string
	forms, versions := from.formsOf(own), ""
	for i, column := range own {
		list, selected = append(list, quote(column.Name)), append(selected, quote(column.Name))
		if forms[i].charset != "" {
			selected[i] = "CAST(" + list[i] + " AS BINARY)"
		}
	}
	if from.period != nil {
		period := []string{quote(from.period[0]), quote(from.period[1])}
		list, selected, forms, versions = append(list, period...), append(selected, period...),
			append(forms, form{kind: kindText}, form{kind: kindPeriodEnd}), " FOR SYSTEM_TIME ALL"
	}
	columns := strings.Join(selected, ",")
	b := batch{ctx: ctx, out: out,
		start: "INSERT INTO " + quote(t.Name) + " (" + strings.Join(list, ",") + ") VALUES\n"}
	if len(list) == 0 { // all columns are generated: only the number of rows matters
		columns, b.start = "1", "INSERT INTO "+quote(t.Name)+" () VALUES\n"
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = c.Raw(func(conn any) (err error) {
		rows, err := query(ctx, conn, "SELECT "+columns+" FROM "+quote(t.Name)+versions+from.where+from.order)
		if err != nil {
			return err
		}
		defer func() {
			if err != nil {
				cancel() // otherwise closing would read all remaining rows
			}
			_ = rows.Close()
		}()
		values := make([]driver.Value, max(1, len(list)))
		for {
			if err := rows.Next(values); errors.Is(err, io.EOF) {
				return b.flush()
			} else if err != nil {
				return err
			}
			n++
			if err := b.add(values[:len(list)], forms); err != nil {
				return err
			}
		}
	})
	switch number(err) {
	case erTableChanged, erNoTable, erNoColumn:
		return n, b.bytes, errSchemaChanged("the table " + t.Name + " was altered or dropped")
	}
	return n, b.bytes, err
}

// query runs a prepared statement on the driver's own connection, because reading rows through
// database/sql is slower.
func query(ctx context.Context, conn any, text string) (driver.Rows, error) {
	prepared, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := prepared.(driver.StmtQueryContext).QueryContext(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, prepared.Close())
	}
	return preparedRows{rows, prepared}, nil
}

// preparedRows closes its statement together with its rows, because a server limits the number of
// prepared statements, and a database may have more tables than that.
type preparedRows struct {
	driver.Rows
	statement driver.Stmt
}

// Close closes the rows and their statement.
func (r preparedRows) Close() error { return errors.Join(r.Rows.Close(), r.statement.Close()) }

// Kinds of values.
const (
	kindNull = iota
	kindNumber
	kindText
	kindBinary
	kindBits
	kindPeriodEnd // the end of a row's validity in a table with history
)

// form defines how the values of a column are written.
type form struct {
	kind    int
	charset string // of a string that is written as bytes
}

func (s source) formsOf(columns []engine.Column) []form {
	forms := make([]form, len(columns))
	for i, c := range columns {
		forms[i] = form{kind: kindOf(c.Type), charset: s.charsets[[2]string{s.table.Name, c.Name}]}
	}
	return forms
}

// kindOf returns the kind of the values of a column's type.
func kindOf(columnType string) int {
	base := strings.ToLower(columnType)
	if at := strings.IndexFunc(base, func(r rune) bool { return r < 'a' || r > 'z' }); at >= 0 {
		base = base[:at]
	}
	switch base {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal", "year":
		return kindNumber
	case "bit":
		return kindBits
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
		"geometrycollection", "geomcollection":
		return kindBinary
	}
	return kindText
}

// batch collects the rows of one INSERT statement.
type batch struct {
	ctx   context.Context
	out   turn
	start string
	b     []byte
	bytes int64 // written
}

func (b *batch) add(values []driver.Value, forms []form) error {
	if len(b.b) == 0 {
		b.b = append(b.b, b.start...)
	} else {
		b.b = append(b.b, ",\n"...)
	}
	b.b = append(b.b, '(')
	for i, v := range values {
		if i > 0 {
			b.b = append(b.b, ',')
		}
		var err error
		if b.b, err = appendValue(b.b, v, forms[i]); err != nil {
			return err
		}
	}
	b.b = append(b.b, ')')
	if len(b.b) < chunkSize {
		return nil
	}
	return b.flush()
}

func (b *batch) flush() error {
	if len(b.b) == 0 {
		return nil
	}
	b.bytes += int64(len(b.b))
	err := b.out.write(b.ctx, append(b.b, ";\n"...))
	b.b = b.b[:0]
	if cap(b.b) > 4*chunkSize { // after a large row
		b.b = nil
	}
	return err
}

// appendValue writes a value as a literal.
func appendValue(b []byte, v driver.Value, f form) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "NULL"...), nil
	case []byte:
		if f.charset != "" {
			return appendBytesIn(b, v, f.charset), nil
		}
		return appendBytes(b, v, f.kind), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64), nil
	case float32:
		return strconv.AppendFloat(b, float64(v), 'g', -1, 32), nil
	case string:
		return appendBytes(b, []byte(v), f.kind), nil
	}
	return b, fmt.Errorf("cannot write a value of the type %T", v)
}

func appendBytes(b, v []byte, kind int) []byte {
	switch kind {
	case kindNumber:
		return append(b, v...)
	case kindBits:
		return hex.AppendEncode(append(b, "0x"...), v)
	case kindBinary:
		b = append(b, "_binary "...)
	case kindPeriodEnd:
		if forever[string(v)] {
			return append(b, "DEFAULT"...)
		}
	}
	return appendQuoted(b, v)
}

// appendQuoted appends a string literal without line breaks (see the manual's page on string
// literals).
func appendQuoted(b, v []byte) []byte {
	b = append(b, '\'')
	from := 0
	for i, c := range v {
		if escapes[c] != 0 {
			b = append(append(b, v[from:i]...), '\\', escapes[c])
			from = i + 1
		}
	}
	return append(append(b, v[from:]...), '\'')
}

// escapes has, for each byte, the character to write after a backslash, or 0 if the byte needs no
// escape.
var escapes = [256]byte{0: '0', '\n': 'n', '\r': 'r', '\'': '\'', '\\': '\\'}
