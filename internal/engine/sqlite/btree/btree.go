// Package btree reads the rows of a SQLite database file without SQLite.
//
// It is for untrusted files. The package uses bounded memory and reads every page at most once,
// whatever a file claims. It returns [ErrDamaged] for content that SQLite would not have written.
// Section numbers refer to SQLite's description of the format,
// https://www.sqlite.org/fileformat2.html.
package btree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrDamaged is wrapped by all errors about files that violate the format.
var ErrDamaged = errors.New("not a valid SQLite file")

// MaxRow is the maximum size of a row in bytes.
const MaxRow = 16 << 20

// ErrRow is wrapped by the error about a row larger than [MaxRow].
var ErrRow = fmt.Errorf("a row has more than %d MiB", MaxRow>>20)

// maxDepth is the maximum number of levels of a tree, as in SQLite.
const maxDepth = 20

// Encoding is the text encoding of a file.
type Encoding uint32

// The encodings, by their numbers in the file.
const (
	UTF8    Encoding = 1
	UTF16LE Encoding = 2
	UTF16BE Encoding = 3
)

// Header is the information in a file's header (section 1.3).
type Header struct {
	PageSize      int
	Encoding      Encoding
	UserVersion   int32
	ApplicationID int32
	AutoVacuum    bool
	Incremental   bool // AutoVacuum is incremental
	WAL           bool
}

// File is an open database file.
type File struct {
	Header
	in     io.ReaderAt
	usable int    // usable bytes of a page
	pages  uint32 // number of pages
	seen   []byte // one bit for each page, set when the page is read
}

// Open reads the header of a file. size is the file's size in bytes.
func Open(in io.ReaderAt, size int64) (*File, error) {
	var b [100]byte
	if _, err := in.ReadAt(b[:], 0); errors.Is(err, io.EOF) || err == nil && string(b[:16]) != "SQLite format 3\x00" {
		return nil, damaged("it has no header")
	} else if err != nil {
		return nil, err
	}
	f := &File{in: in}
	f.PageSize = int(binary.BigEndian.Uint16(b[16:]))
	if f.PageSize == 1 {
		f.PageSize = 65536
	}
	f.usable = f.PageSize - int(b[20])
	if f.PageSize < 512 || f.PageSize&(f.PageSize-1) != 0 || f.usable < 480 {
		return nil, damaged("its page size is invalid")
	}
	f.WAL = b[18] == 2 && b[19] == 2
	f.AutoVacuum = binary.BigEndian.Uint32(b[52:]) != 0
	f.Incremental = f.AutoVacuum && binary.BigEndian.Uint32(b[64:]) != 0
	f.Encoding = Encoding(binary.BigEndian.Uint32(b[56:]))
	if f.Encoding == 0 { // a file without tables
		f.Encoding = UTF8
	}
	if f.Encoding > UTF16BE {
		return nil, damaged("its text encoding is unknown")
	}
	f.UserVersion = int32(binary.BigEndian.Uint32(b[60:]))
	f.ApplicationID = int32(binary.BigEndian.Uint32(b[68:]))
	pages := size / int64(f.PageSize)
	if pages < 1 || pages > 1<<32-2 {
		return nil, damaged("its size is invalid")
	}
	f.pages, f.seen = uint32(pages), make([]byte, pages/8+1)
	return f, nil
}

func damaged(why string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(why, args...))
}

// page reads a page. It fails if the page was read before, because in a valid file every page has
// one use.
func (f *File) page(number uint32, into []byte) error {
	if number < 1 || number > f.pages {
		return damaged("it refers to page %d of %d", number, f.pages)
	}
	at, bit := number/8, byte(1)<<(number%8)
	if f.seen[at]&bit != 0 {
		return damaged("page %d is used twice", number)
	}
	f.seen[at] |= bit
	_, err := f.in.ReadAt(into, int64(number-1)*int64(f.PageSize))
	if errors.Is(err, io.EOF) {
		return damaged("page %d is truncated", number)
	}
	return err
}

// Rows calls row for every row, in order, of the table whose tree has this root page. The payload
// is valid until row returns. [File.Values] decodes it. A tree can be read only once.
func (f *File) Rows(root uint32, row func(rowid int64, payload []byte) error) error {
	w := f.walk(row)
	w.rowids = true
	return w.page(root, 0)
}

// Keys calls row for every row of a table WITHOUT ROWID, as [File.Rows] does.
func (f *File) Keys(root uint32, row func(payload []byte) error) error {
	return f.walk(func(_ int64, payload []byte) error { return row(payload) }).page(root, 0)
}

func (f *File) walk(row func(rowid int64, payload []byte) error) *walk {
	return &walk{File: f, row: row, overflow: make([]byte, f.PageSize)}
}

// walk reads a tree.
type walk struct {
	*File
	rowids   bool // the rows of the tree have rowids; otherwise it is a tree of keys
	row      func(rowid int64, payload []byte) error
	levels   [][]byte // one page buffer for each level
	overflow []byte
	long     []byte // a payload that includes overflow pages
	last     int64  // the previous rowid, if any
	started  bool   // last is set: a row was read
	leaves   int    // number of levels of the tree; 0 before the first leaf
}

// The types of pages (section 1.6).
const (
	interiorKeys = 2
	interiorRows = 5
	leafKeys     = 10
	leafRows     = 13
)

// page reads a page of the tree and the pages below it.
func (w *walk) page(number uint32, level int) error {
	if level >= maxDepth {
		return damaged("a tree has too many levels")
	}
	for len(w.levels) <= level {
		w.levels = append(w.levels, make([]byte, w.PageSize))
	}
	b := w.levels[level]
	if err := w.File.page(number, b); err != nil {
		return err
	}
	n := node{b: b[:w.usable], number: number}
	if number == 1 {
		n.head = 100
	}
	switch kind := n.b[n.head]; {
	case w.rowids && kind == leafRows, !w.rowids && kind == leafKeys:
		return w.leaf(n, level)
	case w.rowids && kind == interiorRows, !w.rowids && kind == interiorKeys:
		return w.interior(n, level)
	}
	return damaged("page %d is of the wrong kind for its tree", number)
}

// node is a page of a tree.
type node struct {
	b      []byte // its usable bytes
	head   int    // where its header begins
	number uint32
}

// cells returns the number of cells of a page, and the offset of the pointers to them.
func (n node) cells(headerSize int) (count, pointers int, err error) {
	count, pointers = int(binary.BigEndian.Uint16(n.b[n.head+3:])), n.head+headerSize
	if pointers+2*count > len(n.b) {
		return 0, 0, damaged("page %d has too many cells", n.number)
	}
	return count, pointers, nil
}

// cell returns the bytes from a cell's beginning to the page's end.
func (n node) cell(pointers, count, i int) ([]byte, error) {
	at := int(binary.BigEndian.Uint16(n.b[pointers+2*i:]))
	if at < pointers+2*count || at >= len(n.b) {
		return nil, damaged("a cell of page %d is out of bounds", n.number)
	}
	return n.b[at:], nil
}

func (w *walk) leaf(n node, level int) error {
	if w.leaves == 0 {
		w.leaves = level + 1
	}
	if w.leaves != level+1 {
		return damaged("page %d is not on its tree's last level", n.number)
	}
	count, pointers, err := n.cells(8)
	for i := 0; i < count && err == nil; i++ {
		var cell []byte
		if cell, err = n.cell(pointers, count, i); err == nil {
			err = w.cell(cell)
		}
	}
	return err
}

func (w *walk) interior(n node, level int) error {
	count, pointers, err := n.cells(12)
	if err != nil {
		return err
	}
	for i := range count {
		cell, err := n.cell(pointers, count, i)
		if err != nil {
			return err
		}
		if len(cell) < 5 {
			return damaged("a cell of page %d is truncated", n.number)
		}
		if err := w.page(binary.BigEndian.Uint32(cell), level+1); err != nil {
			return err
		}
		if w.rowids {
			continue
		}
		if err := w.cell(cell[4:]); err != nil {
			return err
		}
	}
	return w.page(binary.BigEndian.Uint32(n.b[n.head+8:]), level+1)
}

// cell reads a cell with a payload: the payload's length, the rowid if the tree has rowids, and the
// payload.
func (w *walk) cell(cell []byte) error {
	length, n := uvarint(cell)
	if n == 0 {
		return damaged("a cell is truncated")
	}
	cell = cell[n:]
	var rowid int64
	if w.rowids {
		u, n := uvarint(cell)
		if n == 0 {
			return damaged("a cell is truncated")
		}
		rowid, cell = int64(u), cell[n:]
		if w.started && rowid <= w.last {
			return damaged("rowids are not in ascending order")
		}
		w.last, w.started = rowid, true
	}
	payload, err := w.payload(cell, length)
	if err != nil {
		return err
	}
	return w.row(rowid, payload)
}

// payload returns the payload of a cell, including the bytes on overflow pages (section 1.6, "Cell
// payload overflow pages").
func (w *walk) payload(cell []byte, length uint64) ([]byte, error) {
	if length > MaxRow {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrRow, length)
	}
	most, least := w.usable-35, (w.usable-12)*32/255-23
	if !w.rowids {
		most = (w.usable-12)*64/255 - 23
	}
	total := int(length)
	local := total
	if total > most {
		if local = least + (total-least)%(w.usable-4); local > most {
			local = least
		}
	}
	if local > len(cell) {
		return nil, damaged("a cell is truncated")
	}
	if local == total {
		return cell[:total], nil
	}
	if len(cell) < local+4 {
		return nil, damaged("a cell is truncated")
	}
	w.long = append(slices.Grow(w.long[:0], min(total, int(w.pages)*w.PageSize)), cell[:local]...)
	err := w.readOverflow(binary.BigEndian.Uint32(cell[local:]), total)
	return w.long, err
}

// readOverflow appends the content of the overflow pages to w.long.
func (w *walk) readOverflow(next uint32, total int) error {
	for len(w.long) < total {
		if err := w.File.page(next, w.overflow); err != nil {
			return err
		}
		w.long = append(w.long, w.overflow[4:4+min(w.usable-4, total-len(w.long))]...)
		next = binary.BigEndian.Uint32(w.overflow)
	}
	return nil
}

// uvarint reads a number of up to nine bytes (section 1.6, "varint"). It returns the number and its
// length, which is 0 if the number is truncated.
func uvarint(b []byte) (uint64, int) {
	var v uint64
	for i := range min(len(b), 8) {
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	if len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}
