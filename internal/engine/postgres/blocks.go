package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// The kinds of blocks.
const (
	blockData    = 1
	blockObjects = 3
)

// blocks calls do at the start of every block, after its kind and number.
func (d *dumpReader) blocks(do func(kind byte, id int) error) error {
	for {
		kind, err := d.r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != blockData && kind != blockObjects {
			return fmt.Errorf("a block of the unknown kind %d", kind)
		}
		id := d.int()
		if d.err != nil {
			return d.err
		}
		if err := do(kind, id); err != nil {
			return err
		}
		if d.err != nil {
			return d.err
		}
	}
}

// skip reads over a block and returns how many large objects it had.
func (d *dumpReader) skip(kind byte) (objects int) {
	if kind == blockData {
		d.chunks(func([]byte) {})
		return 0
	}
	for d.int() != 0 && d.err == nil {
		objects++
		d.chunks(func([]byte) {})
	}
	return objects
}

// lineReader reads the lines of one table's data across chunks.
type lineReader struct {
	d    *dumpReader
	left int // bytes of the chunk still to be read
	buf  []byte
}

// next returns the next row without its end of line, nil after the last. It is
// valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		if l.left == 0 {
			if l.left = l.d.int(); l.d.err != nil {
				return nil, l.d.err
			}
			if l.left == 0 { // only what stands after the rows has no end of line
				return nil, nil
			}
		}
		p, err := l.d.r.Peek(min(l.left, l.d.r.Size()))
		if err != nil {
			return nil, err
		}
		end := bytes.IndexByte(p, '\n')
		n := end + 1
		if end < 0 {
			n = len(p)
		}
		l.buf = append(l.buf, p[:n]...)
		l.left -= n
		if _, err := l.d.r.Discard(n); err != nil {
			return nil, err
		}
		if end < 0 {
			continue
		}
		line := l.buf[:len(l.buf)-1]
		if string(line) == `\.` { // the rows' end; empty lines follow
			return nil, l.rest()
		}
		return line, nil
	}
}

// rest reads to the block's end.
func (l *lineReader) rest() error {
	for {
		if _, err := l.d.r.Discard(l.left); err != nil {
			return err
		}
		if l.left = l.d.int(); l.d.err != nil || l.left == 0 {
			return l.d.err
		}
	}
}
