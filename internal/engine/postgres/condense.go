package postgres

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"snap/internal/engine"
)

// chunkSize is how many bytes of rows are one chunk of a dump that is written
// here. pg_dump makes a chunk of every row, and each has a head of five bytes,
// to be written, compressed and read.
const chunkSize = 64 << 10

// endOfRows is what pg_dump writes behind a table's rows, each of which ends
// with an end of line.
const endOfRows = "\\.\n\n\n"

// condense rewrites a dump, unchanged except for the chunks, and returns how
// many rows it has of each table, by schema and name. The rows come from the
// relay, if there is one. A dump of a version that is not known is written as
// it is, without counts; with a relay it is errUnknownVersion, and nothing is
// written.
func condense(r io.Reader, via *relay, w io.Writer) (map[[2]string]int64, error) {
	d := &dumpReader{r: bufio.NewReaderSize(r, 1<<20), echo: &bytes.Buffer{}}
	d.header()
	entries := d.contents()
	head := d.echo.Bytes()
	d.echo = nil
	if errors.Is(d.err, io.EOF) || errors.Is(d.err, io.ErrUnexpectedEOF) {
		return nil, d.err
	}
	if d.err != nil && via != nil {
		return nil, errUnknownVersion
	}
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	if d.err != nil {
		_, err := io.Copy(w, d.r)
		return nil, err
	}
	counts, data := map[[2]string]int64{}, map[int][2]string{}
	for _, e := range entries {
		if e.desc == "TABLE DATA" {
			data[e.id] = [2]string{e.namespace, e.tag}
			counts[data[e.id]] = 0
		}
	}
	out := rewriter{d: d, out: bufio.NewWriterSize(w, 2*chunkSize), plan: engine.Plan{KeepLargeObjects: true}}
	err := d.blocks(func(kind byte, id int) error {
		if err := out.out.WriteByte(kind); err != nil {
			return err
		}
		out.int(id)
		if kind == blockObjects {
			return out.objects()
		}
		rows, err := out.rowsVia(via)
		if name, ok := data[id]; ok {
			counts[name] += rows
		}
		return err
	})
	return counts, errors.Join(err, out.out.Flush())
}

// rowsVia writes a block with the rows that the relay has kept of it, and returns
// how many they are.
func (r *rewriter) rowsVia(via *relay) (rows int64, err error) {
	if via == nil {
		return r.condensed()
	}
	err = via.nextTable(func(chunk []byte) error {
		rows += int64(bytes.Count(chunk, []byte("\n")))
		r.chunk(chunk)
		return r.d.err
	})
	if err != nil {
		return rows, err
	}
	r.d.chunks(func([]byte) {}) // what the relay has given pg_dump in their place
	r.chunk([]byte(endOfRows))
	r.int(0)
	return rows, r.d.err
}

// condensed copies a block of a table's rows and returns how many they are.
func (r *rewriter) condensed() (rows int64, err error) {
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
