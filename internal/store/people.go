package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// Person is an account of an organization as its owners and admins see it.
type Person struct {
	snap.Member
	LastSeen  time.Time // the last use of any of their sessions and keys; zero if there was none
	Sessions  int       // that are live
	Keys      int       // that were not revoked and have not expired
	Snapshots int       // that they own
	Bytes     int64     // of these snapshots
}

// People returns the accounts of the caller's organization with their use of the service, by
// e-mail. Authorization is the caller's job (snap.Allowed).
func (s *Store) People(ctx context.Context, c snap.Caller) ([]Person, error) {
	members, err := s.Members(ctx, c)
	if err != nil {
		return nil, err
	}
	// With the plus, SQLite uses the index of coalesce(owner_id, 0).
	uses, err := collect(ctx, s, `
		SELECT u.id, (SELECT max(n.last_used_at) FROM sessions n WHERE n.user_id = u.id),
			(SELECT max(k.last_used_at) FROM api_keys k WHERE k.user_id = u.id),
			(SELECT count(*) FROM sessions WHERE user_id = u.id`+liveSession+`),
			(SELECT count(*) FROM api_keys k JOIN orgs o ON o.id = k.org_id WHERE k.user_id = u.id`+usableKey+`),
			(SELECT count(*) FROM snapshots p WHERE p.org_id = $1 AND coalesce(p.owner_id, 0) = +u.id),
			(SELECT CAST(coalesce(sum(p.size), 0) AS bigint) FROM snapshots p
				WHERE p.org_id = $1 AND coalesce(p.owner_id, 0) = +u.id)
		FROM users u WHERE u.org_id = $1`, scanUse, c.Org.ID, s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	byID := map[int64]Person{}
	for _, p := range uses {
		byID[p.ID] = p
	}
	all := make([]Person, 0, len(members))
	for _, m := range members {
		p := byID[m.ID]
		p.Member = m
		all = append(all, p)
	}
	return all, nil
}

func scanUse(rows *sql.Rows) (p Person, err error) {
	var session, key sql.NullInt64
	err = rows.Scan(&p.ID, &session, &key, &p.Sessions, &p.Keys, &p.Snapshots, &p.Bytes)
	if p.LastSeen = timeOf(session); timeOf(key).After(p.LastSeen) {
		p.LastSeen = timeOf(key)
	}
	return p, err
}

// SignOutUser immediately ends all sessions of a user of the caller's organization, and returns
// their number. Sign-ins and device logins that began before are refused. Keys keep working. It
// fails with not_found for users of other organizations. Authorization is the caller's job
// (snap.Allowed).
func (s *Store) SignOutUser(ctx context.Context, c snap.Caller, id int64) (ended int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `UPDATE users SET signed_out_at = $3 WHERE id = $1 AND org_id = $2`,
			id, c.Org.ID, s.now().UnixMilli())
		if err := requireChanged(res, err, errNoUser()); err != nil {
			return err
		}
		ended, err = s.endSessions(ctx, tx, `user_id = $2`, id)
		return err
	})
	return ended, err
}
