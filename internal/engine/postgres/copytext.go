package postgres

import (
	"bytes"
	"fmt"
	"strings"
)

// parseCopy returns the table that a COPY statement in a dump fills, as the statement writes it,
// and the columns that the statement names:
//
//	COPY public.customer (id, "e mail") FROM stdin;
func parseCopy(statement string) (table string, columns []string, err error) {
	table, ok := strings.CutPrefix(statement, "COPY ")
	if !ok {
		return "", nil, fmt.Errorf("%q is not a COPY statement", statement)
	}
	rest := table
	for {
		_, after, err := identifier(rest)
		if err != nil {
			return "", nil, err
		}
		if rest, ok = strings.CutPrefix(after, "."); !ok {
			rest = after
			break
		}
	}
	table = strings.TrimSuffix(table, rest)
	if rest, ok = strings.CutPrefix(rest, " ("); !ok {
		return table, nil, nil // COPY t FROM stdin: a table without columns
	}
	for {
		name, after, err := identifier(rest)
		if err != nil {
			return "", nil, err
		}
		columns = append(columns, name)
		if rest, ok = strings.CutPrefix(after, ", "); !ok {
			return table, columns, nil
		}
	}
}

// identifier parses a name, quoted or not, at the start of s.
func identifier(s string) (text, rest string, err error) {
	inner, isQuoted := strings.CutPrefix(s, `"`)
	if !isQuoted {
		end := strings.IndexAny(s, " .,()")
		if end <= 0 {
			return "", "", fmt.Errorf("expected a name at %q", s)
		}
		return s[:end], s[end:], nil
	}
	t, rest, err := quoted(inner, name, '"', false)
	if err != nil {
		return "", "", fmt.Errorf("a quoted name is not closed in %q", s)
	}
	return t.text, rest, nil
}

// unescape returns the value of a field of COPY's text format that is not \N (see the manual's page
// on COPY, "Text Format").
func unescape(field []byte) string {
	if bytes.IndexByte(field, '\\') < 0 {
		return string(field)
	}
	out := make([]byte, 0, len(field))
	for i := 0; i < len(field); i++ {
		if field[i] != '\\' || i+1 == len(field) {
			out = append(out, field[i])
			continue
		}
		i++
		if at := strings.IndexByte("bfnrtv", field[i]); at >= 0 {
			out = append(out, "\b\f\n\r\t\v"[at])
		} else {
			out = append(out, field[i])
		}
	}
	return string(out)
}

// appendEscaped appends a value as a field of COPY's text format.
func appendEscaped(out []byte, value string) []byte {
	plain := 0 // start of the part that is not appended yet
	for i := range len(value) {
		c := value[i]
		if c > '\r' && c != '\\' {
			continue
		}
		if at := strings.IndexByte("\b\f\n\r\t\v\\", c); at >= 0 {
			out = append(append(out, value[plain:i]...), '\\', `bfnrtv\`[at])
			plain = i + 1
		}
	}
	return append(out, value[plain:]...)
}
