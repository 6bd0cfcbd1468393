package store

import (
	"context"
	"database/sql"
	"net/netip"
	"time"

	"snap"
)

// The caller is read for every request, so the queries in this file read as little as possible.
// Most requests do without the caller's groups: the listing and the check of a snapshot find them
// in the table membership.

// callerColumns are the columns of organizations o and users u that scanCaller reads. The columns
// of u may be null.
const callerColumns = `o.id, o.slug, o.name,
	u.id, u.email, u.name, u.role, u.groups_unknown, u.groups_why, u.groups_as_of`

// scanCaller reads a row of callerColumns. following holds pointers for the columns that follow
// them.
func scanCaller(row scanner, following ...any) (c snap.Caller, err error) {
	var id, unknown sql.NullInt64
	var email, name, role, why sql.NullString
	err = row.Scan(append([]any{&c.Org.ID, &c.Org.Slug, &c.Org.Name, &id, &email, &name, &role, &unknown, &why,
		toTime(&c.GroupsAsOf)}, following...)...)
	if err != nil {
		return snap.Caller{}, noRowsAs(err, snap.ErrUnauthenticated)
	}
	if id.Valid {
		c.User = &snap.User{ID: id.Int64, Email: email.String, Name: name.String}
		c.Role, c.GroupsUnknown, c.GroupsWhy = snap.Role(role.String), unknown.Int64 != 0, why.String
	}
	return c, nil
}

// CallerOfOrg returns a caller that acts as the organization and sees all of its snapshots, without
// a credential, even if the organization is closed. It is for the service's own work and for the
// operator. It fails with snap.ErrUnauthenticated when there is no such organization.
func (s *Store) CallerOfOrg(ctx context.Context, orgID int64) (snap.Caller, error) {
	c, err := scanCaller(s.row(ctx,
		`SELECT `+callerColumns+` FROM orgs o LEFT JOIN users u ON u.id = 0 WHERE o.id = $1`, orgID))
	c.Credential.Scopes = []snap.Scope{snap.ScopePrivate}
	return c, err
}

// CallerOfUser returns the caller that a user's credential acts as, with the current role and
// groups and without the credential. It fails with snap.ErrUnauthenticated if there is no such
// user, if the user is disabled, or if the user's organization is closed.
func (s *Store) CallerOfUser(ctx context.Context, userID int64) (snap.Caller, error) {
	c, err := s.CallerWithoutGroups(ctx, userID)
	if err != nil {
		return snap.Caller{}, err
	}
	c.Groups, err = s.GroupsOf(ctx, c)
	return c, err
}

// CallerWithoutGroups is like [Store.CallerOfUser] but does not read the groups, which most
// requests do not need. [Store.GroupsOf] returns them.
func (s *Store) CallerWithoutGroups(ctx context.Context, userID int64) (snap.Caller, error) {
	return scanCaller(s.row(ctx,
		`SELECT `+callerColumns+` FROM users u JOIN orgs o ON o.id = u.org_id
		WHERE u.id = $1 AND u.disabled = 0 AND o.closed = 0`, userID))
}

// KeyUse is the caller of a usable key, without groups, and the other facts that decide whether the
// key may be used now.
type KeyUse struct {
	snap.Caller
	Used      time.Time      // the last use that was recorded; zero if there is none
	Networks  []netip.Prefix // the key may be used from these only; empty means from anywhere
	Confirmed time.Time      // when the identity provider last confirmed the user; zero if never
}

// CallerOfKey returns the caller of the key whose secret has this SHA-256. It fails with
// snap.ErrUnauthenticated if there is no such key, if the key has expired or was revoked, or if its
// user is disabled or its organization closed. The code that calls CallerOfKey must check the
// network and the confirmation.
func (s *Store) CallerOfKey(ctx context.Context, hash []byte) (KeyUse, error) {
	return s.callerOfKey(ctx, `k.hash = $1`, hash)
}

// CallerOfKeyID is like [Store.CallerOfKey], for a key that was accepted earlier.
func (s *Store) CallerOfKeyID(ctx context.Context, id int64) (KeyUse, error) {
	return s.callerOfKey(ctx, `k.id = $1`, id)
}

func (s *Store) callerOfKey(ctx context.Context, condition string, arg any) (u KeyUse, err error) {
	var k snap.Credential
	var scopes, networks string
	u.Caller, err = scanCaller(s.row(ctx, `
		SELECT `+callerColumns+`, k.id, k.kind, k.name, k.scopes, k.last_used_at, k.networks, i.checked_at
		FROM api_keys k JOIN orgs o ON o.id = k.org_id LEFT JOIN users u ON u.id = k.user_id
			LEFT JOIN sign_ins i ON i.user_id = k.user_id
		WHERE `+condition+usableKey+` AND (k.user_id IS NULL OR u.disabled = 0) AND o.closed = 0`,
		arg, s.now().UnixMilli()), &k.ID, &k.Kind, &k.Name, &scopes, toTime(&u.Used), &networks, toTime(&u.Confirmed))
	if err != nil {
		return KeyUse{}, err
	}
	k.Scopes = splitWords[snap.Scope](scopes)
	u.Credential = k
	u.Networks, err = splitNetworks(networks)
	return u, err
}

// GroupsOf returns the groups of the caller, or none if the caller is an organization.
func (s *Store) GroupsOf(ctx context.Context, c snap.Caller) ([]snap.Group, error) {
	return collect(ctx, s, `
		SELECT g.id, g.group_id, g.name FROM membership m JOIN groups g ON g.id = m.audience`+subjectOf+`
		WHERE `+callersGroups+` ORDER BY m.audience`, scanGroup, c.Principal())
}

// earlier returns the earlier of two times. If b is zero, it means never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}
