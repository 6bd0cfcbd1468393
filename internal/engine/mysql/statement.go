package mysql

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// maxStatement is the maximum size in bytes of an INSERT in a dump. It is enough for the largest
// statement that a server accepts.
const maxStatement = 2 << 30

// maxStart is the maximum size in bytes of the part of a statement before its rows. The names of
// 4,096 columns are shorter.
const maxStart = 4 << 20

// statement is one INSERT of a dump: its start, and its rows, one per line.
type statement struct {
	table   string
	columns []string
	start   []byte
	rows    []byte
	count   int64
}

// next reads the next statement, whose rows may have at most limit bytes. It returns io.EOF at the
// end of the dump.
func next(in *bufio.Reader, limit int) (statement, error) {
	const tiny = 64 << 10
	var s statement
	var err error
	for len(s.start) == 0 || bytes.Count(s.start, []byte("`"))%2 > 0 { // a name can contain a line break
		line, err := readLine(in, maxStart)
		if err != nil {
			return s, err
		}
		if s.start = append(s.start, line...); len(s.start) > maxStart {
			return s, badDump(errors.New("a statement is too long"))
		}
	}
	if s.table, s.columns, err = parseStart(s.start); err != nil {
		return s, err
	}
	for !bytes.HasSuffix(s.rows, []byte(");\n")) {
		part, err := in.ReadSlice('\n')
		if len(s.rows) > tiny { // most statements that are not tiny are a little larger than chunkSize
			s.rows = slices.Grow(s.rows, max(len(part), chunkSize+tiny-len(s.rows)))
		}
		s.rows = append(s.rows, part...)
		switch {
		case len(s.rows) > limit:
			return s, badDump(errors.New("a statement is too long"))
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return s, badDump(io.ErrUnexpectedEOF)
		case err != nil:
			return s, err
		}
		s.count++
	}
	return s, nil
}

// parts yields the statement's SQL, split into several statements if it is longer than limit bytes.
// It never splits a row. It removes the rows from s, so that their memory can be freed while the
// last part is in use.
func (s *statement) parts(limit int) iter.Seq[string] {
	return func(yield func(string) bool) {
		rows := s.rows
		s.rows = nil
		for len(rows) > 0 {
			n := len(rows)
			if len(s.start)+n > limit {
				n = wholeRows(rows, limit-len(s.start))
			}
			var text strings.Builder
			text.Grow(len(s.start) + n)
			text.Write(s.start)
			text.Write(rows[:n-len(",\n")]) // or ";\n"
			if rows = rows[n:]; len(rows) == 0 {
				rows = nil
			}
			if !yield(text.String()) {
				return
			}
		}
	}
}

// wholeRows returns the total length of the rows that fit into room bytes, but at least that of the
// first row.
func wholeRows(rows []byte, room int) int {
	if end := bytes.LastIndexByte(rows[:max(0, min(room, len(rows)))], '\n'); end >= 0 {
		return end + 1
	}
	return bytes.IndexByte(rows, '\n') + 1
}

const insertStart = "INSERT INTO "

// parseStart parses the table and the columns of an INSERT.
func parseStart(line []byte) (table string, columns []string, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(insertStart))
	if !ok {
		return "", nil, badDump(fmt.Errorf("expected an INSERT statement, but found %.40q", line))
	}
	if table, rest, err = quotedName(rest); err != nil {
		return "", nil, err
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(" (")); !ok {
		return "", nil, badDump(errors.New("an INSERT has no columns"))
	}
	for len(rest) > 0 && rest[0] == '`' {
		var name string
		if name, rest, err = quotedName(rest); err != nil {
			return "", nil, err
		}
		columns = append(columns, name)
		rest = bytes.TrimPrefix(rest, []byte(","))
	}
	if string(rest) != ") VALUES\n" {
		return "", nil, badDump(fmt.Errorf("unexpected %.40q after the columns of %s", rest, table))
	}
	return table, columns, nil
}

func quotedName(b []byte) (name string, rest []byte, err error) {
	if len(b) == 0 || b[0] != '`' {
		return "", nil, badDump(errors.New("a name is not quoted"))
	}
	for i := 1; i < len(b); i++ {
		if b[i] != '`' {
			continue
		}
		if i+1 < len(b) && b[i+1] == '`' {
			i++
			continue
		}
		return strings.ReplaceAll(string(b[1:i]), "``", "`"), b[i+1:], nil
	}
	return "", nil, badDump(errors.New("a quoted name is not closed"))
}

// fieldsOf splits one row, without its end of line, into literals. It appends them to fields[:0].
func fieldsOf(line []byte, fields [][]byte) ([][]byte, error) {
	fields = fields[:0]
	if len(line) < 2 || line[0] != '(' || line[len(line)-1] != ')' {
		return nil, badDump(fmt.Errorf("%.40q is not a row", line))
	}
	line = line[1 : len(line)-1]
	for from, i := 0, 0; ; {
		quoted := bytes.IndexByte(line[i:], '\'')
		comma := bytes.IndexByte(line[i:], ',')
		switch {
		case comma >= 0 && (quoted < 0 || comma < quoted):
			fields = append(fields, line[from:i+comma])
			i += comma + 1
			from = i
		case quoted >= 0:
			end := textEnd(line, i+quoted+1)
			if end < 0 {
				return nil, badDump(errors.New("a string is not closed"))
			}
			i = end
		default:
			return append(fields, line[from:]), nil
		}
	}
}

// textEnd returns the position after the closing quote of a string, or -1 if there is none.
func textEnd(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '\'':
			return i + 1
		}
	}
	return -1
}

// value returns the value of a literal. The value of a BIT column is a decimal number.
func value(literal []byte) (text string, kind int, err error) {
	switch {
	case len(literal) == 0:
		return "", kindNull, errors.New("a value is empty")
	case string(literal) == "NULL":
		return "", kindNull, nil
	case bytes.HasPrefix(literal, []byte("0x")):
		n, err := strconv.ParseUint(string(literal[2:]), 16, 64)
		return strconv.FormatUint(n, 10), kindBits, err
	case bytes.HasPrefix(literal, []byte("_binary ")):
		text, _, err := value(literal[len("_binary "):])
		return text, kindBinary, err
	case literal[0] == '_':
		text, err := textIn(literal)
		return text, kindText, err
	case len(literal) > 1 && literal[0] == '\'' && literal[len(literal)-1] == '\'':
		return unquote(literal[1 : len(literal)-1]), kindText, nil
	}
	return string(literal), kindNumber, nil
}

// unquote decodes the escapes of a string (see the manual's page on string literals).
func unquote(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			out = append(out, b[i])
			continue
		}
		i++
		if at := strings.IndexByte("0nr", b[i]); at >= 0 {
			out = append(out, "\x00\n\r"[at])
		} else {
			out = append(out, b[i])
		}
	}
	return string(out)
}

// literalOf appends a value as a literal of this kind. A number that is no longer valid becomes a
// string.
func literalOf(b []byte, text string, kind int) []byte {
	if kind == kindNumber && !numberPattern.MatchString(text) {
		kind = kindText
	}
	return appendBytes(b, []byte(text), kind)
}
