package postgres

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"snap/internal/engine"
)

// chunkSize is the size of the chunks that this package writes to a dump. pg_dump writes each row
// as a chunk of its own, with a header of five bytes that costs time to write, compress and read.
const chunkSize = 64 << 10

// endOfRows is the text that pg_dump writes after a table's rows, each of which is a line.
const endOfRows = "\\.\n\n\n"

// condense copies a dump with larger chunks, and returns the number of rows of each table, by
// schema and name. It does not copy entries that are left out. If there is a relay, condense reads
// the rows from the relay. A dump of an unknown version is copied unchanged, and no counts are
// returned. With a relay or an exclusion, condense writes nothing of such a dump and returns an
// error, which is errUnknownVersion if there is a relay.
func condense(r io.Reader, via *relay, excluded *exclusion, w io.Writer) (map[[2]string]tally, error) {
	d := &dumpReader{r: bufio.NewReaderSize(r, 1<<20), echo: &bytes.Buffer{}, excluded: excluded}
	d.header()
	entries := d.contents()
	head := d.echo.Bytes()
	if d.err == nil {
		clearTime(head[d.timeAt:])
	}
	d.echo = nil
	if errors.Is(d.err, io.EOF) || errors.Is(d.err, io.ErrUnexpectedEOF) {
		return nil, d.err
	}
	if d.err != nil && via != nil {
		return nil, errUnknownVersion
	}
	if d.err != nil && excluded != nil {
		return nil, fmt.Errorf("leave out objects: %w", d.err)
	}
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	if d.err != nil {
		_, err := io.Copy(w, d.r)
		return nil, err
	}
	counts, data := map[[2]string]tally{}, map[int][2]string{}
	for _, e := range entries {
		if e.desc == "TABLE DATA" {
			data[e.id] = [2]string{e.namespace, e.tag}
			counts[data[e.id]] = tally{}
		}
	}
	out := &rewriter{d: d, out: bufio.NewWriterSize(w, 2*chunkSize), plan: engine.Plan{KeepLargeObjects: true}}
	err := out.blocks(func(id int) error {
		before := out.wrote
		rows, err := out.relayRows(via)
		if name, ok := data[id]; ok {
			counts[name] = out.tally(rows, before)
		}
		return err
	})
	return counts, errors.Join(err, out.out.Flush())
}

// clearTime replaces the time in a dump's header with a constant, so that two dumps of the same
// data are equal. The fields of the time are seconds, minutes, hours, day, month, years since 1900,
// and daylight saving.
func clearTime(b []byte) {
	for i, v := range [7]byte{0, 0, 0, 1, 0, 70, 0} {
		copy(b[5*i:], []byte{0, v, 0, 0, 0}) // a sign and four bytes, lowest byte first
	}
}

// relayRows writes a block with the rows that the relay intercepted, and returns their number.
func (r *rewriter) relayRows(via *relay) (rows int64, err error) {
	if via == nil {
		return r.copyRows()
	}
	err = via.nextTable(func(chunk []byte) error {
		rows += int64(bytes.Count(chunk, []byte("\n")))
		r.chunk(chunk)
		return r.d.err
	})
	if err != nil {
		return rows, err
	}
	r.d.chunks(func([]byte) {}) // skip the padding that the relay sent to pg_dump instead
	r.chunk([]byte(endOfRows))
	r.int(0)
	return rows, r.d.err
}

// copyRows copies a block of a table's rows in larger chunks and returns the number of rows.
func (r *rewriter) copyRows() (rows int64, err error) {
	chunk := make([]byte, 0, 2*chunkSize)
	put := func() {
		rows += int64(bytes.Count(chunk, []byte("\n")))
		r.chunk(chunk)
		chunk = chunk[:0]
	}
	r.d.chunks(func(p []byte) {
		if len(chunk)+len(p) > chunkSize {
			put()
		}
		chunk = append(chunk, p...)
	})
	if bytes.HasSuffix(chunk, []byte(endOfRows)) {
		rows -= int64(bytes.Count([]byte(endOfRows), []byte("\n")))
	}
	put()
	r.int(0)
	return rows, r.d.err
}
