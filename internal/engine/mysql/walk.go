package mysql

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
)

// walker reads the SQL of a dump, writes it again, and lets rows be changed on
// the way. It understands what the dumping programs write: one statement from
// the start of a line, INSERT with or without columns, and values as literals.
type walker struct {
	r     *bufio.Reader
	out   *bufio.Writer
	begin func(table string, columns []string) (drop bool, err error) // columns is nil when the statement lists none
	row   func(fields [][]byte) error                                 // may replace fields
}

// walk goes to the end of the dump.
func (w *walker) walk() error {
	for {
		start, err := w.r.Peek(len(insertStart))
		if len(start) == 0 && errors.Is(err, io.EOF) {
			return w.out.Flush()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if string(start) == insertStart {
			err = w.insert()
		} else {
			err = w.line(true)
		}
		if err != nil {
			return err
		}
	}
}

// line passes to the end of the line, writing it or not.
func (w *walker) line(write bool) error {
	for {
		part, err := w.r.ReadSlice('\n')
		if write {
			if _, err := w.out.Write(part); err != nil {
				return err
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// insert handles one INSERT statement.
func (w *walker) insert() error {
	if _, err := w.r.Discard(len(insertStart) - 1); err != nil {
		return err
	}
	table, err := w.name()
	if err != nil {
		return err
	}
	columns, head, err := w.columns()
	if err != nil {
		return err
	}
	drop, err := w.begin(table, columns)
	if err != nil {
		return err
	}
	if !drop {
		if _, err := fmt.Fprintf(w.out, "INSERT INTO %s%sVALUES", quote(table), head); err != nil {
			return err
		}
	}
	for {
		b, err := w.r.ReadByte()
		if err != nil {
			return badDump(err)
		}
		switch {
		case b == '(':
			if err := w.tuple(drop); err != nil {
				return err
			}
			continue
		case b == ';':
			if !drop {
				_ = w.out.WriteByte(b) // an error stays until Flush
			}
			return w.line(!drop)
		case b != ',' && b != ' ' && b != '\n' && b != '\r':
			return badDump(fmt.Errorf("%q between rows of %s", b, table))
		}
		if !drop {
			_ = w.out.WriteByte(b)
		}
	}
}

// name reads a quoted name.
func (w *walker) name() (string, error) {
	if b, err := w.r.ReadByte(); err != nil || b != '`' {
		return "", badDump(err)
	}
	var name strings.Builder
	for {
		b, err := w.r.ReadByte()
		if err != nil {
			return "", badDump(err)
		}
		if b == '`' {
			if next, _ := w.r.Peek(1); len(next) == 0 || next[0] != '`' {
				return name.String(), nil
			}
			_, _ = w.r.Discard(1)
		}
		name.WriteByte(b)
	}
}

// columns reads up to VALUES, and what columns are listed before it.
func (w *walker) columns() (columns []string, head string, err error) {
	var text strings.Builder
	for {
		b, err := w.r.Peek(1)
		if err != nil {
			return nil, "", badDump(err)
		}
		switch {
		case b[0] == '`':
			name, err := w.name()
			if err != nil {
				return nil, "", err
			}
			columns = append(columns, name)
			text.WriteString(quote(name))
		case b[0] == 'V':
			word := make([]byte, len("VALUES"))
			if _, err := io.ReadFull(w.r, word); err != nil || string(word) != "VALUES" {
				return nil, "", badDump(err)
			}
			return columns, text.String(), nil
		case strings.IndexByte(" (),\n", b[0]) >= 0:
			text.WriteByte(b[0])
			_, _ = w.r.Discard(1)
		default:
			return nil, "", badDump(fmt.Errorf("%q among columns", b))
		}
	}
}

// tuple reads one row and writes it as row leaves it.
func (w *walker) tuple(drop bool) error {
	var fields [][]byte
	for {
		field, end, err := w.field()
		if err != nil {
			return err
		}
		fields = append(fields, field)
		if end == ')' {
			break
		}
	}
	if drop {
		return nil
	}
	if err := w.row(fields); err != nil {
		return err
	}
	_ = w.out.WriteByte('(')
	for i, f := range fields {
		if i > 0 {
			_ = w.out.WriteByte(',')
		}
		_, _ = w.out.Write(f)
	}
	return w.out.WriteByte(')')
}

// field reads one literal, up to the comma or parenthesis that ends it.
func (w *walker) field() (literal []byte, end byte, err error) {
	quoted := false
	for {
		b, err := w.r.ReadByte()
		if err != nil {
			return nil, 0, badDump(err)
		}
		switch {
		case !quoted && (b == ',' || b == ')'):
			return literal, b, nil
		case quoted && b == '\\':
			next, err := w.r.ReadByte()
			if err != nil {
				return nil, 0, badDump(err)
			}
			literal = append(literal, b, next)
			continue
		case b == '\'':
			quoted = !quoted
		case !quoted && b == '(':
			return nil, 0, badDump(errors.New("a value that is no literal"))
		}
		literal = append(literal, b)
	}
}

// kinds of literals.
const (
	isNull = iota
	isNumber
	isText
	isBinary
)

// value returns what a literal stands for.
func value(literal []byte) (text string, kind int, err error) {
	switch {
	case string(literal) == "NULL":
		return "", isNull, nil
	case bytes.HasPrefix(literal, []byte("0x")):
		b, err := hex.DecodeString(string(literal[2:]))
		return string(b), isBinary, err
	case bytes.HasPrefix(literal, []byte("_binary ")):
		text, _, err := value(literal[len("_binary "):])
		return text, isBinary, err
	case len(literal) > 1 && literal[0] == '\'' && literal[len(literal)-1] == '\'':
		return unquote(literal[1 : len(literal)-1]), isText, nil
	case len(literal) > 0:
		return string(literal), isNumber, nil
	}
	return "", isNull, errors.New("an empty value")
}

// unquote undoes the escapes of a text (the manual's page on string literals).
func unquote(b []byte) string {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '\'') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\'' && i+1 < len(b) && b[i+1] == '\'':
			i++
			out = append(out, '\'')
		case b[i] == '\\' && i+1 < len(b):
			i++
			if at := strings.IndexByte("0bnrtZ", b[i]); at >= 0 {
				out = append(out, "\x00\b\n\r\t\x1a"[at])
			} else {
				out = append(out, b[i])
			}
		default:
			out = append(out, b[i])
		}
	}
	return string(out)
}

// literalOf writes a value as a literal of the kind that it had.
func literalOf(text string, kind int) []byte {
	switch {
	case kind == isBinary && text != "":
		return []byte("0x" + hex.EncodeToString([]byte(text)))
	case kind == isNumber && number10.MatchString(text):
		return []byte(text)
	}
	out := []byte{'\''}
	for i := range len(text) {
		switch c := text[i]; c {
		case 0:
			out = append(out, '\\', '0')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case 0x1a:
			out = append(out, '\\', 'Z')
		case '\\', '\'', '"':
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '\'')
}
