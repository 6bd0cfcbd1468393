package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"snap"
)

// loadData fills the tables as they are unpacked, the largest first. jobs is the maximum number of
// connections. It returns the number of rows that the server reported for each table. A table that
// the load has created is filled with FREEZE, in the transaction that created or truncated it, so
// that later steps need not visit its rows again. A table that several sessions fill cannot use
// FREEZE. When one of several sessions has no tables left to fill, the analysis of the filled
// tables starts. loadData fails if unpacking failed.
func (s *scratch) loadData(ctx context.Context, u *unpacking, jobs int, stats *analysis) (map[[2]string]int64, error) {
	var mu sync.Mutex
	counts, report := map[[2]string]int64{}, s.progress()
	loadCtx := ctx
	g, ctx := errgroup.WithContext(ctx)
	for range jobs {
		g.Go(func() error {
			if jobs > 1 {
				defer stats.start(loadCtx, s, u.layout.setup)
			}
			b := u.rows.next()
			if b == nil {
				return nil
			}
			conn, err := s.session(ctx, u.layout.setup)
			if err != nil {
				return err
			}
			defer s.release(ctx, conn)
			for ; b != nil; b = u.rows.next() {
				rows, err := s.loadBlock(ctx, conn, b, u.rows.rows(b, report))
				if err != nil {
					return s.dataFailure(b, err)
				}
				mu.Lock()
				counts[b.key()] += rows
				mu.Unlock()
				if b.analyzable && !b.shared {
					stats.filled <- b.table()
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return counts, u.rows.wait()
}

// progress returns the function that loading sessions call with the number of bytes that they have
// loaded.
func (s *scratch) progress() func(int) {
	var mu sync.Mutex
	var done int64
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(n)
		s.o.Report(done, s.size)
	}
}

// session connects as pg_restore does, with the dump's encoding and search path.
func (s *scratch) session(ctx context.Context, setup []string) (*pgx.Conn, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	statements := append([]string{"SET row_security = off; SET client_min_messages = warning; " +
		"SET xmloption = content; SET synchronous_commit = off"}, setup...)
	for _, statement := range statements {
		if _, err := conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			s.release(ctx, conn)
			return nil, s.db.failure(err)
		}
	}
	return conn, nil
}

func (s *scratch) loadBlock(ctx context.Context, conn *pgx.Conn, b *block, rows io.Reader) (int64, error) {
	pg := conn.PgConn()
	if !b.fresh || b.shared || s.inTransaction() {
		first := ""
		if b.fresh && s.inTransaction() { // the same transaction created the table
			first = "FREEZE"
		}
		tag, err := pg.CopyFrom(ctx, rows, b.copy+b.options(first))
		return tag.RowsAffected(), err
	}
	if _, err := pg.Exec(ctx, "BEGIN; TRUNCATE TABLE ONLY "+b.table()).ReadAll(); err != nil {
		return 0, err
	}
	tag, err := pg.CopyFrom(ctx, rows, b.copy+b.options("FREEZE"))
	if err != nil {
		return 0, err
	}
	_, err = pg.Exec(ctx, "COMMIT").ReadAll()
	return tag.RowsAffected(), err
}

// options returns the options of the COPY statement that loads the rows. The parameter first is the
// first option, or "".
func (b *block) options(first string) string {
	var all []string
	if first != "" {
		all = append(all, first)
	}
	if b.encoding != "" {
		all = append(all, "ENCODING "+quoteText(b.encoding))
	}
	if len(all) == 0 {
		return ""
	}
	return " WITH (" + strings.Join(all, ", ") + ")"
}

// dataFailure returns the error for a table whose rows could not be loaded.
func (s *scratch) dataFailure(b *block, err error) error {
	err = s.db.failure(err)
	var known *snap.Error
	if errors.As(err, &known) && known.Code == snap.CodeDatabase && state(err) != "" {
		e := *known
		e.Detail = fmt.Sprintf("the rows of the table %s.%s cannot be loaded: %s", b.schema, b.name, message(err))
		return &e
	}
	return err
}

// useList writes the file for pg_restore's --use-list, which lists the entries to restore. Each
// line begins with the number of an entry.
func useList(dir string, entries []int) (path string, err error) {
	var text strings.Builder
	for _, id := range entries {
		fmt.Fprintf(&text, "%d;\n", id)
	}
	file, err := os.CreateTemp(dir, "restore-*.list")
	if err != nil {
		return "", fmt.Errorf("create a temporary file: %w", err)
	}
	_, err = file.WriteString(text.String())
	return file.Name(), errors.Join(err, file.Close())
}
