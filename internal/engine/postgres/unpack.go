package postgres

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"snap"
	"snap/internal/disk"
	"snap/internal/engine"
	"snap/internal/schema"
)

// unpacking splits a dump into a file for pg_restore and a spool. The file contains everything
// except the rows of tables, and the spool contains the rows. Unpacked tables can be loaded while
// the rest of the dump is still being read.
type unpacking struct {
	file *os.File // for pg_restore; complete when the spool has ended
	rows *spool

	review    *review        // nil if the entries are not checked
	described *schema.Schema // description of a foreign dump, for which file has only the large objects

	// known is closed when layout is set and the file has the table of contents, or when unpacking has
	// ended without a layout.
	known  chan struct{}
	layout *layout // nil if unpacking failed, or if the dump has an unknown version and file has the whole dump
}

func newUnpacking(dir string) (*unpacking, error) {
	file, err := os.CreateTemp(dir, "restore-*.dump")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
	}
	rows, err := newSpool(dir)
	if err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, err
	}
	return &unpacking{file: file, rows: rows, known: make(chan struct{})}, nil
}

// remove removes the files.
func (u *unpacking) remove() {
	u.file.Close()
	os.Remove(u.file.Name())
	u.rows.remove()
}

// run unpacks the dump for a number of loading sessions. It reads the whole dump, so that all
// damage has been found when run returns.
func (u *unpacking) run(ctx context.Context, dump engine.Dump, jobs int) error {
	err := u.parts(ctx, dump, jobs)
	if errors.Is(err, errUnknownVersion) {
		if u.described != nil || u.review != nil {
			return u.finish(errUnreadable)
		}
		err = u.copyUnchanged(ctx, dump)
	}
	return u.finish(err)
}

// finish ends the spool. err must not be nil if unpacking failed.
func (u *unpacking) finish(err error) error {
	if disk.Full(err) {
		err = &snap.Error{Code: snap.CodeStorageFull,
			Detail: "there is not enough disk space to unpack the snapshot",
			Hint:   "free some space in the data folder; nothing was replaced", Cause: err}
	}
	u.rows.close(err)
	if u.layout == nil {
		close(u.known)
	}
	return err
}

var errUnknownVersion = errors.New("the dump has an unknown version")

var errUnreadable = &snap.Error{Code: snap.CodeCorrupt,
	Detail: "the dump in the snapshot is damaged or has an unknown version",
	Hint:   "ask the snapshot's author to rebuild it; nothing was replaced"}

// parts unpacks a dump of a known version.
func (u *unpacking) parts(ctx context.Context, dump engine.Dump, jobs int) error {
	in, err := dump.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	from := &errReader{r: engine.Reader(ctx, in)}
	d := &dumpReader{r: bufio.NewReaderSize(from, 1<<20), echo: &bytes.Buffer{}, foreign: dump.Trust != engine.Mine}
	if u.described != nil {
		d.echo, d.lean = nil, true
	}
	d.header()
	entries := d.contents()
	if from.err != nil {
		return from.err
	}
	if errors.Is(d.err, errLargeContents) {
		return errLargeContents
	}
	if d.err != nil {
		return errUnknownVersion
	}
	if err := u.deriveLayout(d, entries); err != nil {
		return err
	}
	u.layout.share(dump.Info.Tables, jobs)
	close(u.known)
	return u.data(d, from)
}

// deriveLayout derives the layout from the entries.
func (u *unpacking) deriveLayout(d *dumpReader, entries []dumpEntry) (err error) {
	if u.described != nil {
		u.layout, err = matchedLayout(entries, u.described, parentsOf(u.described))
		return err
	}
	if _, err := u.file.Write(d.echo.Bytes()); err != nil {
		return err
	}
	d.echo = nil
	l := layoutOf(entries)
	if u.review != nil {
		u.review.stored = d.stored
		if l.others, l.extensions, err = u.review.entries(entries); err != nil {
			return err
		}
	}
	u.layout = l
	return nil
}

// data unpacks the blocks after the table of contents.
func (u *unpacking) data(d *dumpReader, from *errReader) error {
	rest := &rewriter{d: d, out: bufio.NewWriter(u.file), plan: engine.Plan{KeepLargeObjects: true}}
	err := d.blocks(func(kind byte, id int) error {
		if b := u.layout.tables[id]; b != nil && kind == blockData {
			return u.table(d, b)
		}
		if u.described != nil && kind == blockData {
			d.skip(kind)
			return d.err
		}
		return rest.block(kind, id, rest.copyData)
	})
	switch {
	case from.err != nil:
		return from.err
	case d.err != nil:
		return &snap.Error{Code: snap.CodeCorrupt, Detail: "the dump in the snapshot is damaged",
			Hint: "rebuild the snapshot; nothing was replaced", Cause: d.err}
	}
	return errors.Join(err, rest.out.Flush())
}

// table unpacks a table's rows.
func (u *unpacking) table(d *dumpReader, b *block) error {
	var err error
	u.rows.begin(b)
	d.chunks(func(p []byte) {
		if err == nil {
			err = u.rows.write(b, p)
		}
	})
	if err := errors.Join(err, d.err); err != nil {
		return err
	}
	return u.rows.finish(b)
}

// copyData copies the data of a block unchanged.
func (r *rewriter) copyData(int) error {
	r.d.chunks(r.chunk)
	r.int(0)
	return r.d.err
}

// copyUnchanged copies the dump into the file unchanged.
func (u *unpacking) copyUnchanged(ctx context.Context, dump engine.Dump) error {
	in, err := dump.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(u.file, engine.Reader(ctx, in))
	return err
}

// errReader remembers an error of its reader, so that callers can tell whether reading failed or
// the dump is damaged.
type errReader struct {
	r   io.Reader
	err error
}

func (f *errReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}
