package schema

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Dialect is the SQL of one kind of database. MariaDB uses MySQL's.
type Dialect string

// The dialects.
const (
	PostgreSQL Dialect = "postgres"
	MySQL      Dialect = "mysql"
	SQLite     Dialect = "sqlite"
)

// errNotAllowed is the error for everything that is not an allowed expression or type. Callers then
// treat the object that has the expression as a program.
var errNotAllowed = errors.New("not an expression of the allowed operators and functions")

// tokenKind is the kind of a token.
type tokenKind int

const (
	end    tokenKind = iota
	word             // an unquoted name or keyword, in lower case
	quoted           // a quoted name
	text             // a string
	bytes            // a string of hexadecimal digits
	bits             // a string of binary digits
	number
	symbol
)

type token struct {
	kind tokenKind
	text string
}

// symbols are the operators and punctuation of each dialect. The longest match wins.
var symbols = map[Dialect][]string{
	PostgreSQL: {
		"!~~*", "!~~", "~~*", "!~*", "->>", "#>>", "<>", "!=", "<=", ">=", "||", "~*", "!~", "~~", "<<", ">>",
		"->", "#>", "@>", "<@", "?|", "?&", "&&", "::", "=", "<", ">", "+", "-", "*", "/", "%", "^", "~", "&",
		"|", "#", "?", "(", ")", "[", "]", ",", ".",
	},
	MySQL: {
		"<=>", "->>", "<>", "!=", "<=", ">=", "<<", ">>", "->", "&&", "=", "<", ">", "+", "-", "*", "/", "%", "^",
		"~", "&", "|", "!", "(", ")", ",", ".",
	},
	SQLite: {
		"->>", "==", "<>", "!=", "<=", ">=", "||", "<<", ">>", "->", "=", "<", ">", "+", "-", "*", "/", "%", "~",
		"&", "|", "(", ")", ",", ".",
	},
}

// scanner splits the text of an expression into tokens.
type scanner struct {
	d    Dialect
	text string
}

// all returns the tokens of the text, followed by one of kind end. It rejects comments.
func (s scanner) all() ([]token, error) {
	var found []token
	for {
		s.text = strings.TrimLeft(s.text, " \t\r\n")
		if s.text == "" {
			return append(found, token{kind: end}), nil
		}
		t, rest, err := s.next()
		if err != nil {
			return nil, err
		}
		found, s.text = append(found, t), rest
	}
}

func (s scanner) next() (token, string, error) {
	switch c := s.text[0]; {
	case c == '\'':
		value, rest, err := s.between('\'', s.d == MySQL)
		return token{text, value}, rest, err
	case c == '"' && s.d == MySQL:
		value, rest, err := s.between('"', true)
		return token{text, value}, rest, err
	case c == '"', c == '`' && s.d != PostgreSQL:
		value, rest, err := s.between(c, false)
		return token{quoted, value}, rest, err
	case c == '[' && s.d == SQLite:
		value, rest, ok := strings.Cut(s.text[1:], "]")
		if !ok {
			return token{}, "", errNotAllowed
		}
		return token{quoted, value}, rest, nil
	case isDigit(c), c == '.' && len(s.text) > 1 && isDigit(s.text[1]):
		return s.number()
	case isLetter(c):
		return s.word()
	}
	return s.symbol()
}

// between reads a string quoted with q. A doubled q represents q itself. If escapes is set, a
// backslash escapes the next character.
func (s scanner) between(q byte, escapes bool) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == q && i+1 < len(s.text) && s.text[i+1] == q:
			b.WriteByte(q)
			i++
		case c == q:
			return b.String(), s.text[i+1:], nil
		case c == '\\' && escapes && i+1 < len(s.text):
			i++
			if s.text[i] == '%' || s.text[i] == '_' { // MySQL keeps the backslash for LIKE
				b.WriteByte('\\')
			}
			b.WriteByte(unescaped(s.text[i]))
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errNotAllowed
}

// unescaped returns the character that a backslash followed by c means in MySQL.
func unescaped(c byte) byte {
	switch c {
	case '0':
		return 0
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'Z':
		return 0x1a
	}
	return c
}

func (s scanner) number() (token, string, error) {
	i := 0
	for i < len(s.text) && (isDigit(s.text[i]) || isLetter(s.text[i]) || s.text[i] == '.' || signsExponent(s.text, i)) {
		i++
	}
	value, rest := s.text[:i], s.text[i:]
	if s.d == SQLite {
		value = strings.ReplaceAll(value, "_", "") // between digits
	}
	digits, isHex := strings.CutPrefix(strings.ToLower(value), "0x")
	switch {
	case isHex && s.d == MySQL:
		return token{bytes, digits}, rest, nil
	case isHex && s.d == SQLite:
		n, err := strconv.ParseUint(digits, 16, 63)
		if err != nil {
			return token{}, "", errNotAllowed
		}
		value = strconv.FormatUint(n, 10)
	}
	if !isNumber(value) {
		return token{}, "", errNotAllowed
	}
	if value[0] == '.' { // servers write a leading zero, and in MySQL a bare dot can join names
		value = "0" + value
	}
	return token{number, value}, rest, nil
}

// signsExponent reports whether text[i] is the sign of an exponent.
func signsExponent(text string, i int) bool {
	return (text[i] == '-' || text[i] == '+') && i > 0 && (text[i-1] == 'e' || text[i-1] == 'E')
}

// word reads a name or keyword, or a string with a prefix; see [scanner.prefixed].
func (s scanner) word() (token, string, error) {
	i := 0
	for i < len(s.text) && (isLetter(s.text[i]) || isDigit(s.text[i]) || s.text[i] == '$') {
		i++
	}
	name, rest := strings.ToLower(s.text[:i]), s.text[i:]
	if name == "u" && (strings.HasPrefix(rest, "&'") || strings.HasPrefix(rest, `&"`)) {
		return token{}, "", errNotAllowed // a string with Unicode escapes
	}
	if !strings.HasPrefix(rest, "'") {
		return token{word, name}, rest, nil
	}
	value, rest, err := scanner{s.d, rest}.between('\'', s.d == MySQL || name == "e")
	if err != nil {
		return token{}, "", err
	}
	t, err := s.prefixed(name, value)
	return t, rest, err
}

// prefixed returns the token for a string with a prefix, such as the X of X'00'.
func (s scanner) prefixed(prefix, value string) (token, error) {
	switch {
	case prefix == "e" && s.d == PostgreSQL && simpleEscapes(s.text):
		return token{text, value}, nil
	case s.d == MySQL && (prefix == "n" || strings.HasPrefix(prefix, "_")):
		return token{text, value}, nil
	case prefix == "x" && s.d != PostgreSQL:
		return token{bytes, strings.ToLower(value)}, nil
	case prefix == "b" && s.d != SQLite:
		return token{bits, value}, nil
	}
	return token{}, errNotAllowed
}

// simpleEscapes reports whether every backslash in text escapes a backslash or a quote, which
// PostgreSQL and [unescaped] interpret alike.
func simpleEscapes(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		if i == len(text) || text[i] != '\\' && text[i] != '\'' {
			return false
		}
	}
	return true
}

func (s scanner) symbol() (token, string, error) {
	for _, comment := range []string{"--", "/*", "#"} {
		if strings.HasPrefix(s.text, comment) && (comment != "#" || s.d != PostgreSQL) {
			return token{}, "", errNotAllowed
		}
	}
	for _, sym := range symbols[s.d] {
		if rest, ok := strings.CutPrefix(s.text, sym); ok {
			return token{symbol, sym}, rest, nil
		}
	}
	return token{}, "", errNotAllowed
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

// isNumber reports whether s is a decimal number without a sign.
func isNumber(s string) bool {
	digits, point, exponent := 0, false, false
	for i := range len(s) {
		switch c := s[i]; {
		case isDigit(c):
			digits++
		case c == '.' && !point && !exponent:
			point = true
		case (c == 'e' || c == 'E') && digits > 0 && !exponent:
			exponent, digits = true, 0
		case signsExponent(s, i):
		default:
			return false
		}
	}
	return digits > 0
}
