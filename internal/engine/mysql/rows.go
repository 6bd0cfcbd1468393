package mysql

import (
	"bytes"
	"io"
	"strings"

	"snap"
)

func badDump(cause error) error {
	return &snap.Error{Code: snap.CodeCorrupt, Detail: "the snapshot does not hold a dump of a MySQL database", Hint: "build it again", Cause: cause}
}

// rowCounter passes a dump on and counts the rows of its INSERT statements by
// table. It follows SQL's quoting byte by byte.
type rowCounter struct {
	w     io.Writer
	rows  map[string]int64
	state func(*rowCounter, byte)
	word  []byte // the statement's start, up to the table's name, or a word
	table string
	depth int
	back  func(*rowCounter, byte) // the state after a quoted text
	quote byte
	skip  bool // the next byte is escaped
}

func newRowCounter(w io.Writer) *rowCounter {
	return &rowCounter{w: w, rows: map[string]int64{}, state: (*rowCounter).start}
}

// Write implements io.Writer.
func (c *rowCounter) Write(p []byte) (int, error) {
	for i := 0; i < len(p); i++ {
		if c.quote != 0 && !c.skip { // most bytes are inside of texts
			n := bytes.IndexAny(p[i:], string([]byte{c.quote, '\\'}))
			if n < 0 {
				break
			}
			i += n
		}
		c.state(c, p[i])
	}
	return c.w.Write(p)
}

const insertStart = "INSERT INTO `"

// start waits for an INSERT at the start of a line.
func (c *rowCounter) start(b byte) {
	c.word = append(c.word, b)
	switch {
	case string(c.word) == insertStart:
		c.word, c.state = c.word[:0], (*rowCounter).name
	case !strings.HasPrefix(insertStart, string(c.word)):
		c.word, c.state = c.word[:0], (*rowCounter).other
		c.other(b)
	}
}

// other passes by a line that is no INSERT. Quoted texts may span lines only
// with their line ends escaped.
func (c *rowCounter) other(b byte) {
	if b == '\n' {
		c.state = (*rowCounter).start
	}
}

// name reads the table's name; a doubled quote is one of the name's.
func (c *rowCounter) name(b byte) {
	c.word = append(c.word, b)
	if n := len(c.word); b != '`' && n > 1 && c.word[n-2] == '`' && bytes.Count(c.word[:n-1], []byte("`"))%2 == 1 {
		c.table = strings.ReplaceAll(string(c.word[:n-2]), "``", "`")
		c.word, c.depth, c.state = c.word[:0], 0, (*rowCounter).columns
	}
}

// columns passes by a list of columns, to the word VALUES.
func (c *rowCounter) columns(b byte) {
	switch {
	case b == '`':
		c.quoted(b, (*rowCounter).columns)
	case b == 'S' && string(c.word) == "VALUE":
		c.word, c.state = c.word[:0], (*rowCounter).values
	case b >= 'A' && b <= 'Z':
		c.word = append(c.word, b)
	default:
		c.word = c.word[:0]
	}
}

// values counts the opening parentheses of rows.
func (c *rowCounter) values(b byte) {
	switch b {
	case '(':
		if c.depth == 0 {
			c.rows[c.table]++
		}
		c.depth++
	case ')':
		c.depth--
	case '\'', '"':
		c.quoted(b, (*rowCounter).values)
	case ';':
		if c.depth == 0 {
			c.state = (*rowCounter).other
		}
	}
}

// quoted passes by a quoted text.
func (c *rowCounter) quoted(quote byte, back func(*rowCounter, byte)) {
	c.quote, c.back, c.state = quote, back, (*rowCounter).text
}

func (c *rowCounter) text(b byte) {
	switch {
	case c.skip:
		c.skip = false
	case b == '\\' && c.quote != '`':
		c.skip = true
	case b == c.quote: // a doubled one opens the next text at once
		c.quote, c.state = 0, c.back
	}
}
