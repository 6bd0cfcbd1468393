package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Lease gives background work with this name to one holder at a time. It reports whether the holder
// now has the lease, which then lasts for the given duration. A holder extends its own lease with
// each call. A holder that died loses the lease when it expires.
func (s *Store) Lease(ctx context.Context, name, holder string, life time.Duration) (held bool, err error) {
	now := s.now()
	ctx = AllowReserve(ctx) // the work may free space on the disk
	err = s.tx(ctx, func(tx *sql.Tx) error {
		var current string
		err := tx.QueryRowContext(ctx, `
			INSERT INTO leases(name, holder, until) VALUES($1, $2, $3)
			ON CONFLICT(name) DO UPDATE SET holder = excluded.holder, until = excluded.until
			WHERE leases.holder = excluded.holder OR leases.until <= $4 RETURNING holder`,
			name, holder, now.Add(life).UnixMilli(), now.UnixMilli()).Scan(&current)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // another holder has it
		}
		held = err == nil
		return err
	})
	return held, err
}
