package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"snap"
)

// The caller is read again at every request, so this page reads as little as it
// can: the listing and the check of a snapshot know a user's groups from table
// membership, and a caller does not include them.

// callerColumns are what scanCaller reads of organizations o and users u. There
// may be no user.
const callerColumns = `o.id, o.slug, o.name, u.id, u.email, u.name, u.role, u.groups_unknown, u.groups_why, u.groups_as_of`

// scanCaller reads a row of callerColumns and then what else there is.
func scanCaller(row scanner, also ...any) (c snap.Caller, err error) {
	var id, unknown, asOf sql.NullInt64
	var email, name, role, why sql.NullString
	err = row.Scan(append([]any{&c.Org.ID, &c.Org.Slug, &c.Org.Name, &id, &email, &name, &role, &unknown, &why, &asOf},
		also...)...)
	if errors.Is(err, sql.ErrNoRows) {
		err = snap.ErrUnauthenticated
	}
	if err != nil {
		return snap.Caller{}, err
	}
	if id.Valid {
		c.User = &snap.User{ID: id.Int64, Email: email.String, Name: name.String}
		c.Role, c.GroupsUnknown, c.GroupsWhy, c.GroupsAsOf = snap.Role(role.String), unknown.Int64 != 0, why.String,
			timeOf(asOf)
	}
	return c, nil
}

// CallerOfOrg returns the organization as a caller who sees everything of it,
// without a credential, whether the organization is closed or not: it is for
// what the service does by itself and for the operator. It fails with
// snap.ErrUnauthenticated when there is no such organization.
func (s *Store) CallerOfOrg(ctx context.Context, orgID int64) (snap.Caller, error) {
	c, err := scanCaller(s.row(ctx,
		`SELECT `+callerColumns+` FROM orgs o LEFT JOIN users u ON u.id = 0 WHERE o.id = $1`, orgID))
	c.Credential.Scopes = []snap.Scope{snap.ScopePrivate}
	return c, err
}

// CallerOfUser returns the caller that a user's credential acts as, without
// the credential: role and groups as of now. It fails with
// snap.ErrUnauthenticated when there is no such user, they are disabled or
// their organization is closed.
func (s *Store) CallerOfUser(ctx context.Context, userID int64) (snap.Caller, error) {
	c, err := s.CallerWithoutGroups(ctx, userID)
	if err != nil {
		return snap.Caller{}, err
	}
	c.Groups, err = s.GroupsOf(ctx, c)
	return c, err
}

// CallerWithoutGroups is [Store.CallerOfUser] for a request: who needs the
// groups asks [Store.GroupsOf].
func (s *Store) CallerWithoutGroups(ctx context.Context, userID int64) (snap.Caller, error) {
	return scanCaller(s.row(ctx,
		`SELECT `+callerColumns+` FROM users u JOIN orgs o ON o.id = u.org_id WHERE u.id = $1 AND u.disabled = 0 AND o.closed = 0`, userID))
}

// CallerOfKey returns the caller, without groups, for which the key whose
// secret has this SHA-256 acts, and when it was last used. It fails with
// snap.ErrUnauthenticated when there is no such key, it has expired or was
// revoked, its user is disabled or its organization closed.
func (s *Store) CallerOfKey(ctx context.Context, hash []byte) (c snap.Caller, used time.Time, err error) {
	return s.callerOfKey(ctx, `k.hash = $1`, hash)
}

// CallerOfKeyID is [Store.CallerOfKey] for a key that was accepted earlier.
func (s *Store) CallerOfKeyID(ctx context.Context, id int64) (snap.Caller, error) {
	c, _, err := s.callerOfKey(ctx, `k.id = $1`, id)
	return c, err
}

func (s *Store) callerOfKey(ctx context.Context, which string, arg any) (c snap.Caller, used time.Time, err error) {
	var k snap.Credential
	var scopes string
	var usedAt, expires sql.NullInt64
	c, err = scanCaller(s.row(ctx, `
		SELECT `+callerColumns+`, k.id, k.kind, k.name, k.scopes, k.last_used_at, k.expires_at
		FROM api_keys k JOIN orgs o ON o.id = k.org_id LEFT JOIN users u ON u.id = k.user_id
		WHERE `+which+usableKey+` AND (k.user_id IS NULL OR u.disabled = 0) AND o.closed = 0`, arg, s.now().UnixMilli()),
		&k.ID, &k.Kind, &k.Name, &scopes, &usedAt, &expires)
	if err != nil {
		return snap.Caller{}, time.Time{}, err
	}
	k.Scopes = splitScopes(scopes)
	k.Until = earliest(timeOf(usedAt).Add(touchEvery), timeOf(expires))
	c.Credential = k
	return c, timeOf(usedAt), nil
}

// GroupsOf returns the groups in which the caller is; of an organization, none.
func (s *Store) GroupsOf(ctx context.Context, c snap.Caller) ([]snap.Group, error) {
	return collect(ctx, s, `
		SELECT g.id, g.group_id, g.name FROM membership m JOIN groups g ON g.id = m.audience`+subjectOf+`
		WHERE `+callersGroups+` ORDER BY m.audience`, scanGroup, c.Principal())
}

// earliest returns the earlier of two times, of which the second may be zero:
// never.
func earliest(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}
