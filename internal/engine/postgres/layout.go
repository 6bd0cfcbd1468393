package postgres

import (
	"bufio"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

// layout is where the parts of an unpacked dump are, so that its tables can be
// loaded by several connections at a time.
type layout struct {
	setup  []string // statements for every session that loads: encoding, search path
	blocks []block  // the data of tables
	others []int    // the table of contents without the data of tables, in its order
}

// block is one table's data.
type block struct {
	schema, name string
	copy         string // the statement, without its semicolon
	fresh        bool   // the dump makes the table itself, and the data is for it alone
	offset, size int64  // of its chunks in the file
}

// empty reports whether there are no rows: nothing but one chunk with the mark
// of their end, and the end of the chunks.
func (b block) empty() bool { return b.size <= int64(5+len("\\.\n\n\n")+5) }

func (b block) key() [2]string { return [2]string{b.schema, b.name} }

func (b block) table() string { return pgx.Identifier{b.schema, b.name}.Sanitize() }

// counted counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// scan reads a dump to its end and returns its layout. An error means that it
// was not understood, or could not be read.
func scan(in io.Reader) (*layout, error) {
	from := &counted{r: in}
	d := &dumpReader{r: bufio.NewReaderSize(from, 1<<20)}
	d.header()
	entries := d.contents()
	if d.err != nil {
		return nil, d.err
	}
	l, at := layoutOf(entries)
	return l, d.blocks(func(kind byte, id int) error {
		begin := from.n - int64(d.r.Buffered())
		d.skip(kind)
		if i, ok := at[id]; ok && kind == blockData {
			l.blocks[i].offset, l.blocks[i].size = begin, from.n-int64(d.r.Buffered())-begin
		}
		return nil
	})
}

// layoutOf returns the layout without offsets, and which block has which number.
func layoutOf(entries []dumpEntry) (l *layout, at map[int]int) {
	l, at = &layout{}, map[int]int{}
	made := map[[2]string]bool{}
	for _, e := range entries {
		if e.desc == "TABLE" {
			made[[2]string{e.namespace, e.tag}] = true
		}
	}
	for _, e := range entries {
		switch e.desc {
		case "TABLE DATA":
			at[e.id] = len(l.blocks)
			l.blocks = append(l.blocks, block{
				schema: e.namespace, name: e.tag,
				copy: strings.TrimSuffix(strings.TrimSpace(e.copy), ";"),
				// Rows of some partitions go in through the root, and the tables of
				// an extension have rows of its own.
				fresh: made[[2]string{e.namespace, e.tag}] && !strings.Contains(e.definition, "load via partition root"),
			})
			continue
		case "ENCODING", "STDSTRINGS", "SEARCHPATH":
			l.setup = append(l.setup, e.definition)
		}
		l.others = append(l.others, e.id)
	}
	return l, at
}

// chunkReader reads the content of one block's chunks.
type chunkReader struct {
	d    *dumpReader
	left int
	seen func(bytes int)
}

func (b block) open(file io.ReaderAt, seen func(int)) *chunkReader {
	return &chunkReader{d: &dumpReader{r: bufio.NewReaderSize(io.NewSectionReader(file, b.offset, b.size), 256<<10), intSize: 4}, seen: seen}
}

// Read implements io.Reader. It fills p from as many chunks as it takes: a chunk
// is often one row, and every Read becomes a message to the server.
func (c *chunkReader) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if c.left > 0 {
			var got int
			got, err = c.d.r.Read(p[n:min(len(p), n+c.left)])
			c.left, n = c.left-got, n+got
			continue
		}
		if c.left, err = c.d.int(), c.d.err; err == nil && c.left <= 0 {
			err = io.EOF
		}
	}
	c.seen(n)
	return n, err
}

// failure is what kept a block from being read to its end, beside the end of
// its chunks.
func (c *chunkReader) failure() error { return c.d.err }
