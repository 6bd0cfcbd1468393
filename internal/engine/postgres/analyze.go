package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// stateLocked is the SQLSTATE lock_not_available.
const stateLocked = "55P03"

// analysis updates the planner's statistics of tables during a load, one table after the other. It
// starts when a loading session has no tables left to fill, so that no core is idle. A table that
// is locked because an index is being built is tried again later. [scratch.analyze] analyzes the
// tables that analysis does not reach.
type analysis struct {
	filled  chan string // the tables that have all of their rows
	once    sync.Once
	stop    chan struct{}
	running sync.WaitGroup
}

// newAnalysis returns an analysis of at most the given number of tables.
func newAnalysis(tables int) *analysis {
	return &analysis{filled: make(chan string, tables), stop: make(chan struct{})}
}

// start starts analyzing the filled tables. Only the first call has an effect.
func (a *analysis) start(ctx context.Context, s *scratch, setup []string) {
	a.once.Do(func() {
		a.running.Go(func() {
			if conn, err := s.session(ctx, setup); err == nil {
				a.analyzeFilled(ctx, conn)
				_ = conn.Close(context.WithoutCancel(ctx))
			}
		})
	})
}

// maxLockTimeout is the longest lock timeout. It limits how long a failing load waits for the
// analysis to end.
const maxLockTimeout = 10 * time.Second

// analyzeFilled analyzes the filled tables. It doubles the lock timeout after each failure to get a
// lock, because the server logs every such failure as an error.
func (a *analysis) analyzeFilled(ctx context.Context, conn *pgx.Conn) {
	timeout := 50 * time.Millisecond
	for !conn.IsClosed() {
		select {
		case <-a.stop:
			return
		default:
		}
		select {
		case <-a.stop:
			return
		case table := <-a.filled:
			_, err := conn.PgConn().Exec(ctx, fmt.Sprintf("SET lock_timeout = %d", timeout.Milliseconds())).ReadAll()
			if err == nil {
				_, err = conn.PgConn().Exec(ctx, "ANALYZE "+table).ReadAll()
			}
			if state(err) == stateLocked {
				a.filled <- table
				timeout = min(2*timeout, maxLockTimeout)
			}
		}
	}
}

// end stops the analysis and returns when the current table is done.
func (a *analysis) end() {
	close(a.stop)
	a.running.Wait()
}

// unknownTables lists the tables without complete planner statistics: tables that were never
// analyzed, and tables whose indexed expressions, extended statistics or child tables may have been
// created or filled after the analysis. The tables that take longest come first. The server takes
// samples of the same size from all large tables, so the number of columns determines the time.
// Partitions are not listed, because a partition is analyzed with its root. $1 has the schemas, or
// is NULL for all.
const unknownTables = `
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'm', 'p') AND NOT c.relispartition
	AND ` + ownSchemas + `
	AND ($1::text[] IS NULL OR n.nspname = ANY ($1))
	AND (c.relkind = 'p' OR pg_relation_size(c.oid) > 0)
	AND (pg_stat_get_last_analyze_time(c.oid) IS NULL OR c.relhassubclass
		OR EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indexprs IS NOT NULL)
		OR EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = c.oid))
	ORDER BY c.relkind = 'p' DESC, c.relnatts * least(pg_relation_size(c.oid), 8 << 20) DESC`

// analyze analyzes the tables without complete planner statistics, several at a time. It ignores
// failures, for example of a function in an index, because the server analyzes the table again
// later.
func (s *scratch) analyze(ctx context.Context, conn *pgx.Conn) error {
	tables, err := collect(ctx, conn, unknownTables, pgx.RowTo[string], s.into.schemas())
	if err != nil {
		return err
	}
	return s.parallel(ctx, tables, s.connect, func(ctx context.Context, conn *pgx.Conn, table string) error {
		if _, err := conn.Exec(ctx, "ANALYZE "+table); state(err) == "" {
			return err
		}
		return nil
	})
}

// parallel calls run for each item. Each job has its own session, which connect opens.
func (s *scratch) parallel(ctx context.Context, items []string, connect func(context.Context) (*pgx.Conn, error),
	run func(ctx context.Context, conn *pgx.Conn, item string) error) error {
	work := make(chan string, len(items))
	for _, item := range items {
		work <- item
	}
	close(work)
	g, ctx := errgroup.WithContext(ctx)
	for range min(s.o.Jobs, len(items)) {
		g.Go(func() error {
			conn, err := connect(ctx)
			if err != nil {
				return err
			}
			defer s.release(ctx, conn)
			for item := range work {
				if err := run(ctx, conn, item); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
