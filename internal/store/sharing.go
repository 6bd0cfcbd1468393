package store

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"snap"
)

// expiringSoon returns the keys of the n newest snapshots with a share that ends soon. It considers
// only keys that are less than the parameter before, and only shares that the caller may know
// about: those that let the caller see the snapshot, and those of the caller's own snapshots.
// Owners and admins may know about every share of their organization. Only they may know when
// shares with other organizations end.
func (s *Store) expiringSoon(ctx context.Context, c snap.Caller, before int64, n int) ([]int64, error) {
	now := s.now()
	return collect(ctx, s, `SELECT DISTINCT g.snapshot FROM grants g JOIN snapshots s ON s.key = g.snapshot
		WHERE g.expires_at > $1 AND g.expires_at <= $2 AND g.snapshot < $3 AND (
			s.org_id = $4 AND ($5 <> 0 OR s.owner_id = $6 AND g.audience`+isNotRecipients+`)
			OR EXISTS (SELECT 1 FROM membership m WHERE m.principal = $7 AND m.kind = g.audience`+kindOf+`
				AND m.audience = g.audience))
		ORDER BY g.snapshot DESC LIMIT $8`, scanOne[int64], now.UnixMilli(), now.Add(snap.SoonExpiring).UnixMilli(),
		before, c.Org.ID, flag(c.IsAdmin()), userID(c).Int64, c.Principal(), n)
}

// WithShareNames returns a snapshot with the group names and the ends of shares that a listing
// shows.
func (s *Store) WithShareNames(ctx context.Context, c snap.Caller, sn snap.Snapshot) (snap.Snapshot, error) {
	one := []snap.Snapshot{sn}
	err := s.nameShares(ctx, c, one)
	return one[0], err
}

// nameShares sets FirstGroup, NextExpiry and Through of snapshots that the caller sees. It reads
// nothing for snapshots for which these fields stay empty.
func (s *Store) nameShares(ctx context.Context, c snap.Caller, all []snap.Snapshot) error {
	at := map[int64]*snap.Snapshot{}
	var keys []int64
	for i := range all {
		if sn := &all[i]; sn.Groups > 0 || sn.Orgs > 0 || throughGroup(c, *sn) {
			at[sn.Key], keys = sn, append(keys, sn.Key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	_, err := collect(ctx, s, `SELECT x.snapshot, x.kind, coalesce(min(x.name), ''), min(x.expires_at),
			coalesce(min(CASE WHEN x.own > 0 THEN x.name END), '') FROM (
		SELECT g.snapshot, g.audience`+kindOf+` AS kind, g.expires_at,
			CASE WHEN n.name = '' THEN n.group_id ELSE n.name END AS name,
			(SELECT count(*) FROM membership m WHERE m.principal = $1 AND m.audience = g.audience) AS own
		FROM grants g LEFT JOIN groups n ON g.audience`+isGroup+` AND n.id = g.audience`+subjectOf+`
		WHERE g.snapshot IN (SELECT v FROM `+s.each("$3")+` AS e) AND g.audience`+isGroupOrRecipients+`
			AND `+liveGrant+`) AS x GROUP BY x.snapshot, x.kind`,
		func(rows *sql.Rows) (struct{}, error) {
			var key int64
			var kind snap.AudienceKind
			var first, own string
			var ends sql.NullInt64
			if err := rows.Scan(&key, &kind, &first, &ends, &own); err != nil {
				return struct{}{}, err
			}
			nameOne(c, at[key], kind, first, own, timeOf(ends))
			return struct{}{}, nil
		}, c.Principal(), s.now().UnixMilli(), jsonArray(keys))
	return err
}

// nameOne sets the fields of a snapshot from its live shares of one kind. first is the first of all
// groups, and own is the first of the caller's groups.
func nameOne(c snap.Caller, sn *snap.Snapshot, kind snap.AudienceKind, first, own string, ends time.Time) {
	manages := snap.ActShareOrg
	if kind == snap.KindGroup {
		manages = snap.ActShare
		if throughGroup(c, *sn) {
			sn.Through = own
		}
	}
	if snap.Allowed(c, manages, *sn) != nil {
		return
	}
	sn.FirstGroup = cmp.Or(sn.FirstGroup, first)
	if !ends.IsZero() && (sn.NextExpiry.IsZero() || ends.Before(sn.NextExpiry)) {
		sn.NextExpiry = ends
	}
}

// throughGroup reports whether only a group share can be the reason why the caller sees a snapshot.
func throughGroup(c snap.Caller, sn snap.Snapshot) bool {
	return c.User != nil && !c.IsAdmin() && !sn.Shared && sn.Org.ID == c.Org.ID &&
		(sn.Owner == nil || sn.Owner.ID != c.User.ID)
}
