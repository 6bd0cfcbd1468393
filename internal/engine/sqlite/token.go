package sqlite

import (
	"errors"
	"strings"
)

// This file splits SQL into tokens by SQLite's own rules (tokenize.c), so that the statements
// stored in a database file's schema are parsed exactly as SQLite parses them.

// tokenKind is a kind of token.
type tokenKind int

const (
	wordToken   tokenKind = iota // a keyword or a name without quotes
	quotedToken                  // a name in "", [] or ``
	stringToken                  // a string in ''
	numberToken
	blobToken
	symbolToken
)

// token is one token of a statement, with its position in the statement.
type token struct {
	kind       tokenKind
	text       string // verbatim
	start, end int
}

// maxStatement limits the size of statements. SQLite itself allows 1 GB.
const maxStatement = 1 << 20

var errStatement = errors.New("the statement is longer than 1 MiB, or SQLite does not store such a statement")

// tokens splits SQL into its tokens, without comments and spaces.
func tokens(text string) ([]token, error) {
	if len(text) > maxStatement || strings.IndexByte(text, 0) >= 0 {
		return nil, errStatement
	}
	var all []token
	for at := 0; at < len(text); {
		kind, size := nextToken(text[at:])
		switch {
		case size == 0:
			return nil, errStatement
		case kind >= 0:
			all = append(all, token{kind: kind, text: text[at : at+size], start: at, end: at + size})
		}
		at += size
	}
	return all, nil
}

const skipped tokenKind = -1

// nextToken returns the kind and the length of the first token. The length is 0 if SQLite would
// refuse the token, or if no stored statement can contain it.
func nextToken(s string) (tokenKind, int) {
	switch c := s[0]; {
	case strings.IndexByte(" \t\n\f\r", c) >= 0:
		return skipped, 1
	case strings.HasPrefix(s, "--"):
		return skipped, lineComment(s)
	case strings.HasPrefix(s, "/*"):
		return skipped, blockComment(s)
	case c == '\'':
		return stringToken, quotedLength(s)
	case c == '"' || c == '`':
		return quotedToken, quotedLength(s)
	case c == '[':
		return quotedToken, strings.IndexByte(s, ']') + 1
	case (c == 'x' || c == 'X') && len(s) > 1 && s[1] == '\'':
		return blobToken, blobLength(s)
	case isDigit(c) || c == '.' && len(s) > 1 && isDigit(s[1]):
		return numberToken, numberLength(s)
	case isIdentifier(c) && c != '$':
		return wordToken, wordLength(s)
	}
	return symbolToken, symbolLength(s)
}

func lineComment(s string) int {
	if end := strings.IndexByte(s, '\n'); end >= 0 {
		return end
	}
	return len(s)
}

// blockComment returns the length of a comment. Unlike SQLite, it refuses a comment that is not
// closed, because no stored statement has one.
func blockComment(s string) int {
	if end := strings.Index(s[2:], "*/"); end >= 0 {
		return end + 4
	}
	return 0
}

// quotedLength returns the length of a quoted string, in which quotes are doubled. It returns 0 if
// the string is not closed.
func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != s[0] {
			continue
		}
		if i+1 < len(s) && s[i+1] == s[0] {
			i++
			continue
		}
		return i + 1
	}
	return 0
}

func blobLength(s string) int {
	i := 2
	for i < len(s) && isHex(s[i]) {
		i++
	}
	if i >= len(s) || s[i] != '\'' || i%2 != 0 {
		return 0
	}
	return i + 1
}

// numberLength returns the length of a number, or 0 if letters follow it.
func numberLength(s string) int {
	var i int
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && isHex(s[2]) {
		for i = 2; i < len(s) && (isHex(s[i]) || s[i] == '_'); {
			i++
		}
	} else {
		i = decimalLength(s)
	}
	if i < len(s) && isIdentifier(s[i]) {
		return 0
	}
	return i
}

func decimalLength(s string) int {
	digits := func(i int) int {
		for i < len(s) && (isDigit(s[i]) || s[i] == '_') {
			i++
		}
		return i
	}
	i := digits(0)
	if i < len(s) && s[i] == '.' {
		i = digits(i + 1)
	}
	if i >= len(s) || s[i] != 'e' && s[i] != 'E' {
		return i
	}
	j := i + 1
	if j < len(s) && (s[j] == '+' || s[j] == '-') {
		j++
	}
	if j < len(s) && isDigit(s[j]) {
		return digits(j)
	}
	return i
}

func wordLength(s string) int {
	i := 1
	for i < len(s) && isIdentifier(s[i]) {
		i++
	}
	return i
}

// symbolLength returns the length of an operator or of punctuation. It does not accept parameters,
// because no stored statement has any.
func symbolLength(s string) int {
	for _, symbol := range []string{"->>", "->", "==", "<=", "<>", "<<", ">=", ">>", "!=", "||"} {
		if strings.HasPrefix(s, symbol) {
			return len(symbol)
		}
	}
	if strings.IndexByte("-()+*/%=<>|,&~.;", s[0]) >= 0 {
		return 1
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isIdentifier(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// is reports whether the token is this keyword or symbol.
func (t token) is(text string) bool {
	return t.kind == symbolToken && t.text == text || t.kind == wordToken && strings.EqualFold(t.text, text)
}

// name returns the name that the token represents, and whether the token can be a name. SQLite also
// accepts a string in single quotes as a name.
func (t token) name() (string, bool) {
	switch {
	case t.kind == wordToken:
		return t.text, true
	case t.kind != quotedToken && t.kind != stringToken:
		return "", false
	case t.text[0] == '[':
		return t.text[1 : len(t.text)-1], true
	}
	quote := t.text[:1]
	return strings.ReplaceAll(t.text[1:len(t.text)-1], quote+quote, quote), true
}
