package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"snap"
)

// Every share is one grant. Who may change which is asked before (snap.Allowed).
// All methods on this page are idempotent, act at once on every replica, and
// fail with snap.ErrNotFound when the caller cannot see the snapshot any more.

// Share shares a snapshot org-wide.
func (s *Store) Share(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		return s.grantOrg(ctx, tx, c, sn)
	})
}

func (s *Store) grantOrg(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot) error {
	made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindMembers, sn.Org.ID), time.Time{})
	if err != nil {
		return err
	}
	return s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{OrgWide: true})
}

// Unshare ends the org-wide share.
func (s *Store) Unshare(ctx context.Context, c snap.Caller, sn snap.Snapshot) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		return s.ungrant(ctx, tx, c, sn, snap.AudienceOf(snap.KindMembers, sn.Org.ID), snap.AuditDetail{OrgWide: true})
	})
}

// ShareGroup shares a snapshot with an SSO group of its organization, by the
// identity provider's identifier. It fails with code group_not_found.
func (s *Store) ShareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, groupID string) (share snap.GroupShare, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		g, err := groupByID(ctx, tx, sn.Org.ID, groupID)
		if err != nil {
			return err
		}
		share, err = s.grantGroup(ctx, tx, c, sn, g)
		return err
	})
	return share, err
}

func (s *Store) grantGroup(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, g snap.Group) (snap.GroupShare, error) {
	// Before the grant: a listing must not pass over the group once the grant is there.
	if _, err := tx.ExecContext(ctx, `UPDATE groups SET newest = $2 WHERE id = $1 AND newest < $2`, g.ID, sn.Key); err != nil {
		return snap.GroupShare{}, err
	}
	if err := widen(ctx, tx, sn); err != nil {
		return snap.GroupShare{}, err
	}
	made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindGroup, g.ID), time.Time{})
	if err != nil {
		return snap.GroupShare{}, err
	}
	share := snap.GroupShare{Group: g, Created: made.created, By: made.by}
	return share, s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{Group: g.GroupID})
}

// widen notes that shares of the snapshot are to be counted.
func widen(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) error {
	_, err := tx.ExecContext(ctx, `UPDATE snapshots SET widened = 1 WHERE key = $1 AND widened = 0`, sn.Key)
	return err
}

// UnshareGroup removes a group share. It fails with code group_not_found.
func (s *Store) UnshareGroup(ctx context.Context, c snap.Caller, sn snap.Snapshot, groupID string) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		g, err := groupByID(ctx, tx, sn.Org.ID, groupID)
		if err != nil {
			return err
		}
		return s.ungrant(ctx, tx, c, sn, snap.AudienceOf(snap.KindGroup, g.ID), snap.AuditDetail{Group: g.GroupID})
	})
}

func groupByID(ctx context.Context, tx *sql.Tx, orgID int64, groupID string) (g snap.Group, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, group_id, name FROM groups WHERE org_id = $1 AND group_id = $2`, orgID, groupID).Scan(&g.ID, &g.GroupID, &g.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return g, errNoGroup(groupID)
	}
	return g, err
}

func errNoGroup(groupID string) error {
	return &snap.Error{
		Code:   snap.CodeGroupNotFound,
		Detail: fmt.Sprintf("the organization has no group with the ID %q", groupID),
		Hint:   "groups appear when one of their members signs in",
	}
}

// GroupShares returns a snapshot's group shares, by the groups' names.
func (s *Store) GroupShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.GroupShare, error) {
	return collect(ctx, s, `
		SELECT n.id, n.group_id, n.name, g.created_at, coalesce(u.email, ''), coalesce(g.channel, 0)
		FROM snapshots s JOIN grants g ON g.snapshot = s.key AND g.audience`+isGroup+`
		JOIN groups n ON n.id = g.audience`+subjectOf+` LEFT JOIN users u ON u.id = g.created_by
		WHERE s.key = $3 AND `+visible+` ORDER BY n.name, n.group_id`,
		func(rows *sql.Rows) (g snap.GroupShare, err error) {
			var created int64
			err = rows.Scan(&g.Group.ID, &g.Group.GroupID, &g.Group.Name, &created, &g.By, &g.Channel)
			g.Created = time.UnixMilli(created).UTC()
			return g, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key)
}

// ShareOrg shares a snapshot with another organization until a time, or
// forever when expires is zero. previous is the live share that it replaces,
// if any. It fails with code organization_not_found, also when that one is
// closed.
func (s *Store) ShareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string, expires time.Time) (share snap.OrgShare, previous *snap.OrgShare, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		previous = nil
		org, err := orgInTx(ctx, tx, slug, ` AND closed = 0`)
		if err != nil {
			return err
		}
		if org.ID == sn.Org.ID {
			return snap.Invalid("a snapshot cannot be shared with its own organization this way", "share it org-wide: leave --org out")
		}
		if err := widen(ctx, tx, sn); err != nil {
			return err
		}
		if err := s.listTarget(ctx, tx, org.ID, sn.Target); err != nil {
			return err
		}
		made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindRecipients, org.ID), expires)
		share = snap.OrgShare{Org: org, Expires: made.expires, Created: made.created, By: made.by}
		if made.old != nil && made.old.Live(s.now()) {
			made.old.Org = org
			previous = made.old
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM declines WHERE snapshot = $1 AND org_id = $2`, sn.Key, org.ID); err != nil {
			return err
		}
		return s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{Organization: slug})
	})
	return share, previous, err
}

// UnshareOrg revokes a cross-org share. It fails with code organization_not_found.
func (s *Store) UnshareOrg(ctx context.Context, c snap.Caller, sn snap.Snapshot, slug string) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		org, err := orgInTx(ctx, tx, slug, ``)
		if err != nil {
			return err
		}
		return s.ungrant(ctx, tx, c, sn, snap.AudienceOf(snap.KindRecipients, org.ID), snap.AuditDetail{Organization: slug})
	})
}

func orgInTx(ctx context.Context, tx *sql.Tx, slug, which string) (o snap.OrgRef, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, slug, name FROM orgs WHERE slug = $1`+which, slug).Scan(&o.ID, &o.Slug, &o.Name)
	if errors.Is(err, sql.ErrNoRows) {
		return o, errNoOrg(slug)
	}
	return o, err
}

// OrgShares returns a snapshot's live cross-org shares, by slug.
func (s *Store) OrgShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.OrgShare, error) {
	return collect(ctx, s, `
		SELECT o.id, o.slug, o.name, r.expires_at, r.created_at, coalesce(u.email, '')
		FROM snapshots s JOIN grants r ON r.snapshot = s.key AND r.audience`+isRecipients+` AND (r.expires_at IS NULL
			OR r.expires_at > $2)
		JOIN orgs o ON o.id = r.audience`+subjectOf+` LEFT JOIN users u ON u.id = r.created_by
		WHERE s.key = $3 AND `+visible+` ORDER BY o.slug`,
		func(rows *sql.Rows) (o snap.OrgShare, err error) {
			var created int64
			var expires sql.NullInt64
			err = rows.Scan(&o.Org.ID, &o.Org.Slug, &o.Org.Name, &expires, &created, &o.By)
			o.Created, o.Expires = time.UnixMilli(created).UTC(), timeOf(expires)
			return o, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key)
}

// made is what a grant became.
type made struct {
	created, expires time.Time
	by               string         // e-mail of who shared it
	old              *snap.OrgShare // what it replaced, without the organization
}

// grant lets an audience see a snapshot until a time. A grant that is there
// and live keeps when and by whom it was made; only its end changes.
func (s *Store) grant(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, a snap.Audience, until time.Time) (m made, err error) {
	var created int64
	var expires sql.NullInt64
	err = tx.QueryRowContext(ctx, `
		SELECT g.created_at, g.expires_at, coalesce(u.email, '') FROM grants g LEFT JOIN users u ON u.id = g.created_by
		WHERE g.audience = $1 AND g.snapshot = $2`, int64(a), sn.Key).Scan(&created, &expires, &m.by)
	now := s.now()
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return made{}, err
	default:
		m.old = &snap.OrgShare{Expires: timeOf(expires), Created: time.UnixMilli(created).UTC(), By: m.by}
	}
	m.expires = timeOf(millis(until))
	if m.old != nil && m.old.Live(now) {
		m.created = m.old.Created
		_, err = tx.ExecContext(ctx, `UPDATE grants SET expires_at = $3, channel = NULL WHERE audience = $1 AND snapshot = $2`, int64(a), sn.Key, millis(until))
		return m, err
	}
	m.created, m.by = time.UnixMilli(now.UnixMilli()).UTC(), ""
	if c.User != nil {
		m.by = c.User.Email
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO grants(audience, snapshot, target_id, type, expires_at, created_at, created_by)
		SELECT $1, key, target_id, type, $3, $4, $5 FROM snapshots WHERE key = $2
		ON CONFLICT(audience, snapshot) DO UPDATE SET expires_at = excluded.expires_at, created_at = excluded.created_at, created_by = excluded.created_by, channel = NULL`,
		int64(a), sn.Key, millis(until), now.UnixMilli(), userID(c))
	return m, err
}

// recordShare records a share that changed something.
func (s *Store) recordShare(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, m made, d snap.AuditDetail) error {
	if m.old != nil && m.old.Live(s.now()) && m.old.Expires.Equal(m.expires) {
		return nil
	}
	if !m.expires.IsZero() {
		d.Expires = &m.expires
	}
	return s.recordOn(ctx, tx, c, sn, snap.AuditShared, d)
}

// ungrant deletes a grant, and records that if there was one.
func (s *Store) ungrant(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, a snap.Audience, d snap.AuditDetail) error {
	res, err := tx.ExecContext(ctx, `DELETE FROM grants WHERE audience = $1 AND snapshot = $2`, int64(a), sn.Key)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return s.recordOn(ctx, tx, c, sn, snap.AuditUnshared, d)
}
