package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"snap"
)

// Channel is a standing rule: the newest snapshot of a target and type is shared with a group of
// the organization or, without a group, org-wide. It is applied when a snapshot is pushed. The
// channel then no longer shares the previous snapshot. A share that someone made by hand is not
// affected.
type Channel struct {
	ID      int64
	Target  string
	Type    snap.Type
	Group   *snap.Group // nil means org-wide
	Created time.Time
	By      string // e-mail of its creator

	ExpectEvery time.Duration // overdue when nothing is pushed for this long; 0 means never overdue
}

// Channels returns the channels of the caller's organization, by target.
func (s *Store) Channels(ctx context.Context, c snap.Caller) ([]Channel, error) {
	return collect(ctx, s, selectChannel+`WHERE h.org_id = $1 ORDER BY h.target, h.id`, scanChannel, c.Org.ID)
}

const selectChannel = `SELECT h.id, h.target, h.type, coalesce(g.id, 0), coalesce(g.group_id, ''), coalesce(g.name, ''),
		h.created_at, coalesce(u.email, ''), h.expect_every
	FROM channels h LEFT JOIN groups g ON g.id = h.group_id LEFT JOIN users u ON u.id = h.created_by `

func scanChannel(rows *sql.Rows) (h Channel, err error) {
	var every int64
	var g snap.Group
	err = rows.Scan(&h.ID, &h.Target, &h.Type, &g.ID, &g.GroupID, &g.Name, toTime(&h.Created), &h.By, &every)
	h.ExpectEvery = time.Duration(every) * time.Second
	if g.ID != 0 {
		h.Group = &g
	}
	return h, err
}

// NewChannel describes a channel to create.
type NewChannel struct {
	Target      string
	Type        snap.Type
	GroupID     string         // "" for an org-wide channel
	Now         bool           // also share the newest existing snapshot, and not only later pushes
	ExpectEvery *time.Duration // 0 means never overdue; nil keeps the value of an existing channel
}

// AddChannel creates a channel, or changes how often an existing one expects a snapshot. It is
// idempotent. It fails with code group_not_found if there is no such group.
func (s *Store) AddChannel(ctx context.Context, c snap.Caller, n NewChannel) (h Channel, err error) {
	var id int64
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		var group int64
		if n.GroupID != "" {
			g, err := s.groupByID(ctx, tx, c.Org.ID, n.GroupID)
			if err != nil {
				return err
			}
			group = g.ID
		}
		err := tx.QueryRowContext(ctx,
			`SELECT id FROM channels WHERE org_id = $1 AND target = $2 AND type = $3 AND coalesce(group_id, 0) = $4`,
			c.Org.ID, n.Target, string(n.Type), group).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			id, err = s.createChannel(ctx, tx, c, n, group)
		}
		if err == nil && n.ExpectEvery != nil {
			_, err = tx.ExecContext(ctx, `UPDATE channels SET expect_every = $2,
					overdue_after = CASE WHEN expect_every = $2 THEN overdue_after ELSE -1 END WHERE id = $1`, id,
				int64(*n.ExpectEvery/time.Second))
		}
		if err != nil || !n.Now {
			return err
		}
		return s.applyToNewest(ctx, tx, c, n.Target, n.Type)
	})
	if err != nil {
		return Channel{}, err
	}
	return one(collect(ctx, s, selectChannel+`WHERE h.id = $1`, scanChannel, id))
}

func (s *Store) createChannel(ctx context.Context, tx *sql.Tx, c snap.Caller, n NewChannel, group int64) (id int64,
	err error) {
	err = tx.QueryRowContext(ctx,
		`INSERT INTO channels(org_id, target, type, group_id, created_at, created_by)
		VALUES($1, $2, $3, $4, $5, $6) RETURNING id`,
		c.Org.ID, n.Target, string(n.Type), nullID(group), s.now().UnixMilli(), userID(c)).Scan(&id)
	if err != nil {
		return 0, err
	}
	return id, s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditChannelCreated,
		Detail: snap.AuditDetail{Channel: id, Target: n.Target, Kind: string(n.Type), Group: n.GroupID,
			OrgWide: n.GroupID == ""}})
}

// DeleteChannel deletes a channel of the caller's organization and ends the shares it made. It
// fails with code not_found if there is no such channel.
func (s *Store) DeleteChannel(ctx context.Context, c snap.Caller, id int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		d := snap.AuditDetail{Channel: id}
		err := tx.QueryRowContext(ctx,
			`DELETE FROM channels WHERE id = $1 AND org_id = $2 RETURNING target, type`, id, c.Org.ID).
			Scan(&d.Target, &d.Kind)
		if err != nil {
			return noRowsAs(err, &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no channel %d", id),
				Hint: "list the channels to see which exist"})
		}
		if err := s.endChannelGrants(ctx, tx, c, id, 0); err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditChannelDeleted, Detail: d})
	})
}

// applyToNewest applies the target's channels to its newest snapshot.
func (s *Store) applyToNewest(ctx context.Context, tx *sql.Tx, c snap.Caller, target string, t snap.Type) error {
	sn := snap.Snapshot{Org: c.Org, Target: target}
	err := tx.QueryRowContext(ctx, `SELECT s.key, s.id FROM snapshots s JOIN targets t ON t.id = s.target_id
		WHERE s.org_id = $1 AND t.name = $2 AND s.type = $3 ORDER BY s.key DESC LIMIT 1`,
		c.Org.ID, target, string(t)).Scan(&sn.Key, &sn.ID)
	if err != nil {
		return noRowsAs(err, nil) // there is no snapshot yet
	}
	return s.applyChannels(ctx, tx, sn, t)
}

// applyChannels shares a snapshot through the channels of its target and type. A share that the
// organization's policy forbids is recorded as refused; the push still succeeds. The channels are
// locked, so that other pushes and the deletion of a channel see the shares that are made here.
func (s *Store) applyChannels(ctx context.Context, tx *sql.Tx, sn snap.Snapshot, t snap.Type) error {
	channels, err := txCollect(ctx, tx,
		selectChannel+`WHERE h.org_id = $1 AND h.target = $2 AND h.type = $3 ORDER BY h.id`+
			s.rowLock(`FOR UPDATE OF h`), scanChannel, sn.Org.ID, sn.Target, string(t))
	if err != nil || len(channels) == 0 {
		return err
	}
	org, err := scanOrg(tx.QueryRowContext(ctx, selectOrg+`WHERE id = $1`, sn.Org.ID))
	if err != nil {
		return err
	}
	for _, h := range channels {
		by := snap.Caller{Org: org.OrgRef, Credential: snap.Credential{Name: fmt.Sprintf("channel %d", h.ID)}}
		if err := s.applyChannel(ctx, tx, by, sn, t, h, org.Policy); err != nil {
			return fmt.Errorf("apply channel %d: %w", h.ID, err)
		}
	}
	return nil
}

func (s *Store) applyChannel(ctx context.Context, tx *sql.Tx, by snap.Caller, sn snap.Snapshot, t snap.Type, h Channel,
	p snap.Policy) error {
	audience := snap.AudienceOf(snap.KindMembers, sn.Org.ID)
	detail := snap.AuditDetail{OrgWide: h.Group == nil, Channel: h.ID}
	if h.Group != nil {
		audience, detail.Group = snap.AudienceOf(snap.KindGroup, h.Group.ID), h.Group.GroupID
	}
	const confirmed = true // confirmed when the channel was created
	refusal := p.CheckShares(t, snap.Shares{OrgWide: h.Group == nil}, confirmed, s.now())
	if refusal == nil && p.Requires == snap.RequireCertificate {
		certificate, err := certificateOf(ctx, tx, sn)
		if err != nil {
			return err
		}
		refusal = p.CheckCertificate(certificate)
	}
	if refusal != nil {
		detail.Code = snap.CodeOf(refusal)
		return s.recordOn(ctx, tx, by, sn, snap.AuditShareRefused, detail)
	}
	var shared, newer bool // newer: another push was faster, and its snapshot is newer
	err := tx.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM grants g WHERE g.audience = $1 AND g.snapshot = $3 AND `+liveGrant+`),
			EXISTS (SELECT 1 FROM grants WHERE channel = $4 AND snapshot > $3)`,
		int64(audience), s.now().UnixMilli(), sn.Key, h.ID).Scan(&shared, &newer)
	if err != nil || newer {
		return err
	}
	if shared {
		return s.endChannelGrants(ctx, tx, by, h.ID, sn.Key)
	}
	if h.Group != nil {
		_, err = s.grantGroup(ctx, tx, by, sn, *h.Group, time.Time{})
	} else {
		_, err = s.grantOrgWide(ctx, tx, by, sn, time.Time{})
	}
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE grants SET channel = $3 WHERE audience = $1 AND snapshot = $2`,
		int64(audience), sn.Key, h.ID); err != nil {
		return err
	}
	return s.endChannelGrants(ctx, tx, by, h.ID, sn.Key)
}

// endChannelGrants ends a channel's shares of all snapshots except the one whose key is keep.
func (s *Store) endChannelGrants(ctx context.Context, tx *sql.Tx, c snap.Caller, channel, keep int64) error {
	type channelGrant struct {
		sn snap.Snapshot
		a  snap.Audience
		d  snap.AuditDetail
	}
	all, err := txCollect(ctx, tx, `SELECT g.audience, s.key, s.id, s.target, coalesce(n.group_id, '')
		FROM grants g JOIN snapshots s ON s.key = g.snapshot
		LEFT JOIN groups n ON g.audience`+isGroup+` AND n.id = g.audience`+subjectOf+` WHERE g.channel = $1
			AND g.snapshot <> $2`, func(rows *sql.Rows) (g channelGrant, err error) {
		g.sn.Org = c.Org
		err = rows.Scan(&g.a, &g.sn.Key, &g.sn.ID, &g.sn.Target, &g.d.Group)
		g.d.OrgWide, g.d.Channel = g.d.Group == "", channel
		return g, err
	}, channel, keep)
	if err != nil {
		return err
	}
	for _, g := range all {
		if _, err := s.ungrant(ctx, tx, c, g.sn, g.a, g.d); err != nil {
			return err
		}
	}
	return nil
}
