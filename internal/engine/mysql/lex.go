package mysql

import (
	"errors"
	"slices"
	"strings"
)

// This file splits a statement into tokens by the servers' rules (see the manual's pages on
// comments, string literals and names). The name of the object that a statement creates is found in
// the tokens, never with string prefixes or regular expressions, because comments and quotes could
// mislead them.

// tokenKind is a kind of token.
type tokenKind int

const (
	endToken  tokenKind = iota // the end of the statement, white space or a comment
	wordToken                  // a keyword, a name without quotes, or digits
	nameToken                  // a name in quotes
	textToken                  // a string
	signToken                  // one other character
)

// token is a part of a statement, at text[from:to].
type token struct {
	kind     tokenKind
	value    string // the text as written, or the value of a name or a string
	from, to int
}

// lexMode is the part of a session's sql_mode that decides how statements are split into tokens.
type lexMode struct {
	ansi  bool // double quotes enclose names
	plain bool // a backslash in a string is an ordinary character
}

// modeOf parses a list of SQL modes. Some modes include several others.
func modeOf(list string) lexMode {
	var m lexMode
	for mode := range strings.SplitSeq(strings.ToUpper(list), ",") {
		switch strings.TrimSpace(mode) {
		case "ANSI_QUOTES", "ANSI", "ORACLE", "DB2", "MSSQL", "POSTGRESQL", "MAXDB":
			m.ansi = true
		case "NO_BACKSLASH_ESCAPES":
			m.plain = true
		}
	}
	return m
}

var (
	errNotClosed  = errors.New("a quote or a comment is not closed")
	errExecutable = errors.New("it has a comment that some servers execute")
	errZero       = errors.New("it has a zero byte")
)

// lex splits a statement into tokens. It rejects executable comments, which expandComments must
// remove first.
func lex(text string, m lexMode) ([]token, error) {
	var all []token
	for i := 0; i < len(text); {
		t, err := lexOne(text, i, m)
		if err != nil {
			return nil, err
		}
		if i = t.to; t.kind != endToken {
			all = append(all, t)
		}
	}
	return all, nil
}

// lexOne returns the token at a position of a statement. White space and comments are tokens of the
// kind endToken.
func lexOne(text string, i int, m lexMode) (token, error) {
	t := token{kind: endToken, from: i, to: i + 1}
	var err error
	switch c := text[i]; {
	case c == 0:
		return t, errZero
	case isSpace(c):
	case c == '/' && strings.HasPrefix(text[i:], "/*"):
		if executable(text[i:]) {
			return t, errExecutable
		}
		t.to, err = after(text, i+2, "*/")
	case c == '#', c == '-' && isDashComment(text[i:]):
		t.to, _ = after(text, i, "\n")
	case c == '`':
		t.kind = nameToken
		t.value, t.to, err = enclosed(text, i, false)
	case c == '\'', c == '"':
		t.kind = textToken
		if c == '"' && m.ansi {
			t.kind = nameToken
		}
		t.value, t.to, err = enclosed(text, i, t.kind == textToken && !m.plain)
	case isWordByte(c):
		t.kind = wordToken
		for t.to < len(text) && isWordByte(text[t.to]) {
			t.to++
		}
		t.value = text[i:t.to]
	default:
		t.kind, t.value = signToken, text[i:i+1]
	}
	return t, err
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isWordByte(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// executable reports whether text begins with a comment whose content servers execute.
func executable(text string) bool {
	return strings.HasPrefix(text, "/*!") || strings.HasPrefix(text, "/*M!") || strings.HasPrefix(text, "/*m!")
}

// isDashComment reports whether two dashes begin a comment. A space, a control character or the end
// of the text must follow them.
func isDashComment(text string) bool {
	return strings.HasPrefix(text, "--") && (len(text) == 2 || text[2] <= ' ' || text[2] == 0x7f)
}

// after returns the position after the next mark. If there is none, it returns an error and the end
// of the text.
func after(text string, i int, mark string) (int, error) {
	at := strings.Index(text[i:], mark)
	if at < 0 {
		return len(text), errNotClosed
	}
	return i + at + len(mark), nil
}

// enclosed reads from the quote at text[i] to its closing quote. A doubled quote represents one
// quote.
func enclosed(text string, i int, escapes bool) (value string, end int, err error) {
	var b strings.Builder
	quote := text[i]
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == 0:
			return "", len(text), errZero
		case c == '\\' && escapes && i+1 < len(text):
			i++
			b.WriteString(unescaped(text[i]))
		case c == quote && i+1 < len(text) && text[i+1] == quote:
			i++
			b.WriteByte(quote)
		case c == quote:
			return b.String(), i + 1, nil
		default:
			b.WriteByte(c)
		}
	}
	return "", len(text), errNotClosed
}

// unescaped returns the value of a character after a backslash.
func unescaped(c byte) string {
	switch c {
	case '0':
		return "\x00"
	case 'b':
		return "\b"
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case 't':
		return "\t"
	case 'Z':
		return "\x1a"
	case '%', '_':
		return "\\" + string(rune(c))
	}
	return string([]byte{c})
}

// expandComments returns a statement in which each executable comment is replaced by its content,
// or removed if run reports that the server does not execute it.
func expandComments(text string, m lexMode, run func(mariadb bool, version int) bool) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		if !executable(text[i:]) {
			t, err := lexOne(text, i, m)
			if err != nil {
				return "", err
			}
			b.WriteString(text[i:t.to])
			i = t.to
			continue
		}
		mariadb := text[i+2] != '!'
		i += len("/*!")
		if mariadb {
			i++
		}
		version, digits := 0, 0
		for ; digits < 6 && i < len(text) && isDigit(text[i]); digits++ {
			version = version*10 + int(text[i]-'0')
			i++
		}
		if digits != 0 && digits < 5 {
			return "", errExecutable
		}
		inside, end, err := untilClosed(text, i, m)
		if err != nil {
			return "", err
		}
		b.WriteByte(' ')
		if run(mariadb, version) {
			b.WriteString(inside)
			b.WriteByte(' ')
		}
		i = end
	}
	return b.String(), nil
}

// untilClosed returns the content of an executable comment, from text[i] on, and the position after
// the comment. It rejects nested executable comments.
func untilClosed(text string, i int, m lexMode) (inside string, end int, err error) {
	for from := i; i < len(text); {
		if strings.HasPrefix(text[i:], "*/") {
			return text[from:i], i + 2, nil
		}
		t, err := lexOne(text, i, m)
		if err != nil {
			return "", len(text), err
		}
		i = t.to
	}
	return "", len(text), errNotClosed
}

// reader reads the tokens of a statement in order.
type reader struct {
	text   string
	tokens []token
}

// read returns a reader of a statement that has no executable comments.
func read(text string, m lexMode) (*reader, error) {
	tokens, err := lex(text, m)
	return &reader{text, tokens}, err
}

func (r *reader) peek() token {
	if len(r.tokens) == 0 {
		return token{from: len(r.text), to: len(r.text)}
	}
	return r.tokens[0]
}

func (r *reader) ended() bool { return len(r.tokens) == 0 }

func (r *reader) skip() token {
	t := r.peek()
	if len(r.tokens) > 0 {
		r.tokens = r.tokens[1:]
	}
	return t
}

// is reports whether the next tokens are these words and signs. It ignores case.
func (r *reader) is(words ...string) bool {
	if len(r.tokens) < len(words) {
		return false
	}
	for i, w := range words {
		t := r.tokens[i]
		if t.kind != wordToken && t.kind != signToken || !strings.EqualFold(t.value, w) {
			return false
		}
	}
	return true
}

// accept consumes the next tokens if [reader.is] reports true.
func (r *reader) accept(words ...string) bool {
	if !r.is(words...) {
		return false
	}
	r.tokens = r.tokens[len(words):]
	return true
}

// valueOf consumes a token of one of these kinds.
func (r *reader) valueOf(kinds ...tokenKind) (string, bool) {
	t := r.peek()
	if !slices.Contains(kinds, t.kind) {
		return "", false
	}
	r.skip()
	return t.value, true
}

// name consumes a name, with or without quotes.
func (r *reader) name() (string, bool) { return r.valueOf(nameToken, wordToken) }

// quoted consumes a string.
func (r *reader) quoted() (string, bool) { return r.valueOf(textToken) }

// word consumes a word and returns it in lower case.
func (r *reader) word() (string, bool) {
	w, ok := r.valueOf(wordToken)
	return strings.ToLower(w), ok
}

// group consumes a group in parentheses and returns a reader of its tokens.
func (r *reader) group() (*reader, bool) {
	if !r.is("(") {
		return nil, false
	}
	for i, depth := 0, 0; i < len(r.tokens); i++ {
		depth += r.tokens[i].nesting()
		if depth == 0 {
			inside := &reader{r.text[:r.tokens[i].from], r.tokens[1:i]}
			r.tokens = r.tokens[i+1:]
			return inside, true
		}
	}
	return nil, false
}

// isSign reports whether the token is this character outside quotes.
func (t token) isSign(c string) bool { return t.kind == signToken && t.value == c }

// nesting returns 1 for an opening parenthesis, -1 for a closing one, and 0 for other tokens.
func (t token) nesting() int {
	switch {
	case t.isSign("("):
		return 1
	case t.isSign(")"):
		return -1
	}
	return 0
}

// items splits the remaining tokens at commas outside parentheses.
func (r *reader) items() []*reader {
	var all []*reader
	depth, from := 0, 0
	for i, t := range r.tokens {
		depth += t.nesting()
		if depth == 0 && t.isSign(",") {
			all = append(all, &reader{r.text[:t.from], r.tokens[from:i]})
			from = i + 1
		}
	}
	return append(all, &reader{r.text, r.tokens[from:]})
}

// rest returns the remaining text.
func (r *reader) rest() string { return strings.TrimSpace(r.text[r.peek().from:]) }

// until consumes everything up to one of these words outside parentheses, and returns the consumed
// text.
func (r *reader) until(words ...string) string {
	from, depth := r.peek().from, 0
	for !r.ended() {
		if depth == 0 {
			for _, w := range words {
				if r.is(strings.Fields(w)...) {
					return strings.TrimSpace(r.text[from:r.peek().from])
				}
			}
		}
		depth += r.skip().nesting()
	}
	return strings.TrimSpace(r.text[from:])
}
