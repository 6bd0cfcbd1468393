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

// discardUnused records that an object is to be removed, unless a snapshot or an upload uses it. It
// reports whether the object is unused.
func discardUnused(ctx context.Context, tx *sql.Tx, blobKey string) (unused bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM snapshots WHERE blob = $1)
		AND NOT EXISTS (SELECT 1 FROM uploads WHERE blob = $1)`, blobKey).Scan(&unused)
	if err != nil || !unused {
		return false, err
	}
	return true, discard(ctx, tx, Garbage{Blob: blobKey})
}

// DiscardUnused is discardUnused in a transaction of its own.
func (s *Store) DiscardUnused(ctx context.Context, blobKey string) (unused bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		unused, err = discardUnused(ctx, tx, blobKey)
		return err
	})
	return unused, err
}

// Garbage returns at most limit objects that are to be removed and whose keys are greater than
// after, in the order of their keys.
func (s *Store) Garbage(ctx context.Context, after string, limit int) ([]Garbage, error) {
	return collect(ctx, s, `SELECT blob, blob_upload FROM garbage WHERE blob > $1 ORDER BY blob LIMIT $2`,
		func(rows *sql.Rows) (g Garbage, err error) {
			err = rows.Scan(&g.Blob, &g.BlobUpload)
			return g, err
		}, after, limit)
}

// RecordRemoved records that an object was removed.
func (s *Store) RecordRemoved(ctx context.Context, g Garbage) error {
	return s.exec(ctx, `DELETE FROM garbage WHERE blob = $1`, g.Blob)
}

// Abandon gives up a push if nobody has resumed it since idleSince, and reports whether it did. The
// push's object becomes garbage. A client that comes back later starts over.
func (s *Store) Abandon(ctx context.Context, u Upload, idleSince time.Time) (abandoned bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		abandoned, err = changed(tx.ExecContext(ctx,
			`DELETE FROM uploads WHERE id = $1 AND touched_at < $2`, u.ID, idleSince.UnixMilli()))
		if err != nil || !abandoned {
			return err
		}
		return discard(ctx, tx, Garbage{u.Blob, u.BlobUpload})
	})
	return abandoned, err
}
