package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"snap"
)

// expectation is a channel that expects snapshots.
type expectation struct {
	id, org     int64
	target      string
	kind        string
	every       time.Duration
	created     time.Time // when the channel was created
	reportedKey int64     // key of the newest snapshot when the channel was last reported; -1 if it never was
}

// ReportOverdue records each channel whose newest snapshot is older than the channel expects, and
// returns how many it recorded. It records a channel again only after another snapshot is pushed or
// the channel's ExpectEvery is changed. Several replicas may run it at the same time.
func (s *Store) ReportOverdue(ctx context.Context) (reported int, err error) {
	all, err := collect(ctx, s, `SELECT h.id, h.org_id, h.target, h.type, h.expect_every, h.created_at, h.overdue_after
		FROM channels h JOIN orgs o ON o.id = h.org_id WHERE h.expect_every > 0 AND o.closed = 0 ORDER BY h.id`,
		func(rows *sql.Rows) (e expectation, err error) {
			var every int64
			err = rows.Scan(&e.id, &e.org, &e.target, &e.kind, &every, toTime(&e.created), &e.reportedKey)
			e.every = time.Duration(every) * time.Second
			return e, err
		})
	if err != nil {
		return 0, err
	}
	return recordEach(ctx, all, s.reportOverdue)
}

func (s *Store) reportOverdue(ctx context.Context, e expectation) (recorded bool, err error) {
	newest, err := s.newestPushed(ctx, e)
	if err != nil {
		return false, err
	}
	last := e.created
	if newest > 0 {
		last = time.UnixMilli(newest >> keyBits)
	}
	if newest <= e.reportedKey || s.now().Sub(last) <= e.every {
		return false, nil
	}
	by, err := s.serviceCaller(ctx, e.org, fmt.Sprintf("channel %d", e.id))
	if err != nil {
		return false, err
	}
	err = s.tx(ctx, func(tx *sql.Tx) error {
		recorded, err = changed(tx.ExecContext(ctx, `UPDATE channels SET overdue_after = $2
			WHERE id = $1 AND overdue_after = $3 AND expect_every > 0`, e.id, newest, e.reportedKey))
		if err != nil || !recorded {
			return err // another replica was first, or the channel is gone
		}
		return s.record(ctx, tx, e.org, by, snap.AuditEntry{Action: snap.AuditOverdue, Detail: snap.AuditDetail{
			Channel: e.id, Target: e.target, Kind: e.kind,
			Reason: "no snapshot was pushed for " + snap.Span(s.now().Sub(last))}})
	})
	return recorded, err
}

// newestPushed returns the key of the newest snapshot that a channel covers, or 0.
func (s *Store) newestPushed(ctx context.Context, e expectation) (key int64, err error) {
	err = s.row(ctx, `SELECT g.snapshot FROM grants g
		WHERE g.audience = $1 AND g.target_id = (SELECT id FROM targets WHERE name = $2) AND g.type = $3
		ORDER BY g.snapshot DESC LIMIT 1`, int64(snap.AudienceOf(snap.KindAdmins, e.org)), e.target, e.kind).Scan(&key)
	return key, noRowsAs(err, nil)
}
