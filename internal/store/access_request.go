package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"snap"
)

// A person who was sent a link can ask for access to a snapshot without learning whether the
// snapshot exists. So a request stores only the ID that was typed. Every request costs the same and
// counts against the same limit, even if no such snapshot exists. Refusals are not disclosed: to
// the person who asked, a refused request looks like one that nobody answered. Background work
// finds the snapshots and records the requests for them.

// Limits of requests for access.
const (
	MaxAccessRequests = 20                  // open or refused requests of one person
	AccessRequestLife = 14 * 24 * time.Hour // after that, a request lapses
)

// AccessRequest is a person's request for access to a snapshot. Snapshot, Person, Org and Groups
// are set only for callers who may answer the request.
type AccessRequest struct {
	ID         int64
	SnapshotID string
	Reason     string
	Created    time.Time
	Snapshot   snap.Snapshot
	Person     snap.User
	Org        snap.OrgRef
	Groups     []snap.Group // for a person of the snapshot's own organization
}

// RequestAccess stores a request of the caller. Repeating an open or refused request changes
// nothing. RequestAccess fails with code rate_limited if the caller already has [MaxAccessRequests]
// open or refused requests for other snapshots.
func (s *Store) RequestAccess(ctx context.Context, c snap.Caller, snapshotID, reason string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.lockUser(ctx, tx, c.User.ID); err != nil {
			return err
		}
		now := s.now()
		var others int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM access_requests
			WHERE user_id = $1 AND snapshot_id <> $2 AND state IN ('open', 'refused') AND created_at > $3`,
			c.User.ID, snapshotID, now.Add(-AccessRequestLife).UnixMilli()).Scan(&others); err != nil {
			return err
		}
		if others >= MaxAccessRequests {
			return &snap.Error{Code: snap.CodeRateLimited, RetryAfter: time.Hour,
				Detail: fmt.Sprintf("you have %d open requests for access; more are not allowed", others),
				Hint:   "withdraw one that you no longer need, or wait until one expires"}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO access_requests(user_id, snapshot_id, reason, created_at, state)
			VALUES($1, $2, $3, $4, 'open')
			ON CONFLICT(user_id, snapshot_id) DO UPDATE SET
				state = CASE WHEN access_requests.created_at > $5 AND access_requests.state IN ('refused', 'closed')
					THEN 'refused' ELSE 'open' END,
				told = CASE WHEN access_requests.created_at <= $5 OR access_requests.state = 'answered' THEN 0
					ELSE access_requests.told END,
				reason = CASE WHEN `+requestEnded+` THEN excluded.reason ELSE access_requests.reason END,
				created_at = CASE WHEN `+requestEnded+` THEN excluded.created_at ELSE access_requests.created_at END`,
			c.User.ID, snapshotID, reason, now.UnixMilli(), now.Add(-AccessRequestLife).UnixMilli())
		return err
	})
}

// requestEnded is true for a request that ended, so that a new one replaces it. Requests that were
// made at or before $5 have lapsed.
const requestEnded = `(access_requests.created_at <= $5
	OR access_requests.state IN ('answered', 'withdrawn', 'closed'))`

// lockUser makes other transactions that lock the same user wait until this one ends.
func (s *Store) lockUser(ctx context.Context, tx *sql.Tx, id int64) error {
	return tx.QueryRowContext(ctx, `SELECT id FROM users WHERE id = $1`+s.rowLock(`FOR UPDATE`), id).Scan(&id)
}

// OwnAccessRequests returns the caller's requests, the newest first, except those that lapsed, that
// the caller withdrew or that a share answered.
func (s *Store) OwnAccessRequests(ctx context.Context, c snap.Caller) ([]AccessRequest, error) {
	return collect(ctx, s, `SELECT id, snapshot_id, reason, created_at FROM access_requests
		WHERE user_id = $1 AND state IN ('open', 'refused') AND created_at > $2 ORDER BY created_at DESC, id DESC`,
		func(rows *sql.Rows) (r AccessRequest, err error) {
			err = rows.Scan(&r.ID, &r.SnapshotID, &r.Reason, toTime(&r.Created))
			return r, err
		}, userID(c).Int64, s.now().Add(-AccessRequestLife).UnixMilli())
}

// WithdrawAccessRequest withdraws one of the caller's open or refused requests. It fails with code
// not_found if there is no such request. A refused request becomes closed, so that a new request
// for the same snapshot is refused too: the caller does not know about the refusal.
func (s *Store) WithdrawAccessRequest(ctx context.Context, c snap.Caller, id int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `UPDATE access_requests
			SET state = CASE WHEN state = 'refused' THEN 'closed' ELSE 'withdrawn' END
			WHERE id = $1 AND user_id = $2 AND state IN ('open', 'refused')`, id, userID(c).Int64)
		return requireChanged(res, err, errNoRequest())
	})
}

func errNoRequest() error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "there is no such open request for access",
		Hint: "list the requests to see which are open"}
}

// answerable selects open requests r of people u for snapshots s that the caller manages. Its
// parameters are $1 the caller's organization, $2 whether they are an admin, $3 their ID, $4 the
// time after which a request must have been made, and $5 now. A request is left out if its user can
// already see the snapshot, because a share has fulfilled it.
const answerable = ` FROM access_requests r JOIN snapshots s ON s.id = r.snapshot_id
	JOIN users u ON u.id = r.user_id AND u.disabled = 0 JOIN orgs o ON o.id = u.org_id AND o.closed = 0
	WHERE s.org_id = $1 AND ($2 <> 0 OR s.owner_id = $3) AND r.state = 'open' AND r.created_at > $4
	AND NOT ` + seenByPerson

// seenByPerson is snap.Visible for the person r.user_id and snapshot s, at the time $5.
const seenByPerson = `EXISTS (SELECT 1 FROM grants g JOIN membership m ON m.audience = g.audience
	WHERE g.snapshot = s.key AND (g.expires_at IS NULL OR g.expires_at > $5) AND m.principal = r.user_id)`

// AccessRequests returns the open requests that the caller may answer, the oldest first, at most
// 200.
func (s *Store) AccessRequests(ctx context.Context, c snap.Caller) ([]AccessRequest, error) {
	now := s.now()
	all, err := collect(ctx, s, `SELECT r.id, r.snapshot_id, r.reason, r.created_at, s.key, s.target, s.name, s.type,
			coalesce(s.owner_id, 0), u.id, u.email, u.name, o.id, o.slug, o.name`+answerable+`
		ORDER BY r.created_at, r.id LIMIT 200`,
		func(rows *sql.Rows) (r AccessRequest, err error) {
			var owner int64
			sn := &r.Snapshot
			err = rows.Scan(&r.ID, &r.SnapshotID, &r.Reason, toTime(&r.Created), &sn.Key, &sn.Target, &sn.Name,
				&sn.Type, &owner, &r.Person.ID, &r.Person.Email, &r.Person.Name, &r.Org.ID, &r.Org.Slug, &r.Org.Name)
			sn.ID, sn.Org = r.SnapshotID, c.Org
			if owner != 0 {
				sn.Owner = &snap.User{ID: owner}
			}
			return r, err
		}, c.Org.ID, flag(c.IsAdmin()), userID(c).Int64, now.Add(-AccessRequestLife).UnixMilli(), now.UnixMilli())
	if err != nil {
		return nil, err
	}
	mine := all[:0]
	for _, r := range all {
		if snap.Allowed(c, snap.ActShare, r.Snapshot) != nil {
			continue
		}
		if r.Org.ID == c.Org.ID {
			if r.Groups, err = s.GroupsOf(ctx, snap.Caller{Org: r.Org, User: &r.Person}); err != nil {
				return nil, err
			}
		}
		mine = append(mine, r)
	}
	return mine, nil
}

// RefuseAccess refuses a request that the caller may answer. It fails with code not_found if there
// is no such request, and also if the caller is not allowed to answer it.
func (s *Store) RefuseAccess(ctx context.Context, c snap.Caller, id int64) error {
	now := s.now()
	return s.tx(ctx, func(tx *sql.Tx) error {
		var sn snap.Snapshot
		var owner int64
		var email string
		err := tx.QueryRowContext(ctx, `SELECT s.key, s.id, s.target, s.name, coalesce(s.owner_id, 0), u.email
			`+answerable+` AND r.id = $6`, c.Org.ID, flag(c.IsAdmin()), userID(c).Int64,
			now.Add(-AccessRequestLife).UnixMilli(), now.UnixMilli(), id).
			Scan(&sn.Key, &sn.ID, &sn.Target, &sn.Name, &owner, &email)
		if err != nil {
			return noRowsAs(err, errNoRequest())
		}
		sn.Org, sn.Owner = c.Org, &snap.User{ID: owner}
		if snap.Allowed(c, snap.ActShare, sn) != nil {
			return errNoRequest()
		}
		if _, err := tx.ExecContext(ctx, `UPDATE access_requests SET state = 'refused' WHERE id = $1`, id); err != nil {
			return err
		}
		return s.recordOn(ctx, tx, c, sn, snap.AuditAccessRefused, snap.AuditDetail{Name: sn.Name, User: email})
	})
}

// ReportRequests records the requests that were made since its last run, in the log of the
// snapshot's organization and as a notice to the snapshot's owner, and returns how many it
// recorded. Several replicas may run it at the same time.
func (s *Store) ReportRequests(ctx context.Context) (reported int, err error) {
	// If the person can see the snapshot, a share has answered the request. The request must not be
	// listed again when that share ends.
	if err := s.exec(ctx, `UPDATE access_requests SET state = 'answered' WHERE state = 'open' AND id IN (
		SELECT r.id FROM access_requests r JOIN snapshots s ON s.id = r.snapshot_id
		JOIN membership m ON m.principal = r.user_id JOIN grants g ON g.snapshot = s.key AND g.audience = m.audience
		WHERE r.state = 'open' AND (g.expires_at IS NULL OR g.expires_at > $1))`, s.now().UnixMilli()); err != nil {
		return 0, err
	}
	for {
		ids, err := collect(ctx, s, `SELECT id FROM access_requests WHERE told = 0 AND state = 'open'
			ORDER BY id LIMIT 100`, scanOne[int64])
		if err != nil || len(ids) == 0 {
			return reported, err
		}
		n, err := recordEach(ctx, ids, s.reportRequest)
		reported += n
		if err != nil {
			return reported, err
		}
	}
}

func (s *Store) reportRequest(ctx context.Context, id int64) (recorded bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		first, err := changed(tx.ExecContext(ctx, `UPDATE access_requests SET told = 1
			WHERE id = $1 AND told = 0 AND state = 'open'`, id))
		if err != nil || !first {
			return err // another replica was first
		}
		var by snap.Caller
		var e snap.AuditEntry
		var org, owner int64
		user := &snap.User{}
		err = tx.QueryRowContext(ctx, `SELECT s.org_id, s.id, s.target, s.name, coalesce(s.owner_id, 0),
				u.id, u.email, o.slug FROM access_requests r JOIN snapshots s ON s.id = r.snapshot_id
			JOIN users u ON u.id = r.user_id AND u.disabled = 0 JOIN orgs o ON o.id = u.org_id
			WHERE r.id = $1 AND r.state = 'open'`, id).
			Scan(&org, &e.Snapshot, &e.Detail.Target, &e.Detail.Name, &owner, &user.ID, &user.Email, &by.Org.Slug)
		if err != nil {
			return noRowsAs(err, nil) // there is no such snapshot
		}
		by.User, recorded = user, true
		e.Action = snap.AuditAccessRequested
		return s.recordFor(ctx, tx, org, by, e, owner)
	})
	return recorded, err
}
