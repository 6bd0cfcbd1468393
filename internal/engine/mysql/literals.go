package mysql

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
)

// The rows of a dump from elsewhere are not executed as they are. Each value is parsed as one of
// the literals that a dump can contain (a number, a string, bytes in hexadecimal digits, or NULL)
// and generated again. Nothing else reaches a server.

// rowForm describes the rows of a table.
type rowForm struct {
	columns     []string
	period      bool // two more columns hold the start and end of each row's validity
	currentOnly bool // load only current rows, without the columns of a period
}

// rewrite returns the statement with its rows generated again, and the number of omitted rows.
func (f rowForm) rewrite(s statement) (statement, int64, error) {
	columns := f.columns
	f.period = f.period || f.currentOnly && len(s.columns) > len(columns)
	if f.period {
		columns = s.columns
		if len(columns) != len(f.columns)+2 || !slices.Equal(columns[:len(f.columns)], f.columns) {
			return s, 0, errOtherColumns(s.table)
		}
		if f.currentOnly {
			columns = f.columns
		}
	} else if !slices.Equal(s.columns, columns) {
		return s, 0, errOtherColumns(s.table)
	}
	out := s
	out.columns = columns
	out.start = []byte(insertStart + quote(s.table) + " (" + quoteNames(columns) + ") VALUES\n")
	out.rows = make([]byte, 0, len(s.rows)+len(s.rows)/64)
	out.count = 0
	for line := range rowsOf(s.rows) {
		from := len(out.rows)
		var current bool
		var err error
		if out.rows, current, err = f.row(out.rows, line); err != nil {
			return s, 0, err
		}
		if f.currentOnly && f.period && !current {
			out.rows = out.rows[:from]
			continue
		}
		out.rows = append(out.rows, ",\n"...)
		out.count++
	}
	if n := len(out.rows); n > 0 {
		copy(out.rows[n-2:], ";\n")
	}
	return out, s.count - out.count, nil
}

func errOtherColumns(table string) error {
	return badDump(fmt.Errorf("the rows of %.80q do not match its columns", table))
}

// row parses a row and appends it to out. current reports whether the row is the current version in
// a table with a period. It is false for other tables.
func (f rowForm) row(out, line []byte) (_ []byte, current bool, err error) {
	if len(line) < 2 || line[0] != '(' || line[len(line)-1] != ')' {
		return out, false, badDump(fmt.Errorf("%.40q is not a row", line))
	}
	rest, n := line[1:len(line)-1], len(f.columns)
	if f.period {
		n += 2
	}
	out = append(out, '(')
	for i := range n {
		if i > 0 {
			if len(rest) == 0 || rest[0] != ',' {
				return out, false, badDump(fmt.Errorf("a row does not have the expected %d values", n))
			}
			rest = rest[1:]
		}
		kept := len(out)
		if i > 0 {
			out = append(out, ',')
		}
		if f.period && i == n-1 && bytes.HasPrefix(rest, []byte("DEFAULT")) {
			out, rest, current = append(out, "DEFAULT"...), rest[len("DEFAULT"):], true
		} else if out, rest, err = copyLiteral(out, rest); err != nil {
			return out, false, badDump(err)
		}
		if f.currentOnly && i >= len(f.columns) {
			out = out[:kept]
		}
	}
	if len(rest) > 0 {
		return out, false, badDump(fmt.Errorf("unexpected %.40q after the values of a row", rest))
	}
	return append(out, ')'), current, nil
}

var errNoLiteral = errors.New("a value is not a literal that a dump can contain")

// copyLiteral parses one literal at the start of b, and appends it to out in the form in which this
// package writes it.
func copyLiteral(out, b []byte) (_, rest []byte, err error) {
	switch {
	case len(b) == 0:
	case b[0] == '\'':
		return copyText(out, b)
	case b[0] == '-' || isDigit(b[0]):
		if bytes.HasPrefix(b, []byte("0x")) {
			return copyHex(append(out, "0x"...), b[2:])
		}
		return copyNumber(out, b)
	case bytes.HasPrefix(b, []byte("NULL")):
		return append(out, "NULL"...), b[len("NULL"):], nil
	case bytes.HasPrefix(b, []byte("_binary '")):
		return copyText(append(out, "_binary "...), b[len("_binary "):])
	case b[0] == '_':
		return copyCharsetText(out, b)
	}
	return out, b, errNoLiteral
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// copyText copies a string. It accepts only the escapes that dumps contain.
func copyText(out, b []byte) (_, rest []byte, err error) {
	out = append(out, '\'')
	for i, from := 1, 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\'':
			return append(append(out, b[from:i]...), '\''), b[i+1:], nil
		case c == '\\':
			if i++; i == len(b) || bytes.IndexByte([]byte(`0nr'\`), b[i]) < 0 {
				return out, b, errNoLiteral
			}
		case escapes[c] != 0: // must be escaped
			return out, b, errNoLiteral
		}
	}
	return out, b, errNoLiteral
}

func copyNumber(out, b []byte) (_, rest []byte, err error) {
	i := 0
	if b[0] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		return i > from
	}
	ok := digits()
	if ok && i < len(b) && b[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(b) && b[i] == 'e' {
		if i++; i < len(b) && (b[i] == '-' || b[i] == '+') {
			i++
		}
		ok = digits()
	}
	if !ok {
		return out, b, errNoLiteral
	}
	return append(out, b[:i]...), b[i:], nil
}

// copyHex copies an even number of hexadecimal digits, at least two.
func copyHex(out, b []byte) (_, rest []byte, err error) {
	i := 0
	for i < len(b) && (isDigit(b[i]) || 'a' <= b[i] && b[i] <= 'f') {
		i++
	}
	if i == 0 || i%2 > 0 {
		return out, b, errNoLiteral
	}
	return append(out, b[:i]...), b[i:], nil
}

// copyCharsetText copies a string that names its character set and has its bytes in hexadecimal.
func copyCharsetText(out, b []byte) (_, rest []byte, err error) {
	name, digits, ok := bytes.Cut(b[1:], []byte(" X'"))
	if !ok || len(name) > 20 || !slices.Contains(allCharsets(), string(name)) {
		return out, b, errNoLiteral
	}
	end := bytes.IndexByte(digits, '\'')
	if end < 0 {
		return out, b, errNoLiteral
	}
	text, err := hex.DecodeString(string(digits[:end]))
	if err != nil {
		return out, b, errNoLiteral
	}
	return appendHexIn(out, text, string(name)), digits[end+1:], nil
}
