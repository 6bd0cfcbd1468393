package postgres

import (
	"errors"
	"strings"
)

// This scanner follows the rules of PostgreSQL's own scanner (see "Lexical Structure" in the
// manual), with standard_conforming_strings on and an encoding whose multi-byte characters contain
// no ASCII bytes.

type tokenKind int

const (
	word tokenKind = iota // an unquoted name or keyword, in lower case
	name                  // a quoted name
	str                   // a string of any kind
	number
	symbol // one character
)

type token struct {
	kind tokenKind
	text string
}

func (t token) is(kind tokenKind, text string) bool { return t.kind == kind && t.text == text }

var (
	errScan   = errors.New("pg_dump does not write such SQL")
	errAtomic = errors.New("its BEGIN ATOMIC body contains CASE, or does not end with the statement")
)

// statements splits SQL into statements, each of which must end with a semicolon. It fails for
// syntax that could be interpreted in two ways: strings that continue on another line, backslashes
// outside strings, NUL, and BEGIN ATOMIC bodies of which the end is not certain.
func statements(text string) ([][]token, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errScan
	}
	var s splitter
	for {
		t, rest, err := nextToken(text)
		if err != nil {
			return nil, err
		}
		if rest == text { // the end of the text
			break
		}
		text = rest
		if err := s.add(t, text); err != nil {
			return nil, err
		}
	}
	if len(s.one) > 0 || s.depth != 0 || s.atomic {
		return nil, errScan
	}
	return s.all, nil
}

// splitter collects tokens into statements.
type splitter struct {
	all    [][]token
	one    []token // the statement that has begun
	depth  int     // of parentheses and brackets
	atomic bool    // inside BEGIN ATOMIC
}

// add adds the next token. rest is the SQL after the token.
func (s *splitter) add(t token, rest string) error {
	if t.kind == str && s.after(str, "") {
		return errScan
	}
	if err := s.nest(t, rest); err != nil {
		return err
	}
	if !t.is(symbol, ";") || s.depth != 0 || s.atomic {
		s.one = append(s.one, t)
		return nil
	}
	if len(s.one) > 0 {
		s.all = append(s.all, s.one)
	}
	s.one = nil
	return nil
}

// after reports whether the previous token has this kind, and this text unless text is empty.
func (s *splitter) after(kind tokenKind, text string) bool {
	if len(s.one) == 0 {
		return false
	}
	last := s.one[len(s.one)-1]
	return last.kind == kind && (text == "" || last.text == text)
}

// nest tracks parentheses, brackets and the body of a function.
func (s *splitter) nest(t token, rest string) error {
	switch {
	case t.is(symbol, "("), t.is(symbol, "["):
		s.depth++
	case t.is(symbol, ")"), t.is(symbol, "]"):
		s.depth--
	case t.is(word, "atomic") && s.after(word, "begin"):
		s.atomic = true
	case s.atomic && t.is(word, "case"):
		return errAtomic // its END could be mistaken for the END of the body
	case s.atomic && t.is(word, "end"):
		s.atomic = false
		if strings.TrimSpace(rest) != ";" { // only an END at the end of the SQL certainly ends the body
			return errAtomic
		}
	}
	if s.depth < 0 {
		return errScan
	}
	return nil
}

// nextToken returns the first token of text, and the rest of text. rest equals text if there is no
// token.
func nextToken(text string) (t token, rest string, err error) {
	start := text
	if text, err = skipSpace(text); err != nil || text == "" {
		return t, start, err
	}
	c := text[0]
	switch {
	case (c == 'e' || c == 'E') && strings.HasPrefix(text[1:], "'"):
		return quoted(text[2:], str, '\'', true)
	case c == '\'':
		return quoted(text[1:], str, '\'', false)
	case c == '"':
		return quoted(text[1:], name, '"', false)
	case isIdentifierStart(c):
		end := 1
		for end < len(text) && (isIdentifierStart(text[end]) || isDigit(text[end]) || text[end] == '$') {
			end++
		}
		return token{word, lower(text[:end])}, text[end:], nil
	case isDigit(c):
		end := 1
		for end < len(text) && (isDigit(text[end]) || text[end] == '.') {
			end++
		}
		return token{number, text[:end]}, text[end:], nil
	case c == '$':
		return dollar(text)
	case c == '\\':
		return t, start, errScan
	}
	return token{symbol, text[:1]}, text[1:], nil
}

func isIdentifierStart(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// lower folds ASCII letters to lower case, as the server does.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// skipSpace skips white space and comments. Comments can be nested.
func skipSpace(text string) (string, error) {
	for {
		text = strings.TrimLeft(text, " \t\n\r\f\v")
		switch {
		case strings.HasPrefix(text, "--"):
			end := strings.IndexAny(text, "\n\r")
			if end < 0 {
				return "", nil
			}
			text = text[end:]
		case strings.HasPrefix(text, "/*"):
			depth, at := 1, 2
			for depth > 0 {
				switch {
				case at+1 >= len(text):
					return "", errScan
				case text[at:at+2] == "/*":
					depth, at = depth+1, at+2
				case text[at:at+2] == "*/":
					depth, at = depth-1, at+2
				default:
					at++
				}
			}
			text = text[at:]
		default:
			return text, nil
		}
	}
}

// quoted scans the rest of a quoted name or string, in which quotation marks are doubled.
func quoted(text string, kind tokenKind, mark byte, escapes bool) (token, string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case escapes && text[i] == '\\' && i+1 < len(text):
			b.WriteString(text[i : i+2])
			i++
		case text[i] != mark:
			b.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == mark:
			b.WriteByte(mark)
			i++
		default:
			return token{kind, b.String()}, text[i+1:], nil
		}
	}
	return token{}, text, errScan
}

// dollar scans a dollar-quoted string, or a parameter.
func dollar(text string) (token, string, error) {
	end := 1
	for end < len(text) && (isIdentifierStart(text[end]) || end > 1 && isDigit(text[end])) {
		end++
	}
	if end == len(text) || text[end] != '$' {
		return token{symbol, "$"}, text[1:], nil
	}
	mark := text[:end+1]
	body, rest, ok := strings.Cut(text[end+1:], mark)
	if !ok {
		return token{}, text, errScan
	}
	return token{str, body}, rest, nil
}
