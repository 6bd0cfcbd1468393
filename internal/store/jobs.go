package store

import (
	"context"
	"database/sql"
	"time"
)

// JobBegun records that background work with this name exists. It records the current time, unless
// a time was recorded earlier.
func (s *Store) JobBegun(ctx context.Context, name string) error {
	return s.recordJob(ctx, name, `NOTHING`)
}

// JobDone records that background work with this name ended without an error just now.
func (s *Store) JobDone(ctx context.Context, name string) error {
	return s.recordJob(ctx, name, `UPDATE SET done_at = excluded.done_at WHERE jobs.done_at < excluded.done_at`)
}

// recordJob inserts the work with the current time. onConflict says what happens to an earlier
// time.
func (s *Store) recordJob(ctx context.Context, name, onConflict string) error {
	_, err := s.write.ExecContext(ctx,
		`INSERT INTO jobs(name, done_at) VALUES($1, $2) ON CONFLICT(name) DO `+onConflict, name, s.now().UnixMilli())
	return ignoreDiskFull(err)
}

// JobsDone returns when each kind of background work last ended without an error, in any process.
// For work that never did, it returns when [Store.JobBegun] first recorded the work.
func (s *Store) JobsDone(ctx context.Context) (map[string]time.Time, error) {
	done := map[string]time.Time{}
	_, err := collect(ctx, s, `SELECT name, done_at FROM jobs`, func(rows *sql.Rows) (struct{}, error) {
		var name string
		var at int64
		err := rows.Scan(&name, &at)
		done[name] = time.UnixMilli(at)
		return struct{}{}, err
	})
	return done, err
}
