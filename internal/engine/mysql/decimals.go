package mysql

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A JSON document of MySQL can hold exact numbers, such as 1.50, and a query returns them exactly.
// But when such a document is inserted as a string, the server parses the number as a
// floating-point number, 1.5. A load therefore sets these numbers again as decimals. MariaDB is not
// affected, because it stores documents as text.

// withDecimals changes a statement so that its documents keep their exact numbers.
func (s *scratch) withDecimals(one statement) statement {
	if s.mariadb() || !bytes.ContainsRune(one.rows, '.') && !longNumber(one.rows) {
		return one
	}
	documents := s.columnsOfType(one.table, "json")
	if len(documents) == 0 {
		return one
	}
	var fields [][]byte
	rows := make([]byte, 0, len(one.rows))
	for line := range bytes.Lines(one.rows) {
		end := max(0, len(line)-len(",\n"))
		var err error
		if fields, err = fieldsOf(line[:end], fields); err != nil || len(fields) != len(one.columns) {
			return one // the server reports the error
		}
		from := len(rows)
		rows = append(rows, '(')
		for i, f := range fields {
			if i > 0 {
				rows = append(rows, ',')
			}
			if slices.Contains(documents, one.columns[i]) {
				rows = appendDocument(rows, f)
			} else {
				rows = append(rows, f...)
			}
		}
		rows = append(append(rows, ')'), line[end:]...)
		if len(one.start)+len(rows)-from > s.packet-packetHead {
			rows = append(rows[:from], line...)
		}
	}
	one.rows = rows
	return one
}

// longNumber reports whether b has 19 consecutive digits. An integer with fewer digits fits into 64
// bits.
func longNumber(b []byte) bool {
	n := 0
	for _, c := range b {
		if n++; !isDigit(c) {
			n = 0
		} else if n >= len("9223372036854775808") {
			return true
		}
	}
	return false
}

// appendDocument writes the literal of a document, with its exact numbers set as decimals.
func appendDocument(out, literal []byte) []byte {
	text, kind, err := value(literal)
	if err != nil || kind != kindText {
		return append(out, literal...)
	}
	paths, numbers, err := exactNumbers(text)
	if err != nil || len(paths) == 0 {
		return append(out, literal...)
	}
	out = append(append(out, "JSON_SET("...), literal...)
	for i, path := range paths {
		out = append(appendQuoted(append(out, ','), []byte(path)), ',')
		out = append(out, numbers[i]...)
	}
	return append(out, ')')
}

// exactNumbers returns the numbers of a document that a server would not parse exactly, and their
// paths.
func exactNumbers(text string) (paths, numbers []string, err error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	var at position
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return paths, numbers, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{', '[':
				at = append(at, step{array: token == '['})
				continue
			}
			at = at[:len(at)-1]
		case string:
			if at.wantsName() {
				at[len(at)-1].name, at[len(at)-1].named = token, true
				continue
			}
		case json.Number:
			if needsDecimal(string(token)) {
				path, err := at.path()
				if err != nil {
					return nil, nil, err
				}
				paths, numbers = append(paths, path), append(numbers, string(token))
			}
		}
		at.next()
	}
}

// position is a position in a document: the path of objects and arrays that contain it.
type position []step

type step struct {
	array bool
	named bool // in an object: the value of name is next
	name  string
	index int
}

func (p position) wantsName() bool { return len(p) > 0 && !p[len(p)-1].array && !p[len(p)-1].named }

// next advances past a value.
func (p position) next() {
	if len(p) > 0 {
		p[len(p)-1].index++
		p[len(p)-1].named = false
	}
}

func (p position) path() (string, error) {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		if s.array {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		name, err := json.Marshal(s.name)
		if err != nil {
			return "", err
		}
		b.WriteString("." + string(name))
	}
	return b.String(), nil
}

// needsDecimal reports whether a number can and must be set as a decimal. A decimal has at most 65
// digits, of which at most 30 are after the point.
func needsDecimal(number string) bool {
	if strings.ContainsAny(number, "eE") {
		return false
	}
	digits := strings.TrimPrefix(number, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if len(whole)+len(fraction) > 65 || len(fraction) > 30 {
		return false
	}
	if !point {
		_, err := strconv.ParseInt(number, 10, 64)
		_, unsigned := strconv.ParseUint(number, 10, 64)
		return err != nil && unsigned != nil
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return false
	}
	shown := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(shown, ".") {
		shown += ".0"
	}
	return shown != digits
}
