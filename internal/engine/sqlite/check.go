package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	codes "modernc.org/sqlite/lib"

	"snap/internal/engine"
)

// maxCheckers is the maximum number of concurrent checks. Each check uses memory for a cache.
const maxCheckers = 4

// checks returns the pragmas that check the whole file: integrity_check, or several pragmas that
// together check the same and can run concurrently. One of them, quick_check, reads every page. It
// checks all trees, the free list, the constraints of the rows, and that each page is used once. It
// does not compare the rows with the indexes, so integrity_check runs for each table too, the
// largest first.
func (s *scratch) checks(ctx context.Context, q querier, want engine.Info) ([]string, error) {
	if s.o.Jobs <= 1 {
		return []string{"integrity_check(1)"}, nil
	}
	names, err := tableNames(ctx, q)
	if err != nil {
		return nil, err
	}
	rows := map[string]int64{}
	for _, t := range want.Tables {
		rows[t.Name] = t.Rows
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rows[b], rows[a]) })
	return append(tableChecks(names), "quick_check(1)"), nil
}

func tableChecks(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, "integrity_check("+quote(name)+")")
	}
	return all
}

// check runs the checks of the file in SQLite.
func (s *scratch) check(ctx context.Context, checks []string) error {
	queue := make(chan string, len(checks))
	for _, check := range checks {
		queue <- check
	}
	close(queue)
	g, ctx := errgroup.WithContext(ctx)
	for range min(max(s.o.Jobs, 1), maxCheckers, len(checks)) {
		g.Go(func() error { return s.runChecks(ctx, queue) })
	}
	return g.Wait()
}

// runChecks runs checks on its own connection until none are left.
func (s *scratch) runChecks(ctx context.Context, queue <-chan string) error {
	db, err := s.open(ctx, cmp.Or(s.mode, "rw"), fewPages)
	if err != nil {
		return err
	}
	defer db.Close()
	for check := range queue {
		var result string
		err := db.QueryRowContext(ctx, "PRAGMA "+check).Scan(&result)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if (err != nil || result != "ok") && (s.temporary || !needsApplication(err)) {
			return damaged(result, err)
		}
	}
	return nil
}

// needsApplication reports whether a check failed because the database uses a collation or a
// function that only its application defines. Except in a temporary scratch file, such a failure is
// ignored, because only the application can run that check.
func needsApplication(err error) bool {
	return code(err) == codes.SQLITE_ERROR && (strings.Contains(err.Error(), "no such collation sequence") ||
		strings.Contains(err.Error(), "unknown function"))
}
