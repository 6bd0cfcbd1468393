package postgres

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"snap"
	"snap/internal/engine"
	"snap/internal/engine/charset"
)

// A dump is in pg_dump's custom format, as defined by pg_backup_archiver.c and pg_backup_custom.c,
// in version 1.14 (PostgreSQL 12 to 15), 1.15 (16) or 1.16 (17 and 18). It has a header, a table of
// contents, and a block of chunks for each table's data.

// dumpReader reads a dump. It keeps the first error.
type dumpReader struct {
	r               *bufio.Reader
	version         int // major*100 + minor
	intSize, offset int
	echo            *bytes.Buffer                       // if set, receives a copy of the bytes read
	timeAt          int                                 // position in echo at which the time begins
	stored          *charset.Charset                    // of the dump's strings, set when the table of contents is read
	foreign         bool                                // not the user's own dump: its table of contents is bounded
	weight          int                                 // weight of the table of contents so far, see weigh
	lean            bool                                // keep only the entries that locate rows
	schema          func(kind, name string, sql []byte) // see engine.Plan; may overwrite what is in echo
	excluded        *exclusion                          // entries to remove, also from echo
	composites      map[[2]string][]engine.Column       // see engine.Contents; set by openDump
	longest         int                                 // maximum bytes of a row; 0 means no limit
	err             error
}

// newDumpReader returns a reader for a dump. in has the dump's bytes.
func newDumpReader(ctx context.Context, dump engine.Dump, in io.Reader) *dumpReader {
	d := &dumpReader{r: bufio.NewReaderSize(engine.Reader(ctx, in), 1<<20), foreign: dump.Trust != engine.Mine}
	if dump.Trust == engine.Foreign {
		d.longest = maxRow
	}
	return d
}

// dumpEntry is an entry of the table of contents. The tag and the namespace are readable labels.
// The statements are in the dump's encoding.
type dumpEntry struct {
	id                                     int
	tag, desc, definition, copy, namespace string
	broken                                 bool      // a string other than the statements has a line break
	columns                                []string  // of the rows, as labels; only set by a lean reader
	object                                 [2]string // the oids of its catalog and of its object
	needs                                  []string  // the ids of other entries
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

// int reads a number: a sign byte and intSize bytes, least significant first.
func (d *dumpReader) int() int {
	b, err := d.r.Peek(1 + d.intSize)
	if err != nil {
		d.fail(err)
		return 0
	}
	n := 0
	for i, c := range b[1:] {
		n |= int(c) << (8 * i)
	}
	if b[0] != 0 {
		n = -n
	}
	if d.echo != nil {
		d.echo.Write(b)
	}
	_, _ = d.r.Discard(len(b)) // cannot fail after Peek
	return n
}

// text reads a string: its length, or -1 if there is none, and its bytes.
func (d *dumpReader) text() string {
	n := d.int()
	if n < 0 || d.err != nil {
		return ""
	}
	if n > 256<<20 {
		d.fail(errors.New("a string is too long"))
		return ""
	}
	if d.weigh(n + 1 + d.intSize); d.err != nil {
		return ""
	}
	if d.lean && n > leanText {
		if _, err := io.CopyN(io.Discard, d.r, int64(n)); err != nil {
			d.fail(err)
		}
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
		d.fail(errors.New("it is not a dump in custom format"))
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
	if d.version >= 115 && d.byte() != 0 || d.version < 115 && d.int() > 0 {
		d.fail(errors.New("it is compressed"))
	}
	if d.echo != nil {
		d.timeAt = d.echo.Len()
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
	kept := 0
	removing := d.removing()
	for n := d.int(); n > 0 && d.err == nil; n-- {
		d.weigh(entryWeight)
		e := d.entry()
		if removing(e) {
			continue
		}
		if e.desc == "ENCODING" { // SET client_encoding = 'LATIN1';
			_, name, _ := strings.Cut(e.definition, "'")
			name, _, _ = strings.Cut(name, "'")
			d.stored = charsetOf(name)
		}
		if !d.lean {
			all = append(all, e)
		} else if e.desc == "TABLE DATA" || e.desc == "ENCODING" {
			if kept += len(e.definition) + len(e.copy) + len(e.tag); kept > leanBytes || len(all) == leanEntries {
				d.fail(errors.New("it has too many tables"))
			}
			all = append(all, e)
		}
	}
	for i, e := range all {
		all[i].tag, all[i].namespace = d.stored.Label(e.tag), d.stored.Label(e.namespace)
		if d.lean && e.desc == "TABLE DATA" {
			_, columns, err := parseCopy(e.copy)
			if err != nil {
				d.fail(err)
			}
			for _, c := range columns {
				all[i].columns = append(all[i].columns, d.stored.Label(c))
			}
			all[i].copy = ""
		}
	}
	return all
}

// removing returns a function to call after each entry. If the entry is left out, the function
// removes it from the echo and returns true. Call removing before the number of entries is read,
// because the function also corrects that number in the echo.
func (d *dumpReader) removing() func(dumpEntry) bool {
	if d.excluded == nil || d.echo == nil {
		return func(dumpEntry) bool { return false }
	}
	number, excluded := d.echo.Len(), map[string]bool{}
	end := number + 1 + d.intSize
	return func(e dumpEntry) bool {
		if !d.excluded.omits(e, excluded) || d.err != nil {
			end = d.echo.Len()
			return false
		}
		excluded[strconv.Itoa(e.id)] = true
		d.echo.Truncate(end)
		count := d.echo.Bytes()[number+1 : number+1+d.intSize]
		binary.LittleEndian.PutUint32(count, binary.LittleEndian.Uint32(count)-1)
		return true
	}
}

// weigh adds n to the weight of the table of contents. It fails if a dump that is not the user's
// own exceeds maxContents.
func (d *dumpReader) weigh(n int) {
	if d.weight += n; d.foreign && !d.lean && d.weight > maxContents {
		d.fail(errLargeContents)
	}
}

// maxContents limits the weight of the table of contents of a dump that is not the user's own. The
// weight is the bytes of its strings plus entryWeight for each entry. The table of contents needs
// up to four times its weight in memory. The limit is enough for about 10,000 tables.
const (
	maxContents = 20 << 20
	entryWeight = 300
)

var errLargeContents = &snap.Error{Code: snap.CodeInvalid,
	Detail: "the dump in the snapshot has too many objects for a snapshot that is not your own",
	Hint:   "load the snapshot without programs, or ask for a snapshot with fewer tables"}

// These are the limits of a lean reader: the longest string, all kept strings together, and the
// number of tables.
const (
	leanText    = 1 << 20
	leanBytes   = 64 << 20
	leanEntries = 100_000
)

// entry reads one entry of the table of contents.
func (d *dumpReader) entry() dumpEntry {
	e := dumpEntry{id: d.int()}
	d.int() // whether it has data
	e.object = [2]string{d.text(), d.text()}
	e.tag, e.desc = d.text(), d.text()
	d.int() // section
	e.definition = d.text()
	if d.schema != nil && d.echo != nil { // the definition is at the end of the echo
		all := d.echo.Bytes()
		d.schema(strings.ToLower(e.desc), e.tag, all[len(all)-len(e.definition):])
	}
	d.text() // drop statement
	e.copy = d.text()
	e.namespace = d.text()
	others := []string{e.tag, e.desc, e.namespace, d.text(), d.text()} // with the tablespace and the access method
	if d.version >= 116 {
		d.int() // kind of relation
	}
	others = append(others, d.text()) // the owner
	e.broken = strings.ContainsAny(strings.Join(others, ""), "\r\n\x00")
	d.text() // "false"
	for d.err == nil && d.more() {
		if need := d.text(); d.excluded != nil || d.foreign && !d.lean {
			e.needs = append(e.needs, need)
		}
	}
	for range 1 + d.offset { // where the data is
		d.byte()
	}
	return e
}

// more reports whether another string follows. If not, it consumes the end marker.
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

// chunks calls see for each part of the data up to the next empty chunk. A part is at most a chunk,
// and is valid until see returns.
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
			_, _ = d.r.Discard(len(p)) // cannot fail after Peek
		}
	}
}
