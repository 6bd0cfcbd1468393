package store

import (
	"context"
	"database/sql"

	"snap"
)

// Decline ends the share of a received snapshot with the caller's organization. The owner's
// organization sees the decline in the snapshot's shares and in its audit log. Sharing the snapshot
// again removes the decline.
func (s *Store) Decline(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		ended, err := changed(tx.ExecContext(ctx, `DELETE FROM grants WHERE audience = $1 AND snapshot = $2`,
			int64(snap.AudienceOf(snap.KindRecipients, c.Org.ID)), sn.Key))
		if err != nil || !ended {
			return err
		}
		_, err = tx.ExecContext(ctx,
			`INSERT INTO declines(snapshot, org_id, at) VALUES($1, $2, $3)
			ON CONFLICT(snapshot, org_id) DO UPDATE SET at = excluded.at`,
			sn.Key, c.Org.ID, s.now().UnixMilli())
		if err != nil {
			return err
		}
		return s.recordOn(ctx, tx, c, sn, snap.AuditDeclined, snap.AuditDetail{Organization: c.Org.Slug})
	})
}

// Declined returns the declined shares of a snapshot, sorted by slug. A share is no longer listed
// if the snapshot was shared again with the same organization.
func (s *Store) Declined(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.OrgShare, error) {
	return collect(ctx, s, `
		SELECT o.id, o.slug, o.name, d.at FROM snapshots s
		JOIN declines d ON d.snapshot = s.key JOIN orgs o ON o.id = d.org_id
		WHERE s.key = $3 AND `+visible+` ORDER BY o.slug`,
		func(rows *sql.Rows) (o snap.OrgShare, err error) {
			err = rows.Scan(&o.Org.ID, &o.Org.Slug, &o.Org.Name, toTime(&o.Declined))
			return o, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key)
}
