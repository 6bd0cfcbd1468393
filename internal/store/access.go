package store

import (
	"context"
	"database/sql"
	"slices"

	"snap"
)

// Access returns every live grant on a snapshot, with its audience, its end and its number of users
// (SPEC 5.3). people counts the users of the snapshot's organization who can see it. Authorization
// is the caller's job (snap.ActExplain). Only admins learn who the recipients are; other callers
// learn only that there are some. Recipients are not counted, because the size of their
// organization is not disclosed.
func (s *Store) Access(ctx context.Context, c snap.Caller, sn snap.Snapshot) (ways []snap.Access, people int,
	err error) {
	all, err := s.grantsOn(ctx, c, sn)
	if err != nil {
		return nil, 0, err
	}
	outside := false
	for _, a := range all {
		switch {
		case !a.Live(s.now()):
		case a.Audience.Kind() != snap.KindRecipients || c.IsAdmin():
			ways = append(ways, a)
		case !outside: // reveals that there are recipients, but not who
			outside = true
			ways = append(ways, snap.Access{Grant: snap.Grant{Audience: snap.AudienceOf(snap.KindRecipients, 0)}})
		}
	}
	err = s.row(ctx, countViewers, sn.Key, s.now().UnixMilli(), sn.Org.ID).Scan(&people)
	return ways, people, err
}

// KeysThatSee returns the organization-level keys of the snapshot's organization that can list and
// pull the snapshot now. If the snapshot is shared org-wide or an organization-level key pushed it,
// these are all keys that can pull. Otherwise they are the ones that also have the scope private.
func (s *Store) KeysThatSee(ctx context.Context, sn snap.Snapshot) ([]Key, error) {
	keys, err := s.keys(ctx,
		`WHERE k.org_id = $1 AND k.user_id IS NULL`+usableKey+` ORDER BY k.name, k.id`, sn.Org.ID, s.now().UnixMilli())
	if err != nil {
		return nil, err
	}
	grants, err := collect(ctx, s, `SELECT audience, expires_at FROM grants WHERE snapshot = $1`,
		func(rows *sql.Rows) (g snap.Grant, err error) {
			err = rows.Scan(&g.Audience, toTime(&g.Until))
			return g, err
		}, sn.Key)
	return slices.DeleteFunc(keys, func(k Key) bool {
		c := snap.Caller{Org: sn.Org, Credential: snap.Credential{Kind: k.Kind, Scopes: k.Scopes}}
		return !snap.Visible(c, grants, s.now()) || snap.Allowed(c, snap.ActPull, sn) != nil
	}), err
}

// countViewers counts the users of the organization $3 who can see the snapshot $1.
const countViewers = `
	SELECT count(DISTINCT m.principal) FROM grants g JOIN membership m ON m.audience = g.audience
	JOIN users u ON u.id = m.principal AND u.disabled = 0
	WHERE g.snapshot = $1 AND ` + liveGrant + ` AND u.org_id = $3`

// grantsOn returns all grants on a snapshot, including expired ones, sorted by kind and name. It
// returns none if the caller cannot see the snapshot.
func (s *Store) grantsOn(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.Access, error) {
	return collect(ctx, s, `
		SELECT r.audience, r.expires_at, r.created_at, coalesce(b.email, ''),
			coalesce(w.id, 0), coalesce(w.email, ''), coalesce(w.name, ''),
			coalesce(n.id, 0), coalesce(n.group_id, ''), coalesce(n.name, ''),
			coalesce(o.id, 0), coalesce(o.slug, ''), coalesce(o.name, ''),
			(SELECT count(*) FROM membership m JOIN users u ON u.id = m.principal AND u.disabled = 0
				WHERE m.audience = r.audience AND r.audience`+isNotRecipients+`)
		FROM snapshots s JOIN grants r ON r.snapshot = s.key
		LEFT JOIN users b ON b.id = r.created_by
		LEFT JOIN users w ON r.audience`+isUser+` AND w.id = r.audience`+subjectOf+`
		LEFT JOIN groups n ON r.audience`+isGroup+` AND n.id = r.audience`+subjectOf+`
		LEFT JOIN orgs o ON o.id = CASE WHEN r.audience`+isUserOrGroup+` THEN s.org_id ELSE r.audience`+subjectOf+` END
		WHERE s.key = $3 AND `+visible+` ORDER BY r.audience`+kindOf+`, o.slug, n.name, r.audience`,
		scanAccess, c.Principal(), s.now().UnixMilli(), sn.Key)
}

func scanAccess(rows *sql.Rows) (a snap.Access, err error) {
	var owner snap.User
	var group snap.Group
	err = rows.Scan(&a.Audience, toTime(&a.Until), toTime(&a.Since), &a.By, &owner.ID, &owner.Email, &owner.Name,
		&group.ID, &group.GroupID, &group.Name, &a.Org.ID, &a.Org.Slug, &a.Org.Name, &a.People)
	switch a.Audience.Kind() {
	case snap.KindUser:
		a.Owner, a.By = &owner, ""
	case snap.KindAdmins, snap.KindKeys:
		a.By = ""
	case snap.KindGroup:
		a.Group = &group
	}
	return a, err
}

// Ways returns the grants through which the caller sees a snapshot, sorted by kind and name.
func (s *Store) Ways(ctx context.Context, c snap.Caller, sn snap.Snapshot) ([]snap.Access, error) {
	groups, err := s.GroupsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	c.Groups = groups
	grants, err := s.grantsOn(ctx, c, sn)
	return snap.Judge(c, false, grants, s.now()).Ways, err
}

// Judge explains why a user of the caller's organization can or cannot see a snapshot, by the same
// rule that decides the user's own requests. It fails with code not_found when the organization has
// no user with this e-mail.
func (s *Store) Judge(ctx context.Context, c snap.Caller, sn snap.Snapshot, email string) (snap.Member, snap.Verdict,
	error) {
	m, err := s.UserByEmail(ctx, c.Org.ID, email)
	if err != nil {
		return m, snap.Verdict{}, err
	}
	grants, err := s.grantsOn(ctx, c, sn)
	if err != nil {
		return m, snap.Verdict{}, err
	}
	user := snap.Caller{Org: c.Org, User: &m.User, Role: m.Role, Groups: m.Groups, GroupsUnknown: m.GroupsUnknown}
	return m, snap.Judge(user, m.Disabled, grants, s.now()), nil
}

// Newcomers returns the users of the caller's organization who cannot see the snapshot now but
// could see it after a share with the group groupID or, if groupID is empty, after an org-wide
// share. It returns at most limit of them, sorted by e-mail, and their total number. Newcomers
// fails with code group_not_found if there is no such group.
func (s *Store) Newcomers(ctx context.Context, c snap.Caller, sn snap.Snapshot, groupID string,
	limit int) (users []snap.User, count int, err error) {
	audience := snap.AudienceOf(snap.KindMembers, c.Org.ID)
	if groupID != "" {
		var group int64
		err := s.row(ctx, `SELECT id FROM groups WHERE org_id = $1 AND group_id = $2`, c.Org.ID, groupID).Scan(&group)
		if err != nil {
			return nil, 0, noRowsAs(err, errNoGroup(groupID))
		}
		audience = snap.AudienceOf(snap.KindGroup, group)
	}
	const newcomers = ` FROM membership a JOIN users u ON u.id = a.principal AND u.disabled = 0
		WHERE a.audience = $1 AND NOT EXISTS (
			SELECT 1 FROM membership m JOIN grants g ON g.audience = m.audience AND g.snapshot = $3
			WHERE m.principal = u.id AND ` + liveGrant + `)`
	args := []any{int64(audience), s.now().UnixMilli(), sn.Key}
	if err := s.row(ctx, `SELECT count(*)`+newcomers, args...).Scan(&count); err != nil {
		return nil, 0, err
	}
	users, err = collect(ctx, s, `SELECT u.id, u.email, u.name`+newcomers+` ORDER BY u.email_folded, u.id LIMIT $4`,
		func(rows *sql.Rows) (u snap.User, err error) {
			err = rows.Scan(&u.ID, &u.Email, &u.Name)
			return u, err
		}, append(args, limit)...)
	return users, count, err
}
