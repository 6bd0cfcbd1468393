package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"snap"
)

// recordKey records that a key was created or revoked, by the caller or by the operator.
func (s *Store) recordKey(ctx context.Context, tx *sql.Tx, id int64, action snap.AuditAction) error {
	var org int64
	var expires time.Time
	d := snap.AuditDetail{Key: id}
	var scopes string
	err := tx.QueryRowContext(ctx, `
		SELECT k.org_id, k.kind, k.name, coalesce(u.email, ''), coalesce(u.id, 0), k.scopes, k.expires_at,
			k.token_issuer, k.token_subject, k.trust
		FROM api_keys k LEFT JOIN users u ON u.id = k.user_id WHERE k.id = $1`, id).
		Scan(&org, &d.Kind, &d.Name, &d.User, &d.Account, &scopes, toTime(&expires), &d.Issuer, &d.Subject, &d.Rule)
	if err != nil {
		return err
	}
	d.Scopes = splitWords[snap.Scope](scopes)
	if !expires.IsZero() {
		d.Expires = &expires
	}
	return s.record(ctx, tx, org, snap.OriginOf(ctx).Caller, snap.AuditEntry{Action: action, Detail: d})
}

// recordSession records that a session began or ended. The line names the session's own user as the
// actor, unless another caller in the organization ended the session. The user always counts as the
// one who began the session, even in a browser in which somebody else is still signed in.
func (s *Store) recordSession(ctx context.Context, tx *sql.Tx, id int64, action snap.AuditAction) error {
	actor := snap.Caller{User: &snap.User{}}
	var d snap.AuditDetail
	err := tx.QueryRowContext(ctx, `
		SELECT o.id, o.slug, u.id, u.email, n.kind, n.name
		FROM sessions n JOIN users u ON u.id = n.user_id JOIN orgs o ON o.id = u.org_id WHERE n.id = $1`, id).
		Scan(&actor.Org.ID, &actor.Org.Slug, &actor.User.ID, &actor.User.Email, &d.Kind, &d.Name)
	if err != nil {
		return err
	}
	org := actor.Org.ID
	d.User, d.Account = actor.User.Email, actor.User.ID
	var noticeTo int64
	if action == snap.AuditTokenReused {
		noticeTo = actor.User.ID
	}
	if by := snap.OriginOf(ctx).Caller; action != snap.AuditSessionStarted && by.Principal() != 0 && by.Org.ID == org {
		actor = by
	}
	return s.recordFor(ctx, tx, org, actor, snap.AuditEntry{Action: action, Detail: d}, noticeTo)
}

// userText returns a user's e-mail, role and groups, and whether they are disabled, as the JSON of
// an audit detail. It is empty when there is no such user.
func (s *Store) userText(ctx context.Context, tx *sql.Tx, where string, args ...any) (string, error) {
	d, _, err := s.userDetail(ctx, tx, where, args...)
	if err != nil {
		return "", noRowsAs(err, nil)
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// recordUser records a user's role and groups if they have changed. before is the result of
// userText before the change; if it is empty, recordUser always records them. Together with the
// lines about shares, these lines say who could see which snapshots at any time.
func (s *Store) recordUser(ctx context.Context, tx *sql.Tx, id int64, before string) error {
	d, org, err := s.userDetail(ctx, tx, `u.id = $1`, id)
	if err != nil {
		return err
	}
	text, err := json.Marshal(d)
	if err != nil || string(text) == before {
		return err
	}
	return s.record(ctx, tx, org, snap.OriginOf(ctx).Caller, snap.AuditEntry{Action: snap.AuditUserChanged, Detail: d})
}

func (s *Store) userDetail(ctx context.Context, tx *sql.Tx, where string, args ...any) (d snap.AuditDetail, org int64,
	err error) {
	err = tx.QueryRowContext(ctx,
		`SELECT u.id, u.org_id, u.email, u.role, u.disabled FROM users u WHERE `+where, args...).
		Scan(&d.Account, &org, &d.User, &d.Role, &d.Disabled)
	if err != nil {
		return d, 0, err
	}
	d.Groups, err = txCollect(ctx, tx, `
		SELECT g.group_id FROM membership m JOIN groups g ON g.id = m.audience`+subjectOf+` WHERE `+callersGroups+`
			ORDER BY g.group_id`, scanOne[string], d.Account)
	return d, org, err
}
