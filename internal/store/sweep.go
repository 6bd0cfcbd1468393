package store

import (
	"context"
	"database/sql"
	"time"
)

// keepKeys is how long a key is kept after it was revoked or has expired.
const keepKeys = 90 * 24 * time.Hour

// keepLeases is how long the lease of a process that was killed is kept.
const keepLeases = 24 * time.Hour

// Sweep removes obsolete rows: grants that have ended, responses for an Idempotency-Key that are
// older than a day, messages of webhooks that are older than [KeepDeliveries], keys that ended more
// than 90 days ago, requests for access that lapsed, and leases of processes that were killed more
// than a day ago. The audit log keeps its lines about them. Sweep removes at most limit rows of
// each kind and returns how many it removed. The background work calls Sweep until it removes fewer
// than limit. Sweeping affects only speed: every statement checks expiry itself, and without Sweep
// the statements would have to skip ended grants one by one.
func (s *Store) Sweep(ctx context.Context, limit int) (removed int64, err error) {
	now := s.now()
	for _, sweep := range []struct {
		text   string
		before int64
	}{
		// The expiry is checked twice, so that a share that is extended between the two checks is
		// kept.
		{`DELETE FROM grants WHERE expires_at <= $1 AND (audience, snapshot) IN (
			SELECT audience, snapshot FROM grants WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`,
			now.UnixMilli()},
		{`DELETE FROM idempotency WHERE created_at <= $1 AND (principal, key) IN (
			SELECT principal, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2)`,
			now.Add(-replyLife).UnixMilli()},
		{`DELETE FROM deliveries WHERE created_at <= $1 AND id IN (
			SELECT id FROM deliveries WHERE created_at <= $1 ORDER BY created_at LIMIT $2)`,
			now.Add(-KeepDeliveries).UnixMilli()},
		{`DELETE FROM api_keys WHERE id IN (
			SELECT id FROM api_keys WHERE revoked_at <= $1 OR expires_at <= $1 LIMIT $2)`,
			now.Add(-keepKeys).UnixMilli()},
		{`DELETE FROM access_requests WHERE created_at <= $1 AND id IN (
			SELECT id FROM access_requests WHERE created_at <= $1 LIMIT $2)`, now.Add(-AccessRequestLife).UnixMilli()},
		{`DELETE FROM leases WHERE until <= $1 AND name IN (SELECT name FROM leases WHERE until <= $1 LIMIT $2)`,
			now.Add(-keepLeases).UnixMilli()},
	} {
		err := s.tx(ctx, func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, sweep.text, sweep.before, limit)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			removed += n
			return err
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
