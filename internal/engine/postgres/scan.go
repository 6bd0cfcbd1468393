package postgres

import (
	"errors"
	"strings"
)

// The rules of PostgreSQL's scanner (the manual, "Lexical Structure"), with
// standard_conforming_strings on and an encoding in which no character has a
// byte of ASCII in it.

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

var errScan = errors.New("it is not SQL that pg_dump writes")

// statements splits a text into its statements. It fails for what no dump has
// and what could be read in two ways: strings that are continued on another
// line, backslashes outside of strings, and NUL.
func statements(text string) (all [][]token, err error) {
	if strings.ContainsRune(text, 0) {
		return nil, errScan
	}
	var one []token
	depth, atomic := 0, false
	for {
		t, rest, err := nextToken(text)
		if err != nil {
			return nil, err
		}
		if rest == text { // nothing is left
			break
		}
		text = rest
		if t.kind == str && len(one) > 0 && one[len(one)-1].kind == str {
			return nil, errScan
		}
		switch {
		case t.is(symbol, "("), t.is(symbol, "["):
			depth++
		case t.is(symbol, ")"), t.is(symbol, "]"):
			depth--
		case t.is(word, "atomic") && len(one) > 0 && one[len(one)-1].is(word, "begin"):
			atomic = true
		case atomic && t.is(word, "case"):
			return nil, errScan // its END could be taken for that of the body
		case atomic && t.is(word, "end"):
			atomic = false
			if strings.TrimSpace(text) != ";" { // only the end of the text is surely that of the body
				return nil, errScan
			}
		}
		if depth < 0 {
			return nil, errScan
		}
		if t.is(symbol, ";") && depth == 0 && !atomic {
			if len(one) > 0 {
				all = append(all, one)
			}
			one = nil
			continue
		}
		one = append(one, t)
	}
	if len(one) > 0 || depth != 0 || atomic {
		return nil, errScan
	}
	return all, nil
}

// nextToken takes a token from the start of a text. The rest is the text itself
// when there is none.
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

// lower folds ASCII letters, as the server does.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// skipSpace skips white space and comments, which can be nested.
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

// quoted takes the rest of a quoted text, in which the mark is written twice.
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

// dollar takes a string in dollar quotes, or a parameter.
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
