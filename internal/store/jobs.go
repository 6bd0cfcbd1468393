package store

import (
	"context"
	"database/sql"
	"time"
)

// JobDone records that background work of this name ended without an error just now. With begun it
// records only that the work exists, and keeps a time that was recorded before.
func (s *Store) JobDone(ctx context.Context, name string, begun bool) error {
	text := `INSERT INTO jobs(name, done_at) VALUES($1, $2) ON CONFLICT(name) DO UPDATE SET done_at = excluded.done_at
		WHERE jobs.done_at < excluded.done_at`
	if begun {
		text = `INSERT INTO jobs(name, done_at) VALUES($1, $2) ON CONFLICT(name) DO NOTHING`
	}
	_, err := s.write.ExecContext(ctx, text, name, s.now().UnixMilli())
	return exceptFull(err)
}

// JobsDone returns when each kind of background work last ended without an error, in any process.
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
