package postgres

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// countRows reads a dump in pg_dump's custom format and returns how many rows
// it holds of each table, by schema and name. The format is that of
// pg_backup_archiver.c and pg_backup_custom.c, versions 1.14 (PostgreSQL 12 to
// 15), 1.15 (16) and 1.16 (17, 18): a header, a table of contents, and one
// block of chunks for each table's data.
//
// An error means that the stream was not understood; r may be anywhere in it.
func countRows(r *bufio.Reader) (map[[2]string]int64, error) {
	d := &dumpReader{r: r}
	d.header()
	entries := d.contents()
	if d.err != nil {
		return nil, d.err
	}
	counts, data := map[[2]string]int64{}, map[int][2]string{}
	for _, e := range entries {
		if e.desc == "TABLE DATA" {
			data[e.id] = [2]string{e.namespace, e.tag}
			counts[data[e.id]] = 0
		}
	}
	return counts, d.blocks(func(kind byte, id int) error {
		name, ok := data[id]
		if kind != blockData || !ok {
			d.skip(kind)
			return nil
		}
		counts[name] += d.rows()
		return nil
	})
}

// dumpReader reads the format's parts; the first error stays.
type dumpReader struct {
	r               *bufio.Reader
	version         int // major*100 + minor
	intSize, offset int
	echo            *bytes.Buffer // if set, gets what is read
	err             error
}

type dumpEntry struct {
	id                                     int
	tag, desc, definition, copy, namespace string
}

func (d *dumpReader) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *dumpReader) byte() byte {
	b, err := d.r.ReadByte()
	if err != nil {
		d.fail(err)
	}
	if d.echo != nil {
		d.echo.WriteByte(b)
	}
	return b
}

// int reads a number: a sign byte and intSize bytes, lowest first.
func (d *dumpReader) int() int {
	sign := d.byte()
	n := 0
	for i := range d.intSize {
		n |= int(d.byte()) << (8 * i)
	}
	if sign != 0 {
		return -n
	}
	return n
}

// text reads a string: its length, -1 for none, and its bytes.
func (d *dumpReader) text() string {
	n := d.int()
	if n < 0 || d.err != nil {
		return ""
	}
	if n > 256<<20 {
		d.fail(errors.New("a string is too long"))
		return ""
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(d.r, b); err != nil {
		d.fail(err)
	}
	if d.echo != nil {
		d.echo.Write(b)
	}
	return string(b)
}

func (d *dumpReader) header() {
	magic := make([]byte, 5)
	if _, err := io.ReadFull(d.r, magic); err != nil || string(magic) != "PGDMP" {
		d.fail(errors.New("not a dump in custom format"))
		return
	}
	if d.echo != nil {
		d.echo.Write(magic)
	}
	d.version = int(d.byte())*100 + int(d.byte())
	d.byte() // revision
	d.intSize, d.offset = int(d.byte()), int(d.byte())
	format := d.byte()
	if d.version < 114 || d.version > 116 || format != 1 || d.intSize != 4 || d.offset != 8 {
		d.fail(fmt.Errorf("unknown version %d or format %d", d.version, format))
		return
	}
	if d.version >= 115 {
		if d.byte() != 0 {
			d.fail(errors.New("it is compressed"))
		}
	} else if d.int() > 0 {
		d.fail(errors.New("it is compressed"))
	}
	for range 7 { // the time of the dump
		d.int()
	}
	for range 3 { // database, server and program
		d.text()
	}
}

func (d *dumpReader) contents() []dumpEntry {
	var all []dumpEntry
	for n := d.int(); n > 0 && d.err == nil; n-- {
		all = append(all, d.entry())
	}
	return all
}

// entry reads one entry of the table of contents.
func (d *dumpReader) entry() dumpEntry {
	e := dumpEntry{id: d.int()}
	d.int()  // whether it has data
	d.text() // catalog's oid
	d.text() // oid
	e.tag, e.desc = d.text(), d.text()
	d.int() // section
	e.definition = d.text()
	d.text() // drop statement
	e.copy = d.text()
	e.namespace = d.text()
	d.text() // tablespace
	d.text() // access method
	if d.version >= 116 {
		d.int() // kind of relation
	}
	d.text() // owner
	d.text() // "false"
	for d.err == nil && d.more() {
		d.text() // a dependency
	}
	for range 1 + d.offset { // where the data is
		d.byte()
	}
	return e
}

// more reports whether another string follows, and consumes the mark of none.
func (d *dumpReader) more() bool {
	sign, err := d.r.Peek(1)
	if err != nil {
		d.fail(err)
		return false
	}
	if sign[0] != 0 {
		d.int()
		return false
	}
	return true
}

// rows reads one table's data, in COPY's text format, and counts its lines.
// The data ends with the line \. and two empty ones.
func (d *dumpReader) rows() int64 {
	var lines int64
	var tail []byte
	d.chunks(func(p []byte) {
		lines += int64(bytes.Count(p, []byte("\n")))
		if len(p) >= 5 {
			tail = append(tail[:0], p[len(p)-5:]...)
		} else {
			tail = append(tail, p...)
			tail = tail[max(0, len(tail)-5):]
		}
	})
	if string(tail) == "\\.\n\n\n" {
		lines -= 3
	}
	return lines
}

// chunks reads chunks until one is empty.
func (d *dumpReader) chunks(see func([]byte)) {
	for n := d.int(); n > 0 && d.err == nil; n = d.int() {
		for n > 0 {
			p, err := d.r.Peek(min(n, d.r.Size()))
			if err != nil {
				d.fail(err)
				return
			}
			see(p)
			n -= len(p)
			if _, err := d.r.Discard(len(p)); err != nil {
				d.fail(err)
				return
			}
		}
	}
}
