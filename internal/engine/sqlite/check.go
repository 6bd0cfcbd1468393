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

// checkers is the maximum number of concurrent checks. Each uses memory for a cache.
const checkers = 4

// checks returns the pragmas that check the whole file: integrity_check, or pragmas that together
// are equivalent and can run concurrently. quick_check reads every page. It checks all trees, the
// free list, the constraints of the rows, and that each page is used once. It does not compare the
// rows with the indexes; integrity_check of each table does. The largest tables come first.
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
	left := make(chan string, len(checks))
	for _, check := range checks {
		left <- check
	}
	close(left)
	g, ctx := errgroup.WithContext(ctx)
	for range min(max(s.o.Jobs, 1), checkers, len(checks)) {
		g.Go(func() error { return s.checker(ctx, left) })
	}
	return g.Wait()
}

// checker runs checks on its own connection until none are left.
func (s *scratch) checker(ctx context.Context, left <-chan string) error {
	db, err := s.open(ctx, cmp.Or(s.mode, "rw"), fewPages)
	if err != nil {
		return err
	}
	defer db.Close()
	for check := range left {
		var result string
		err := db.QueryRowContext(ctx, "PRAGMA "+check).Scan(&result)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if (err != nil || result != "ok") && (s.passing || !ofItsProgram(err)) {
			return damaged(result, err)
		}
	}
	return nil
}

// ofItsProgram reports whether a check failed because it needs a collation or a function of the
// program that the database belongs to. Such a failure is ignored: the checksums already prove that
// the file is the one that was built.
func ofItsProgram(err error) bool {
	return code(err) == codes.SQLITE_ERROR && (strings.Contains(err.Error(), "no such collation sequence") ||
		strings.Contains(err.Error(), "unknown function"))
}
