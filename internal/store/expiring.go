package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// expiringShare is a share that ends soon.
type expiringShare struct {
	audience, until int64
	sn              snap.Snapshot
	owner           int64
	detail          snap.AuditDetail
}

// ReportExpiring records each share that ends within [snap.SoonExpiring], once for each expiry, and
// returns how many it recorded. Shares that were made for no longer than that time are not
// recorded. Several replicas may run it at the same time.
func (s *Store) ReportExpiring(ctx context.Context) (reported int, err error) {
	now := s.now()
	all, err := collect(ctx, s, `SELECT g.audience, g.expires_at, s.key, s.id, s.org_id, s.target, s.name,
			coalesce(s.owner_id, 0), coalesce(n.group_id, ''), coalesce(r.slug, '')
		FROM grants g JOIN snapshots s ON s.key = g.snapshot JOIN orgs o ON o.id = s.org_id AND o.closed = 0
		LEFT JOIN groups n ON g.audience`+isGroup+` AND n.id = g.audience`+subjectOf+`
		LEFT JOIN orgs r ON g.audience`+isRecipients+` AND r.id = g.audience`+subjectOf+`
		WHERE g.expires_at > $1 AND g.expires_at <= $2 AND g.told_expiry <> g.expires_at
			AND g.expires_at - g.created_at > $3 ORDER BY g.expires_at`,
		func(rows *sql.Rows) (e expiringShare, err error) {
			err = rows.Scan(&e.audience, &e.until, &e.sn.Key, &e.sn.ID, &e.sn.Org.ID, &e.sn.Target, &e.sn.Name,
				&e.owner, &e.detail.Group, &e.detail.Organization)
			return e, err
		}, now.UnixMilli(), now.Add(snap.SoonExpiring).UnixMilli(), snap.SoonExpiring.Milliseconds())
	if err != nil {
		return 0, err
	}
	return recordEach(ctx, all, s.reportExpiring)
}

func (s *Store) reportExpiring(ctx context.Context, e expiringShare) (recorded bool, err error) {
	by, err := s.serviceCaller(ctx, e.sn.Org.ID, snap.PartExpiry)
	if err != nil {
		return false, err
	}
	until := time.UnixMilli(e.until).UTC()
	e.detail.Target, e.detail.Name, e.detail.Expires = e.sn.Target, e.sn.Name, &until
	e.detail.OrgWide = e.detail.Group == "" && e.detail.Organization == ""
	noticeTo := e.owner
	if e.detail.Organization != "" {
		noticeTo = 0 // only users with the role owner or admin may know this expiry; the log shows it to them
	}
	err = s.tx(ctx, func(tx *sql.Tx) error {
		recorded, err = changed(tx.ExecContext(ctx, `UPDATE grants SET told_expiry = $3
			WHERE audience = $1 AND snapshot = $2 AND expires_at = $3 AND told_expiry <> $3`,
			e.audience, e.sn.Key, e.until))
		if err != nil || !recorded {
			return err // another replica was first, or the share was changed
		}
		return s.recordFor(ctx, tx, e.sn.Org.ID, by,
			snap.AuditEntry{Action: snap.AuditShareExpires, Snapshot: e.sn.ID, Detail: e.detail}, noticeTo)
	})
	return recorded, err
}
