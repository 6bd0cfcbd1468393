package store

import (
	"context"
	"time"
)

// Each process of the service holds a lease that shows that it is running. Commands that must not
// run next to the service check these leases.
const (
	runningPrefix = "serve:"
	// RunningLife is how long a process counts as running after its last announcement.
	RunningLife = 30 * time.Second
)

// RecordRunning records that the process named by holder is running, and how far its clock is ahead
// of PostgreSQL's.
func (s *Store) RecordRunning(ctx context.Context, holder string) error {
	if _, err := s.Lease(ctx, runningPrefix+holder, holder, RunningLife); err != nil || s.dialect == sqlite {
		return err
	}
	serverAhead, err := s.ahead(ctx)
	if err != nil {
		return err
	}
	return s.exec(ctx, `UPDATE leases SET ahead = $2 WHERE name = $1`, runningPrefix+holder,
		-serverAhead.Milliseconds())
}

// ClockSkew returns the largest difference between the clocks of running processes. Each process
// has measured its clock against PostgreSQL's. Processes that share a SQLite database share one
// clock.
func (s *Store) ClockSkew(ctx context.Context) (time.Duration, error) {
	if s.dialect == sqlite {
		return 0, nil
	}
	var skew int64
	err := s.read.QueryRowContext(ctx, `SELECT coalesce(max(ahead) - min(ahead), 0) FROM leases
		WHERE name LIKE 'serve:%' AND until - ahead > extract(epoch FROM clock_timestamp()) * 1000`).Scan(&skew)
	return time.Duration(skew) * time.Millisecond, err
}

// RecordStopped records that the process named by holder has ended, and ends all its leases, so
// that another process can take over its work at once.
func (s *Store) RecordStopped(ctx context.Context, holder string) error {
	return s.exec(ctx, `DELETE FROM leases WHERE holder = $1`, holder)
}

// Running returns how many processes of the service are running, and until when the last of them
// counts as running, even if it was killed.
func (s *Store) Running(ctx context.Context) (n int, until time.Time, err error) {
	err = s.read.QueryRowContext(ctx,
		`SELECT count(*), max(until) FROM leases WHERE name LIKE 'serve:%' AND until > $1`, s.now().UnixMilli()).
		Scan(&n, toTime(&until))
	return n, until, err
}
