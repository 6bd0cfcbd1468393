package store

import (
	"context"
	"database/sql"
	"time"
)

// A process of the service tells the others that it runs by a lease of its
// own: nothing needs it but what must not be done next to a running service.
const (
	runningPrefix = "serve:"
	// RunningLife is how long a process that has said nothing more counts as running.
	RunningLife = 30 * time.Second
)

// SayRunning notes that a process of the service, named by holder, runs.
func (s *Store) SayRunning(ctx context.Context, holder string) error {
	_, err := s.Lease(ctx, runningPrefix+holder, holder, RunningLife)
	return err
}

// SayStopped notes that it has ended.
func (s *Store) SayStopped(ctx context.Context, holder string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name = $1`, runningPrefix+holder)
		return err
	})
}

// Running returns how many processes of the service run, and until when the
// last of them counts as running if it has ended without a word.
func (s *Store) Running(ctx context.Context) (n int, until time.Time, err error) {
	var last sql.NullInt64
	err = s.read.QueryRowContext(ctx,
		`SELECT count(*), max(until) FROM leases WHERE name LIKE 'serve:%' AND until > $1`, s.now().UnixMilli()).Scan(&n, &last)
	return n, timeOf(last), err
}
