package store

import (
	"context"
	"database/sql"
	"time"
)

// A process of the service announces with a lease of its own that it is running. Commands that must
// not run next to the service check these leases.
const (
	runningPrefix = "serve:"
	// RunningLife is how long a process counts as running after its last announcement.
	RunningLife = 30 * time.Second
)

// SayRunning records that the process of the service named by holder is running.
func (s *Store) SayRunning(ctx context.Context, holder string) error {
	_, err := s.Lease(ctx, runningPrefix+holder, holder, RunningLife)
	return err
}

// SayStopped records that the process has ended.
func (s *Store) SayStopped(ctx context.Context, holder string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name = $1`, runningPrefix+holder)
		return err
	})
}

// Running returns how many processes of the service are running, and until when the last of them
// counts as running if it has ended without recording that.
func (s *Store) Running(ctx context.Context) (n int, until time.Time, err error) {
	var last sql.NullInt64
	err = s.read.QueryRowContext(ctx,
		`SELECT count(*), max(until) FROM leases WHERE name LIKE 'serve:%' AND until > $1`, s.now().UnixMilli()).Scan(&n, &last)
	return n, timeOf(last), err
}
