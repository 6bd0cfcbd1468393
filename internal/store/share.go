package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"snap"
)

// Every share is one grant. Code that calls these methods must authorize first (snap.Allowed). The
// methods that change shares are idempotent, take effect immediately on every replica, and fail
// with snap.ErrNotFound if the caller can no longer see the snapshot.

// ShareWith makes all of these shares in one transaction, or none. For a snapshot that is not
// sanitized, newcomers is the number of users of its organization who can see it now but could not
// before. It fails with code group_not_found if a group does not exist, and with
// organization_not_found if an organization does not exist or is closed.
func (s *Store) ShareWith(ctx context.Context, c snap.Caller, sn snap.Snapshot,
	with snap.Shares) (made []snap.ShareChange, newcomers int, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		before, err := s.viewers(ctx, tx, sn)
		if err != nil {
			return err
		}
		if made, err = s.grantAll(ctx, tx, c, sn, with); err != nil {
			return err
		}
		after, err := s.viewers(ctx, tx, sn)
		newcomers = after - before
		return err
	})
	return made, newcomers, err
}

func (s *Store) grantAll(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot,
	with snap.Shares) (all []snap.ShareChange, err error) {
	add := func(one snap.ShareChange, err error) error {
		all = append(all, one)
		return err
	}
	if with.OrgWide {
		if err := add(s.grantOrgWide(ctx, tx, c, sn, with.Expires)); err != nil {
			return nil, err
		}
	}
	for _, id := range sortedNames(with.Groups) {
		g, err := s.groupByID(ctx, tx, sn.Org.ID, id)
		if err != nil {
			return nil, err
		}
		if err := add(s.grantGroup(ctx, tx, c, sn, g, with.Expires)); err != nil {
			return nil, err
		}
	}
	for _, slug := range sortedNames(with.Orgs) {
		if err := add(s.grantRecipient(ctx, tx, c, sn, slug, with)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sortedNames returns each name once, sorted, so that two transactions cannot deadlock.
func sortedNames(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// viewers counts the users of a snapshot's organization who can see it. For a sanitized snapshot it
// returns 0, because the number is not needed.
func (s *Store) viewers(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) (count int, err error) {
	if sn.Type == snap.TypeSanitized {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, countViewers, sn.Key, s.now().UnixMilli(), sn.Org.ID).Scan(&count)
	return count, err
}

// UnshareFrom ends all of these shares in one transaction, or none. It fails with code
// group_not_found or organization_not_found.
func (s *Store) UnshareFrom(ctx context.Context, c snap.Caller, sn snap.Snapshot,
	from snap.Shares) (ended []snap.ShareChange, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		ended, err = s.ungrantAll(ctx, tx, c, sn, from)
		return err
	})
	return ended, err
}

// UnshareAll ends every share of a snapshot, or none. It fails with the code forbidden if one of
// the shares is with another organization and the caller may not end it.
func (s *Store) UnshareAll(ctx context.Context, c snap.Caller, sn snap.Snapshot) (ended []snap.ShareChange, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		from, err := s.sharesOf(ctx, tx, sn)
		if err != nil {
			return err
		}
		if len(from.Orgs) > 0 && snap.Allowed(c, snap.ActShareOrg, sn) != nil {
			return snap.Forbidden("the snapshot is also shared with another organization, and only owners and admins "+
				"can end that share",
				"ask an owner or admin to end it, or end the other shares one by one")
		}
		ended, err = s.ungrantAll(ctx, tx, c, sn, from)
		return err
	})
	return ended, err
}

// sharesOf returns the live shares of a snapshot.
func (s *Store) sharesOf(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) (all snap.Shares, err error) {
	_, err = txCollect(ctx, tx, `
		SELECT g.audience`+kindOf+`, coalesce(n.group_id, ''), coalesce(o.slug, '') FROM grants g
		LEFT JOIN groups n ON g.audience`+isGroup+` AND n.id = g.audience`+subjectOf+`
		LEFT JOIN orgs o ON g.audience`+isRecipients+` AND o.id = g.audience`+subjectOf+`
		WHERE g.snapshot = $1 AND `+liveGrant, func(rows *sql.Rows) (struct{}, error) {
		var kind snap.AudienceKind
		var group, org string
		err := rows.Scan(&kind, &group, &org)
		switch kind {
		case snap.KindMembers:
			all.OrgWide = true
		case snap.KindGroup:
			all.Groups = append(all.Groups, group)
		case snap.KindRecipients:
			all.Orgs = append(all.Orgs, org)
		}
		return struct{}{}, err
	}, sn.Key, s.now().UnixMilli())
	return all, err
}

func (s *Store) ungrantAll(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot,
	from snap.Shares) (all []snap.ShareChange, err error) {
	end := func(a snap.Audience, one snap.ShareChange, d snap.AuditDetail) (err error) {
		one.Changed, err = s.ungrant(ctx, tx, c, sn, a, d)
		all = append(all, one)
		return err
	}
	if from.OrgWide {
		if err := end(snap.AudienceOf(snap.KindMembers, sn.Org.ID), snap.ShareChange{},
			snap.AuditDetail{OrgWide: true}); err != nil {
			return nil, err
		}
	}
	for _, id := range sortedNames(from.Groups) {
		g, err := s.groupByID(ctx, tx, sn.Org.ID, id)
		if err != nil {
			return nil, err
		}
		if err := end(snap.AudienceOf(snap.KindGroup, g.ID), snap.ShareChange{Group: &g},
			snap.AuditDetail{Group: g.GroupID}); err != nil {
			return nil, err
		}
	}
	for _, slug := range sortedNames(from.Orgs) {
		org, err := orgInTx(ctx, tx, slug, ``)
		if err != nil {
			return nil, err
		}
		if err := end(snap.AudienceOf(snap.KindRecipients, org.ID), snap.ShareChange{Org: &org},
			snap.AuditDetail{Organization: slug}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// grantOrgWide shares a snapshot org-wide until a time, or indefinitely if expires is zero.
func (s *Store) grantOrgWide(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot,
	expires time.Time) (snap.ShareChange, error) {
	made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindMembers, sn.Org.ID), expires)
	if err != nil {
		return snap.ShareChange{}, err
	}
	return s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{OrgWide: true})
}

// grantGroup shares a snapshot with a group until a time, or indefinitely if expires is zero.
func (s *Store) grantGroup(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot,
	g snap.Group, expires time.Time) (snap.ShareChange, error) {
	// A listing would skip the group if newest were less than the key of a shared snapshot.
	if _, err := tx.ExecContext(ctx,
		`UPDATE groups SET newest = $2 WHERE id = $1 AND newest < $2`, g.ID, sn.Key); err != nil {
		return snap.ShareChange{}, err
	}
	if err := markShared(ctx, tx, sn); err != nil {
		return snap.ShareChange{}, err
	}
	made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindGroup, g.ID), expires)
	if err != nil {
		return snap.ShareChange{}, err
	}
	change, err := s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{Group: g.GroupID})
	change.Group = &g
	return change, err
}

// grantRecipient shares a snapshot with another organization until a time, or indefinitely if
// with.Expires is zero.
func (s *Store) grantRecipient(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, slug string,
	with snap.Shares) (change snap.ShareChange, err error) {
	org, err := orgInTx(ctx, tx, slug, ` AND closed = 0`)
	if err != nil {
		return change, err
	}
	if org.ID == sn.Org.ID {
		return change, snap.Invalid("this organization already owns the snapshot",
			"share it with the whole organization instead")
	}
	if err := markShared(ctx, tx, sn); err != nil {
		return change, err
	}
	if err := s.addTarget(ctx, tx, org.ID, sn.Target); err != nil {
		return change, err
	}
	made, err := s.grant(ctx, tx, c, sn, snap.AudienceOf(snap.KindRecipients, org.ID), with.Expires)
	if err != nil {
		return change, err
	}
	if _, err := tx.ExecContext(ctx,
		`DELETE FROM declines WHERE snapshot = $1 AND org_id = $2`, sn.Key, org.ID); err != nil {
		return change, err
	}
	if err := s.grantSchema(ctx, tx, sn, org, with.WithSchema, &made); err != nil {
		return change, err
	}
	change, err = s.recordShare(ctx, tx, c, sn, made, snap.AuditDetail{Organization: slug, WithSchema: made.schema})
	change.Org = &org
	if change.Previous != nil {
		change.Previous.Org = org
	}
	return change, err
}

// grantSchema sets whether a share with an organization includes the schema. If withSchema is nil,
// a live share keeps its setting, and a new share does not include the schema.
func (s *Store) grantSchema(ctx context.Context, tx *sql.Tx, sn snap.Snapshot, org snap.OrgRef, withSchema *bool,
	m *grantResult) error {
	var before int64
	audience := int64(snap.AudienceOf(snap.KindRecipients, org.ID))
	if err := tx.QueryRowContext(ctx, `SELECT with_schema FROM grants WHERE audience = $1 AND snapshot = $2`, audience,
		sn.Key).Scan(&before); err != nil {
		return err
	}
	live := m.old != nil && m.old.Live(s.now())
	m.schema = live && before == 1
	if withSchema != nil {
		m.schema = *withSchema
	}
	if flag(m.schema) == before {
		return nil
	}
	m.schemaChanged = live
	_, err := tx.ExecContext(ctx, `UPDATE grants SET with_schema = $3 WHERE audience = $1 AND snapshot = $2`, audience,
		sn.Key, flag(m.schema))
	return err
}

// markShared marks a snapshot that may have shares. Listings count the shares of marked snapshots
// only.
func markShared(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) error {
	_, err := tx.ExecContext(ctx, `UPDATE snapshots SET widened = 1 WHERE key = $1 AND widened = 0`, sn.Key)
	return err
}

// groupByID returns a group and locks it, so that it is not pruned before the transaction ends. It
// fails with code group_not_found if there is no such group.
func (s *Store) groupByID(ctx context.Context, tx *sql.Tx, orgID int64, groupID string) (g snap.Group, err error) {
	g, err = one(txCollect(ctx, tx,
		`SELECT id, group_id, name FROM groups WHERE org_id = $1 AND group_id = $2`+s.rowLock(`FOR SHARE`),
		scanGroup, orgID, groupID))
	return g, noRowsAs(err, errNoGroup(groupID))
}

func errNoGroup(groupID string) error {
	return &snap.Error{
		Code:   snap.CodeGroupNotFound,
		Detail: fmt.Sprintf("the organization has no group with the ID %q", groupID),
		Hint:   "a group appears when one of its members signs in, or when your identity provider reports it",
	}
}

// GroupShares returns a snapshot's live group shares, sorted by the groups' names.
func (s *Store) GroupShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.GroupShare, error) {
	return collect(ctx, s, `
		SELECT n.id, n.group_id, n.name, g.created_at, coalesce(u.email, ''), coalesce(g.channel, 0), g.expires_at
		FROM snapshots s JOIN grants g ON g.snapshot = s.key AND g.audience`+isGroup+` AND `+liveGrant+`
		JOIN groups n ON n.id = g.audience`+subjectOf+` LEFT JOIN users u ON u.id = g.created_by
		WHERE s.key = $3 AND `+visible+` ORDER BY n.name, n.group_id`,
		func(rows *sql.Rows) (g snap.GroupShare, err error) {
			err = rows.Scan(&g.Group.ID, &g.Group.GroupID, &g.Group.Name, toTime(&g.Created), &g.By, &g.Channel,
				toTime(&g.Expires))
			return g, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key)
}

func orgInTx(ctx context.Context, tx *sql.Tx, slug, condition string) (o snap.OrgRef, err error) {
	err = tx.QueryRowContext(ctx,
		`SELECT id, slug, name FROM orgs WHERE slug = $1`+condition, slug).Scan(&o.ID, &o.Slug, &o.Name)
	return o, noRowsAs(err, errNoOrg(slug))
}

// OrgShares returns a snapshot's live cross-org shares, sorted by slug.
func (s *Store) OrgShares(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.OrgShare, error) {
	return collect(ctx, s, `
		SELECT o.id, o.slug, o.name, r.expires_at, r.created_at, coalesce(u.email, ''), r.with_schema
		FROM snapshots s JOIN grants r ON r.snapshot = s.key AND r.audience`+isRecipients+` AND (r.expires_at IS NULL
			OR r.expires_at > $2)
		JOIN orgs o ON o.id = r.audience`+subjectOf+` LEFT JOIN users u ON u.id = r.created_by
		WHERE s.key = $3 AND `+visible+` ORDER BY o.slug`,
		func(rows *sql.Rows) (o snap.OrgShare, err error) {
			err = rows.Scan(&o.Org.ID, &o.Org.Slug, &o.Org.Name, toTime(&o.Expires), toTime(&o.Created), &o.By,
				&o.WithSchema)
			return o, err
		}, c.Principal(), s.now().UnixMilli(), sn.Key)
}

// grantResult is the result of [Store.grant].
type grantResult struct {
	created, expires time.Time
	by               string         // e-mail of the user who shared it
	old              *snap.OrgShare // the replaced share, without the organization
	schema           bool           // the recipient sees the schema
	schemaChanged    bool           // the schema setting of a live share changed
}

// grant lets an audience see a snapshot until a time. An existing live grant keeps its creator and
// time of creation; its end changes, and it no longer belongs to a channel.
func (s *Store) grant(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, a snap.Audience,
	until time.Time) (m grantResult, err error) {
	var old snap.OrgShare
	err = tx.QueryRowContext(ctx, `
		SELECT g.created_at, g.expires_at, coalesce(u.email, '') FROM grants g LEFT JOIN users u ON u.id = g.created_by
		WHERE g.audience = $1 AND g.snapshot = $2`, int64(a), sn.Key).
		Scan(toTime(&old.Created), toTime(&old.Expires), &old.By)
	now := s.now()
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return grantResult{}, err
	}
	if err == nil {
		m.old = &old
	}
	m.expires = timeOf(millis(until))
	if m.old != nil && m.old.Live(now) {
		m.created, m.by = old.Created, old.By
		_, err = tx.ExecContext(ctx,
			`UPDATE grants SET expires_at = $3, channel = NULL WHERE audience = $1 AND snapshot = $2`,
			int64(a), sn.Key, millis(until))
		return m, err
	}
	m.created = time.UnixMilli(now.UnixMilli()).UTC()
	if c.User != nil {
		m.by = c.User.Email
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO grants(audience, snapshot, target_id, type, expires_at, created_at, created_by,
			owner_id, named_day, named_time, label_id)
		SELECT $1, key, target_id, type, $3, $4, $5, coalesce(owner_id, 0), named_day, named_time, label_id
		FROM snapshots WHERE key = $2
		ON CONFLICT(audience, snapshot) DO UPDATE SET expires_at = excluded.expires_at,
			created_at = excluded.created_at, created_by = excluded.created_by, channel = NULL`,
		int64(a), sn.Key, millis(until), now.UnixMilli(), userID(c))
	return m, err
}

// recordShare returns the change that a share made. If it changed anything, recordShare adds it to
// the audit log.
func (s *Store) recordShare(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, m grantResult,
	d snap.AuditDetail) (snap.ShareChange, error) {
	change := snap.ShareChange{Created: m.created, By: m.by, Expires: m.expires, WithSchema: m.schema,
		Changed: true}
	if m.old != nil && m.old.Live(s.now()) {
		change.Previous = m.old
		change.Changed = m.schemaChanged || !m.old.Expires.Equal(m.expires)
	}
	if !change.Changed {
		return change, nil
	}
	if !m.expires.IsZero() {
		d.Expires = &m.expires
	}
	if d.Organization == "" {
		return change, s.recordOn(ctx, tx, c, sn, snap.AuditShared, d)
	}
	var noticeTo int64
	if sn.Owner != nil {
		d.Owner = sn.Owner.Email
		if c.User == nil || c.User.ID != sn.Owner.ID {
			noticeTo = sn.Owner.ID
		}
	}
	d.Target = sn.Target
	shared := snap.AuditEntry{Action: snap.AuditShared, Snapshot: sn.ID, Detail: d}
	if err := s.recordFor(ctx, tx, sn.Org.ID, c, shared, noticeTo); err != nil {
		return change, err
	}
	return change, s.recordReceipt(ctx, tx, sn, d)
}

// recordReceipt adds a line to the audit log of the snapshot's organization, with only those facts
// about a share that the recipient is allowed to see. The recipient can get this line and the proof
// that it is in the log.
func (s *Store) recordReceipt(ctx context.Context, tx *sql.Tx, sn snap.Snapshot, d snap.AuditDetail) error {
	return s.record(snap.WithOrigin(ctx, snap.Origin{}), tx, sn.Org.ID, snap.Caller{Org: sn.Org}, snap.AuditEntry{
		Action: snap.AuditReceipt, Snapshot: sn.ID,
		Detail: snap.AuditDetail{Target: sn.Target, Organization: d.Organization, Expires: d.Expires}})
}

// ungrant deletes a grant. It records the end in the audit log.
func (s *Store) ungrant(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, a snap.Audience,
	d snap.AuditDetail) (ended bool, err error) {
	ended, err = changed(tx.ExecContext(ctx,
		`DELETE FROM grants AS g WHERE g.audience = $1 AND g.snapshot = $3 AND `+liveGrant,
		int64(a), s.now().UnixMilli(), sn.Key))
	if err != nil || !ended {
		return false, err
	}
	return true, s.recordOn(ctx, tx, c, sn, snap.AuditUnshared, d)
}
