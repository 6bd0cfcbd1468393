package store

import (
	"context"
	"database/sql"
	"time"
)

// Garbage is an object that no row needs. BlobUpload is set if the object's upload may be
// incomplete.
type Garbage struct{ Blob, BlobUpload string }

// discard records that an object is to be removed.
func discard(ctx context.Context, tx *sql.Tx, g Garbage) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO garbage(blob, blob_upload) VALUES($1, $2) ON CONFLICT(blob) DO NOTHING`, g.Blob, g.BlobUpload)
	return err
}

// Garbage returns at most limit objects that are to be removed.
func (s *Store) Garbage(ctx context.Context, limit int) ([]Garbage, error) {
	return collect(ctx, s, `SELECT blob, blob_upload FROM garbage LIMIT $1`,
		func(rows *sql.Rows) (g Garbage, err error) {
			err = rows.Scan(&g.Blob, &g.BlobUpload)
			return g, err
		}, limit)
}

// Removed records that an object was removed.
func (s *Store) Removed(ctx context.Context, g Garbage) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM garbage WHERE blob = $1`, g.Blob)
		return err
	})
}

// Abandon gives up a push if nobody has resumed it since idleSince, and reports whether it did. The
// push's object becomes garbage. A client that comes back later starts over.
func (s *Store) Abandon(ctx context.Context, u Upload, idleSince time.Time) (abandoned bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx,
			`DELETE FROM uploads WHERE id = $1 AND touched_at < $2`, u.ID, idleSince.UnixMilli())
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if abandoned = n > 0; err != nil || !abandoned {
			return err
		}
		return discard(ctx, tx, Garbage{u.Blob, u.BlobUpload})
	})
	return abandoned, err
}
