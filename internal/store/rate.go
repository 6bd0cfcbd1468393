package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Spend spends the cost from the bucket's allowance, which all replicas share. The allowance of a
// full bucket is the window. With a limit of 1,000 requests per minute, for example, each request
// costs 60 ms of a window of one minute. Spend returns 0 on success. Otherwise it spends nothing
// and returns how long to wait until there is enough.
//
// Spend uses the generic cell rate algorithm: the column rates.until holds the time when the bucket
// will be full again, at most one window in the future.
func (s *Store) Spend(ctx context.Context, bucket string, cost, window time.Duration) (wait time.Duration, err error) {
	now := s.now().UnixMilli()
	need, most := cost.Milliseconds(), now+window.Milliseconds()
	err = s.tx(ctx, func(tx *sql.Tx) error {
		var until int64
		err := tx.QueryRowContext(ctx, `
			INSERT INTO rates(bucket, until) VALUES($1, $2)
			ON CONFLICT(bucket) DO UPDATE SET until = CASE WHEN rates.until > $3 THEN rates.until ELSE $3 END + $4
			WHERE CASE WHEN rates.until > $3 THEN rates.until ELSE $3 END + $4 <= $5 RETURNING until`,
			bucket, now+need, now, need, most).Scan(&until)
		wait = 0
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = tx.QueryRowContext(ctx, `SELECT until FROM rates WHERE bucket = $1`, bucket).Scan(&until)
		wait = max(time.Duration(until+need-most)*time.Millisecond, time.Millisecond)
		return err
	})
	return wait, err
}

// SweepRates deletes the buckets that are full again.
func (s *Store) SweepRates(ctx context.Context) error {
	return s.exec(ctx, `DELETE FROM rates WHERE until <= $1`, s.now().UnixMilli())
}
