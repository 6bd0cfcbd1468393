package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"time"

	"snap"
)

// LiveShare is a share of a snapshot that is in force.
type LiveShare struct {
	Snapshot snap.Snapshot
	Group    *snap.GroupShare // set for a group share
	Org      *snap.OrgShare   // set for a cross-org share
	audience int64
}

// ShareQuery selects live shares of an organization's own snapshots: the shares with one group or,
// if GroupID is empty, the shares with other organizations.
type ShareQuery struct {
	GroupID string
	Limit   int
	Cursor  string
}

// liveShareCursor is the format of a cursor: the key of a snapshot and an audience.
const liveShareCursor = "%d-%d"

// LiveShares returns a page of the live shares of the caller's organization and the cursor of the
// next page. Shares of the newest snapshots come first. Authorization is the caller's job
// (snap.Allowed).
func (s *Store) LiveShares(ctx context.Context, c snap.Caller, q ShareQuery) (all []LiveShare, next string, err error) {
	q.Limit = min(cmp.Or(max(q.Limit, 0), defaultLimit), maxLimit)
	key, after := int64(math.MaxInt64), int64(0)
	if q.Cursor != "" {
		if _, err := fmt.Sscanf(q.Cursor, liveShareCursor, &key, &after); err != nil ||
			fmt.Sprintf(liveShareCursor, key, after) != q.Cursor {
			return nil, "", snap.Invalid("the cursor belongs to another listing", "start again without a cursor")
		}
	}
	const columns = `SELECT s.key, s.id, s.target, s.name, s.type, s.size, s.created_at, g.expires_at, g.created_at,
		coalesce(b.email, ''), coalesce(g.channel, 0), `
	const where = ` AND ` + liveGrant + ` AND s.key <= $3 AND (s.key < $3 OR g.audience > $4)`
	args := []any{c.Org.ID, s.now().UnixMilli(), key, after}
	text := columns + `o.id, o.slug, o.name, g.audience FROM snapshots s JOIN grants g ON g.snapshot = s.key
		JOIN orgs o ON o.id = g.audience` + subjectOf + ` LEFT JOIN users b ON b.id = g.created_by
		WHERE s.org_id = $1 AND s.widened <> 0 AND g.audience` + isRecipients + where
	if q.GroupID != "" {
		text = columns + `n.id, n.group_id, n.name, g.audience FROM groups n
		JOIN grants g ON g.audience = n.id` + groupOf + `
		JOIN snapshots s ON s.key = g.snapshot LEFT JOIN users b ON b.id = g.created_by
		WHERE n.org_id = $1 AND n.group_id = $5` + where
		args = append(args, q.GroupID)
	}
	all, err = collect(ctx, s, text+` ORDER BY s.key DESC, g.audience LIMIT `+strconv.Itoa(q.Limit+1),
		func(rows *sql.Rows) (LiveShare, error) { return scanLiveShare(rows, q.GroupID != "") }, args...)
	if err != nil || len(all) <= q.Limit {
		return all, "", err
	}
	all = all[:q.Limit]
	last := all[q.Limit-1]
	return all, fmt.Sprintf(liveShareCursor, last.Snapshot.Key, last.audience), nil
}

func scanLiveShare(rows *sql.Rows, group bool) (l LiveShare, err error) {
	var by, id, name string
	var channel, subject int64
	var expires, shared time.Time
	sn := &l.Snapshot
	err = rows.Scan(&sn.Key, &sn.ID, &sn.Target, &sn.Name, &sn.Type, &sn.Size, toTime(&sn.Created), toTime(&expires),
		toTime(&shared), &by, &channel, &subject, &id, &name, &l.audience)
	if group {
		l.Group = &snap.GroupShare{Group: snap.Group{ID: subject, GroupID: id, Name: name}, By: by,
			Expires: expires, Created: shared, Channel: channel}
	} else {
		l.Org = &snap.OrgShare{Org: snap.OrgRef{ID: subject, Slug: id, Name: name}, By: by, Expires: expires,
			Created: shared}
	}
	return l, err
}
