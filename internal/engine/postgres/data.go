package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"snap"
)

// loadData fills the tables from the unpacked dump, the biggest first and as
// many at a time as there are jobs, and returns how many rows the server took
// for each. A table that the load has just made is filled frozen, in the
// transaction that emptied it: what comes after need not visit its rows again.
func (s *scratch) loadData(ctx context.Context, path string, l *layout) (map[[2]string]int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the unpacked dump: %w", err)
	}
	defer file.Close()
	blocks := slices.DeleteFunc(slices.Clone(l.blocks), block.empty)
	slices.SortStableFunc(blocks, func(a, b block) int { return cmp.Compare(b.size, a.size) })
	next, taken := sync.Mutex{}, 0
	take := func() (b block, ok bool) {
		next.Lock()
		defer next.Unlock()
		if taken == len(blocks) {
			return b, false
		}
		taken++
		return blocks[taken-1], true
	}
	counts, done := map[[2]string]int64{}, s.progress(blocks)
	g, ctx := errgroup.WithContext(ctx)
	for range min(max(1, s.o.Jobs), max(1, len(blocks))) {
		g.Go(func() error {
			conn, err := s.session(ctx, l.setup)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			for b, ok := take(); ok; b, ok = take() {
				rows, err := loadBlock(ctx, conn, b, b.open(file, done))
				if err != nil {
					return s.dataFailure(b, err)
				}
				next.Lock()
				counts[b.key()] += rows
				next.Unlock()
			}
			return nil
		})
	}
	return counts, g.Wait()
}

// progress returns what loaders report their bytes to.
func (s *scratch) progress(blocks []block) func(int) {
	var mu sync.Mutex
	var done, total int64
	for _, b := range blocks {
		total += b.size
	}
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(n)
		s.o.Report(done, total)
	}
}

// session connects as pg_restore does: without limits, and with the dump's
// encoding and search path.
func (s *scratch) session(ctx context.Context, setup []string) (*pgx.Conn, error) {
	conn, err := s.here.connect(ctx)
	if err != nil {
		return nil, err
	}
	statements := append([]string{
		"SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET row_security = off; SET client_min_messages = warning; SET xmloption = content; SET synchronous_commit = off",
	}, setup...)
	for _, statement := range statements {
		if _, err := conn.PgConn().Exec(ctx, statement).ReadAll(); err != nil {
			conn.Close(context.WithoutCancel(ctx))
			return nil, s.here.failure(err)
		}
	}
	return conn, nil
}

func loadBlock(ctx context.Context, conn *pgx.Conn, b block, rows *chunkReader) (int64, error) {
	pg := conn.PgConn()
	if !b.fresh {
		tag, err := pg.CopyFrom(ctx, rows, b.copy)
		return tag.RowsAffected(), errors.Join(err, rows.failure())
	}
	if _, err := pg.Exec(ctx, "BEGIN; TRUNCATE TABLE ONLY "+b.table()).ReadAll(); err != nil {
		return 0, err
	}
	tag, err := pg.CopyFrom(ctx, rows, b.copy+" WITH (FREEZE)")
	if err := errors.Join(err, rows.failure()); err != nil {
		return 0, err
	}
	_, err = pg.Exec(ctx, "COMMIT").ReadAll()
	return tag.RowsAffected(), err
}

// dataFailure makes a person's error of a table that could not be filled.
func (s *scratch) dataFailure(b block, err error) error {
	err = s.here.failure(err)
	var known *snap.Error
	if errors.As(err, &known) && known.Code == snap.CodeDatabase && state(err) != "" {
		e := *known
		e.Detail = fmt.Sprintf("the table %s.%s cannot be filled: %s", b.schema, b.name, message(err))
		return &e
	}
	return err
}

// useList writes the list of what pg_restore is to do beside the data: lines
// that begin with the entries' numbers.
func useList(dir string, l *layout) (path string, err error) {
	var text strings.Builder
	for _, id := range l.others {
		fmt.Fprintf(&text, "%d;\n", id)
	}
	file, err := os.CreateTemp(dir, "restore-*.list")
	if err != nil {
		return "", fmt.Errorf("make a temporary file: %w", err)
	}
	_, err = file.WriteString(text.String())
	return file.Name(), errors.Join(err, file.Close())
}
