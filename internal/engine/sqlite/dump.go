package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	codes "modernc.org/sqlite/lib"

	"snap"
	"snap/internal/engine"
)

// Dump implements [engine.Engine].
func (e Engine) Dump(ctx context.Context, raw string, w io.Writer, o engine.Options) (engine.Info, error) {
	if o.Subset != nil || !o.Choice.Empty() {
		return e.dumpPart(ctx, raw, w, o)
	}
	path, err := Path(raw)
	if err != nil {
		return engine.Info{}, err
	}
	file, err := os.Stat(path)
	if err != nil {
		return engine.Info{}, failure(path, err)
	}
	if !file.Mode().IsRegular() {
		return engine.Info{}, snap.Usage(fmt.Sprintf("%s is not a file", path), "use sqlite:///path/to/file")
	}
	s := &scratch{path: path, o: o, mode: "ro"}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.checkSource(ctx) })
	var info engine.Info
	g.Go(func() (err error) {
		info, err = s.dump(ctx, w)
		return err
	})
	return info, g.Wait()
}

// checkSource runs the checks of a load on the source database, so that a build fails if a load
// would refuse its snapshot.
func (s *scratch) checkSource(ctx context.Context) error {
	db, err := s.open(ctx, "ro", fewPages)
	if err != nil {
		return err
	}
	defer db.Close()
	checks, err := s.checks(ctx, db, engine.Info{})
	if err == nil {
		err = s.check(ctx, checks)
	}
	var wrong *snap.Error
	if errors.As(err, &wrong) && wrong.Code == snap.CodeCorrupt {
		if code(err) == codes.SQLITE_NOTADB {
			return failure(s.path, wrong.Cause)
		}
		e := *wrong
		e.Code = snap.CodeDatabase
		e.Detail = strings.Replace(wrong.Detail, "the database in the snapshot is damaged",
			"the database is damaged, so a snapshot of it could not be loaded", 1)
		e.Hint = "see what `PRAGMA integrity_check` reports; REINDEX repairs an index, and .recover of the " +
			"sqlite3 shell recovers rows"
		return &e
	}
	return failure(s.path, err)
}

// dump writes the whole file in one read transaction.
func (s *scratch) dump(ctx context.Context, w io.Writer) (engine.Info, error) {
	db, err := s.open(ctx, "ro")
	if err != nil {
		return engine.Info{}, err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return engine.Info{}, failure(s.path, err)
	}
	defer tx.Rollback()
	info, err := dump(ctx, tx, w, s.o)
	return info, failure(s.path, err)
}

// noTables returns the error for an empty file, which cannot be dumped.
func noTables() error {
	return snap.Invalid("the SQLite database has no tables", "create its tables first")
}

// dump writes all pages as the transaction sees them.
func dump(ctx context.Context, tx *sql.Tx, w io.Writer, o engine.Options) (engine.Info, error) {
	info := engine.Info{ServerVersion: codes.SQLITE_VERSION, Exists: true}
	var size, count int64
	if err := tx.QueryRowContext(ctx,
		"SELECT page_size, page_count FROM pragma_page_size, pragma_page_count").Scan(&size, &count); err != nil {
		return info, err
	}
	if count == 0 {
		return info, noTables()
	}
	o.Begin("count")
	all, err := tables(ctx, tx)
	if err != nil {
		return info, err
	}
	if err := measure(ctx, tx, all); err != nil {
		return info, err
	}
	info.Tables = labeled(all)
	if info.Schema, err = describe(ctx, tx); err != nil {
		return info, err
	}
	free, err := freePages(ctx, tx)
	if err != nil {
		return info, err
	}
	o.Begin("dump")
	info.Size = size * count
	out := &engine.Counter{W: w, O: o, Of: info.Size}
	return info, pages(ctx, tx, out, size, free)
}

// pages writes the pages in order. It writes zeros for the unused bytes of free pages.
func pages(ctx context.Context, tx *sql.Tx, w io.Writer, size int64, free map[int64]int) error {
	rows, err := tx.QueryContext(ctx, "SELECT pgno, data FROM sqlite_dbpage('main')")
	if err != nil {
		return err
	}
	defer rows.Close()
	zeros := make([]byte, size)
	var want int64
	for rows.Next() {
		var number int64
		var data sql.RawBytes
		if err := rows.Scan(&number, &data); err != nil {
			return err
		}
		want++
		if number != want || int64(len(data)) != size {
			return fmt.Errorf("received page %d with %d bytes instead of page %d", number, len(data), want)
		}
		if used, ok := free[number]; ok {
			data = append(data[:used:used], zeros[used:]...)
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("write the dump: %w", err)
		}
	}
	return rows.Err()
}

// freePages returns the pages of the free list (section 1.5 of
// https://www.sqlite.org/fileformat2.html), and how many bytes at the beginning of each are used.
// Bytes 32 to 35 of the header point to a chain of trunk pages. Each trunk page has the number of
// the next trunk page, the number of leaf pages that it lists, and their page numbers. Leaf pages
// are unused.
func freePages(ctx context.Context, tx *sql.Tx) (map[int64]int, error) {
	page := func(number int64) (b []byte, err error) {
		err = tx.QueryRowContext(ctx, "SELECT data FROM sqlite_dbpage('main') WHERE pgno = ?", number).Scan(&b)
		return b, err
	}
	head, err := page(1)
	if err != nil || len(head) < 100 {
		return nil, err
	}
	free, seen := map[int64]int{}, map[int64]bool{}
	trunk := int64(binary.BigEndian.Uint32(head[32:]))
	for trunk != 0 && !seen[trunk] {
		seen[trunk] = true
		b, err := page(trunk)
		if err != nil || len(b) < 8 {
			return free, err
		}
		leaves := int(min(int64(binary.BigEndian.Uint32(b[4:])), int64(len(b)/4-2)))
		for i := range leaves {
			free[int64(binary.BigEndian.Uint32(b[8+4*i:]))] = 0
		}
		free[trunk] = 8 + 4*leaves
		trunk = int64(binary.BigEndian.Uint32(b))
	}
	return free, nil
}
