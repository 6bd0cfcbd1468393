package store

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"

	"snap"
)

// Retention says how long an organization keeps a target's snapshots: the last KeepLast of each
// type, and those younger than KeepDays days. A bound of 0 is disabled; at least one bound is set.
// A snapshot is kept if either bound keeps it, or if it has a live cross-org share.
type Retention struct {
	Target             string
	KeepLast, KeepDays int
}

// Retentions returns the rules of the caller's organization, by target.
func (s *Store) Retentions(ctx context.Context, c snap.Caller) ([]Retention, error) {
	return collect(ctx, s,
		`SELECT target, keep_last, keep_days FROM retention WHERE org_id = $1 ORDER BY target`, scanRetention, c.Org.ID)
}

func scanRetention(rows *sql.Rows) (r Retention, err error) {
	err = rows.Scan(&r.Target, &r.KeepLast, &r.KeepDays)
	return r, err
}

// SetRetention creates or changes a target's rule.
func (s *Store) SetRetention(ctx context.Context, c snap.Caller, r Retention) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO retention(org_id, target, keep_last, keep_days) VALUES($1, $2, $3, $4)
			ON CONFLICT(org_id, target) DO UPDATE SET keep_last = excluded.keep_last, keep_days = excluded.keep_days`,
			c.Org.ID, r.Target, r.KeepLast, r.KeepDays)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditRetention,
			Detail: snap.AuditDetail{Target: r.Target, KeepLast: r.KeepLast, KeepDays: r.KeepDays}})
	})
}

// DeleteRetention deletes a target's rule; its snapshots are then kept indefinitely. It fails with
// code not_found if the target has no rule.
func (s *Store) DeleteRetention(ctx context.Context, c snap.Caller, target string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM retention WHERE org_id = $1 AND target = $2`, c.Org.ID, target)
		missing := &snap.Error{Code: snap.CodeNotFound, Detail: "there is no retention rule for " + target,
			Hint: "list the rules to see which exist"}
		if err := requireChanged(res, err, missing); err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditRetention,
			Detail: snap.AuditDetail{Target: target}})
	})
}

// Expirable returns at most limit snapshots of an organization that its rules no longer keep, as
// its admins see them. It prefers the oldest of each target and type.
func (s *Store) Expirable(ctx context.Context, orgID int64, limit int) ([]snap.Snapshot, error) {
	c, err := s.serviceCaller(ctx, orgID, snap.PartRetention)
	if err != nil {
		return nil, err
	}
	rules, err := s.Retentions(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []snap.Snapshot
	for _, r := range rules {
		for _, t := range []snap.Type{snap.TypeSnapshot, snap.TypeSanitized} {
			old, err := s.expirableOf(ctx, c, r, t, limit-len(all))
			if err != nil {
				return nil, err
			}
			all = append(all, old...)
		}
	}
	return all, nil
}

// expirableOf returns the target's oldest snapshots of one type that the rule does not keep. It
// finds them in the index of the admins' grants.
func (s *Store) expirableOf(ctx context.Context, c snap.Caller, r Retention, t snap.Type, limit int) ([]snap.Snapshot,
	error) {
	if limit <= 0 {
		return nil, nil
	}
	before, err := s.leastKept(ctx, s.row, c.Org.ID, r, t)
	if err != nil {
		return nil, err
	}
	return s.snapshots(ctx, c, selectOne+`s.key IN (
		SELECT g.snapshot FROM grants g
		WHERE g.audience = $5 AND g.target_id = (SELECT id FROM targets WHERE name = $6) AND g.type = $7
		AND g.snapshot < $8 AND NOT EXISTS (SELECT 1 FROM grants r WHERE r.snapshot = g.snapshot
			AND r.audience`+isRecipients+` AND (r.expires_at IS NULL OR r.expires_at > $2))
		ORDER BY g.snapshot LIMIT $9)`, append(s.viewerArgs(c), int64(snap.AudienceOf(snap.KindAdmins, c.Org.ID)),
		r.Target, string(t), before, limit)...)
}

// rowQuery queries at most one row, from the database or within a transaction.
type rowQuery func(ctx context.Context, text string, args ...any) scanner

func rowQueryIn(tx *sql.Tx) rowQuery {
	return func(ctx context.Context, text string, args ...any) scanner {
		return tx.QueryRowContext(ctx, text, args...)
	}
}

// leastKept returns the least key that a rule keeps among the snapshots of a target and type. The
// rule does not keep snapshots with smaller keys. The result is 0 if it keeps all.
func (s *Store) leastKept(ctx context.Context, row rowQuery, orgID int64, r Retention, t snap.Type) (key int64,
	err error) {
	key = math.MaxInt64
	if r.KeepLast > 0 {
		err := row(ctx, `SELECT g.snapshot FROM grants g
			WHERE g.audience = $1 AND g.target_id = (SELECT id FROM targets WHERE name = $2) AND g.type = $3
			ORDER BY g.snapshot DESC LIMIT 1 OFFSET $4`,
			int64(snap.AudienceOf(snap.KindAdmins, orgID)), r.Target, string(t), r.KeepLast-1).Scan(&key)
		if err != nil {
			return 0, noRowsAs(err, nil) // fewer snapshots than the rule keeps
		}
	}
	if r.KeepDays > 0 {
		key = min(key, s.now().Add(-time.Duration(r.KeepDays)*24*time.Hour).UnixMilli()<<keyBits)
	}
	return key, nil
}

// serviceCaller returns the caller that a part of the service acts as: the organization, without a
// key.
func (s *Store) serviceCaller(ctx context.Context, orgID int64, part string) (snap.Caller, error) {
	c, err := s.CallerOfOrg(ctx, orgID)
	c.Credential.Name = part
	return c, err
}

// Expire deletes a snapshot that [Store.Expirable] returned, as the admin who asks for it or as
// retention. It returns "" and false, and deletes nothing, if a rule now keeps the snapshot, if it
// was shared with another organization in the meantime, or if it is gone. The transaction that
// deletes the snapshot checks this.
func (s *Store) Expire(ctx context.Context, sn snap.Snapshot) (blobKey string, gone bool, err error) {
	c, err := s.serviceCaller(ctx, sn.Org.ID, snap.PartRetention)
	if err != nil {
		return "", false, err
	}
	if by := snap.OriginOf(ctx).Caller; by.IsAdmin() && by.Org.ID == sn.Org.ID {
		c = by
	}
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		if gone, err = s.mayExpire(ctx, tx, sn); err != nil || !gone {
			return err
		}
		blobKey, err = s.delete(ctx, tx, c, sn)
		return err
	})
	if errors.Is(err, snap.ErrNotFound) {
		return "", false, nil
	}
	return blobKey, gone && err == nil, err
}

// mayExpire reports whether the rule of the snapshot's target does not keep the snapshot and no
// other organization can still pull it. It locks the rule until the transaction ends.
func (s *Store) mayExpire(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) (may bool, err error) {
	r, err := one(txCollect(ctx, tx, `SELECT target, keep_last, keep_days FROM retention
		WHERE org_id = $1 AND target = $2`+s.rowLock(`FOR SHARE`), scanRetention, sn.Org.ID, sn.Target))
	if err != nil {
		return false, noRowsAs(err, nil)
	}
	before, err := s.leastKept(ctx, rowQueryIn(tx), sn.Org.ID, r, sn.Type)
	if err != nil || sn.Key >= before {
		return false, err
	}
	var shared bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM grants WHERE snapshot = $1
		AND audience`+isRecipients+` AND (expires_at IS NULL OR expires_at > $2))`,
		sn.Key, s.now().UnixMilli()).Scan(&shared)
	return !shared, err
}
