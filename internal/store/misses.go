package store

import (
	"context"
	"database/sql"
	"time"
)

// Misses returns how often something failed recently. A bucket names what is counted, such as the
// user codes that one address tried.
func (s *Store) Misses(ctx context.Context, bucket string) (count int, err error) {
	err = s.read.QueryRowContext(ctx,
		`SELECT count FROM misses WHERE bucket = $1 AND until > $2`, bucket, s.now().UnixMilli()).Scan(&count)
	return count, noRowsAs(err, nil)
}

// Miss counts a failure and returns the current count. The count restarts when window has passed
// since the first failure.
func (s *Store) Miss(ctx context.Context, bucket string, window time.Duration) (count int, err error) {
	now := s.now()
	err = s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM misses WHERE until <= $1`, now.UnixMilli()); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, `
			INSERT INTO misses(bucket, count, until) VALUES($1, 1, $2)
			ON CONFLICT(bucket) DO UPDATE SET count = misses.count + 1 RETURNING count`,
			bucket, now.Add(window).UnixMilli()).Scan(&count)
	})
	return count, err
}
