package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"snap"
)

// The kinds of blocks.
const (
	blockData    = 1
	blockObjects = 3
)

// blocks calls do for every block, after it has read the block's kind and number.
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
			return fmt.Errorf("a block has the unknown kind %d", kind)
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

// skip discards a block and returns the number of large objects in it.
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
	d       *dumpReader
	left    int    // bytes of the chunk that the dump reader has not discarded
	peeked  int    // size of the current piece, which is peeked and not discarded
	unread  []byte // the end of the current piece that next has not returned
	partial []byte // the beginning of a line, from earlier pieces
}

// maxRow limits the size of a row in a dump from another organization or of unknown origin, because
// masking and comparing keep a few copies of a row in memory. A load keeps no copy and has no
// limit.
const maxRow = 16 << 20

var errLongRow = &snap.Error{Code: snap.CodeInvalid,
	Detail: "a row in the snapshot is larger than 16 MiB; such rows are only read from snapshots of your organization",
	Hint:   "load the snapshot, then build a new one from the loaded database"}

// next returns the next row without its end of line, or nil after the last one. The row is valid
// until the next call.
func (l *lineReader) next() ([]byte, error) {
	l.partial = l.partial[:0]
	for {
		end := bytes.IndexByte(l.unread, '\n')
		if end < 0 {
			if err := l.keep(l.unread); err != nil {
				return nil, err
			}
			if err := l.advance(); err != nil || l.left == 0 { // at the end of the block
				return nil, err
			}
			continue
		}
		line := l.unread[:end]
		l.unread = l.unread[end+1:]
		if len(l.partial) > 0 {
			if err := l.keep(line); err != nil {
				return nil, err
			}
			line = l.partial
		}
		if string(line) == `\.` { // the end of the rows; empty lines follow
			return nil, l.rest()
		}
		return line, nil
	}
}

// keep appends a piece of a line to l.partial.
func (l *lineReader) keep(piece []byte) error {
	if l.d.longest > 0 && len(l.partial)+len(piece) > l.d.longest {
		return errLongRow
	}
	l.partial = append(l.partial, piece...)
	return nil
}

// advance peeks the next piece of the block. left is 0 if there is none.
func (l *lineReader) advance() error {
	_, _ = l.d.r.Discard(l.peeked) // cannot fail after Peek
	if l.left -= l.peeked; l.left == 0 {
		l.left = l.d.int()
	}
	l.peeked = min(l.left, l.d.r.Size())
	if l.d.err == nil {
		l.unread, l.d.err = l.d.r.Peek(l.peeked)
	}
	return l.d.err
}

// rest discards the rest of the block.
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
