package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"snap"
)

// SignIn is an identity provider's report about a user at a sign-in.
type SignIn struct {
	OrgID                        int64
	Issuer, Subject, Email, Name string
	// ExternalID is the person's external ID in SCIM. If it is empty, the user keeps the one
	// from the last sign-in that had one, or else the subject.
	ExternalID string
	Verified   bool // the provider has verified Email
	Role       snap.Role
	// RoleUnknown marks Role as the least role the user can have. The last known role applies, if
	// there is one.
	RoleUnknown   bool
	Groups        []snap.Group // GroupID and Name
	GroupsUnknown bool         // there was no usable groups claim; group shares then give no access
	GroupsWhy     string       // why they are unknown and what to do, for the user
	// RoleOf returns the role of this person with other groups. Nil means that no group gives a
	// role.
	RoleOf func([]snap.Group) snap.Role
	// AsOf is when the provider issued the claims, by its clock. The zero time means now.
	AsOf time.Time
	// Late means that the claims may be older than the stored ones. ApplySignIn then ignores them
	// unless they are newer.
	Late bool
}

// ApplySignIn creates or updates the account of (organization, issuer, subject) and replaces its
// role, groups and memberships in one transaction. Once ApplySignIn returns, every replica uses the
// new values (SPEC 5.3 rule 4). Late claims that are not newer than the stored ones change nothing.
func (s *Store) ApplySignIn(ctx context.Context, in SignIn) (userID int64, err error) {
	if !in.Role.Valid() {
		return 0, fmt.Errorf("sign-in with the unknown role %q", in.Role)
	}
	if in.GroupsUnknown {
		in.Groups = nil
	} else {
		in.GroupsWhy = ""
	}
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		if err := s.waitForReports(ctx, tx, in.OrgID); err != nil {
			return err
		}
		var ignore bool
		if userID, ignore, err = s.ignoresLate(ctx, tx, in); ignore || err != nil {
			return err
		}
		before, err := s.userText(ctx, tx,
			`u.org_id = $1 AND u.issuer = $2 AND u.subject = $3`, in.OrgID, in.Issuer, in.Subject)
		if err != nil {
			return err
		}
		in := in // each attempt of the transaction reads the last known role
		if err := s.useReports(ctx, tx, &in); err != nil {
			return err
		}
		if err := setLastKnownRole(ctx, tx, &in); err != nil {
			return err
		}
		if userID, err = s.applyUser(ctx, tx, in); err != nil {
			return err
		}
		groups, err := s.applyGroups(ctx, tx, in)
		if err != nil {
			return err
		}
		err = s.setMembership(ctx, tx, snap.Caller{
			Org: snap.OrgRef{ID: in.OrgID}, User: &snap.User{ID: userID}, Role: in.Role,
			Groups: groups, GroupsUnknown: in.GroupsUnknown,
		})
		if err != nil {
			return err
		}
		return s.recordUser(ctx, tx, userID, before)
	})
	return userID, err
}

// ignoresLate reports whether a late sign-in must change nothing, because its claims are not newer
// than the stored ones. It also returns the user's ID. On PostgreSQL it locks the user's row, so
// that of two concurrent sign-ins the newer one counts.
func (s *Store) ignoresLate(ctx context.Context, tx *sql.Tx, in SignIn) (userID int64, ignore bool, err error) {
	if !in.Late {
		return 0, false, nil
	}
	var known int64
	err = tx.QueryRowContext(ctx, `SELECT id, claims_at FROM users
		WHERE org_id = $1 AND issuer = $2 AND subject = $3`+s.rowLock(`FOR UPDATE`), in.OrgID, in.Issuer, in.Subject).
		Scan(&userID, &known)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return userID, in.AsOf.UnixMilli() <= known, err
}

// setLastKnownRole sets the user's last known role in a sign-in that could not determine the role,
// and mentions the role in GroupsWhy.
func setLastKnownRole(ctx context.Context, tx *sql.Tx, in *SignIn) error {
	if !in.RoleUnknown {
		return nil
	}
	err := tx.QueryRowContext(ctx,
		`SELECT role FROM users WHERE org_id = $1 AND issuer = $2 AND subject = $3`,
		in.OrgID, in.Issuer, in.Subject).Scan(&in.Role)
	if err := noRowsAs(err, nil); err != nil {
		return err
	}
	in.GroupsWhy += "; until then your role stays " + string(in.Role)
	return nil
}

// claimsAt returns an SQL assignment. It records that a user's role and groups are from the time in
// a parameter, unless newer ones are stored.
func claimsAt(param string) string {
	return "claims_at = CASE WHEN claims_at < " + param + " THEN " + param + " ELSE claims_at END"
}

// applyUser writes the account. On PostgreSQL it also locks the row, so that concurrent sign-ins of
// one user run one after the other.
func (s *Store) applyUser(ctx context.Context, tx *sql.Tx, in SignIn) (id int64, err error) {
	now := s.now().UnixMilli()
	asOf := now
	if !in.AsOf.IsZero() {
		asOf = in.AsOf.UnixMilli()
	}
	err = tx.QueryRowContext(ctx, `
		UPDATE users SET email = $4, email_folded = $5, name = $6, role = $7, groups_unknown = $8,
			groups_why = $9, groups_as_of = $10, external_id = $11, email_verified = $12, `+claimsAt("$13")+`
		WHERE org_id = $1 AND issuer = $2 AND subject = $3 RETURNING id`,
		in.OrgID, in.Issuer, in.Subject, in.Email, snap.FoldCase(in.Email), in.Name, string(in.Role),
		flag(in.GroupsUnknown), in.GroupsWhy, now, in.ExternalID, flag(in.Verified), asOf).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if id, err = newPrincipal(ctx, tx, "user"); err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO users(id, org_id, issuer, subject, email, email_folded, name, role, groups_unknown, groups_why,
			groups_as_of, created_at, external_id, email_verified, claims_at)
		VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14)`,
		id, in.OrgID, in.Issuer, in.Subject, in.Email, snap.FoldCase(in.Email), in.Name, string(in.Role),
		flag(in.GroupsUnknown), in.GroupsWhy, now, in.ExternalID, flag(in.Verified), asOf)
	return id, err
}

// applyGroups creates new groups, renames those whose name changed, and returns all groups with
// their identifiers. It handles them in a fixed order, so that two sign-ins with the same new
// groups cannot deadlock.
func (s *Store) applyGroups(ctx context.Context, tx *sql.Tx, in SignIn) ([]snap.Group, error) {
	groups := slices.Clone(in.Groups)
	slices.SortFunc(groups, func(a, b snap.Group) int { return cmp.Compare(a.GroupID, b.GroupID) })
	groups = slices.CompactFunc(groups, func(a, b snap.Group) bool { return a.GroupID == b.GroupID })
	known, err := s.knownGroups(ctx, tx, in.OrgID, groups)
	if err != nil {
		return nil, err
	}
	for i, g := range groups {
		if g.Name == "" {
			g.Name = g.GroupID
		}
		old, ok := known[g.GroupID]
		switch {
		case !ok:
			g.ID, err = newGroup(ctx, tx, in.OrgID, g)
		case old.Name != g.Name:
			g.ID = old.ID
			_, err = tx.ExecContext(ctx, `UPDATE groups SET name = $2 WHERE id = $1`, g.ID, g.Name)
		default:
			g.ID = old.ID
		}
		if err != nil {
			return nil, err
		}
		groups[i] = g
	}
	return groups, nil
}

func (s *Store) knownGroups(ctx context.Context, tx *sql.Tx, orgID int64, groups []snap.Group) (map[string]snap.Group,
	error) {
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.GroupID
	}
	found, err := txCollect(ctx, tx, `SELECT id, group_id, name FROM groups
		WHERE org_id = $1 AND group_id IN (SELECT value FROM `+s.eachText("$2")+`)`, scanGroup, orgID, jsonArray(ids))
	known := make(map[string]snap.Group, len(found))
	for _, g := range found {
		known[g.GroupID] = g
	}
	return known, err
}

func newGroup(ctx context.Context, tx *sql.Tx, orgID int64, g snap.Group) (int64, error) {
	id, err := newPrincipal(ctx, tx, "group")
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO groups(id, org_id, group_id, name) VALUES($1, $2, $3, $4)`, id, orgID, g.GroupID, g.Name)
	return id, err
}

// setMembership makes c's rows of the table membership equal to c.Audiences(). It changes only the
// rows that differ.
func (s *Store) setMembership(ctx context.Context, tx *sql.Tx, c snap.Caller) error {
	have, err := txCollect(ctx, tx, `SELECT audience FROM membership WHERE principal = $1`, scanOne[snap.Audience],
		c.Principal())
	if err != nil {
		return err
	}
	want := c.Audiences()
	if gone := difference(have, want); len(gone) > 0 {
		_, err = tx.ExecContext(ctx,
			`DELETE FROM membership WHERE principal = $1 AND audience IN (SELECT v FROM `+s.each("$2")+` AS e)`,
			c.Principal(), jsonArray(gone))
		if err != nil {
			return err
		}
	}
	if added := difference(want, have); len(added) > 0 {
		_, err = tx.ExecContext(ctx, `INSERT INTO membership(principal, kind, audience) SELECT $1, v`+kindOf+`, v
			FROM `+s.each("$2")+` AS e`, c.Principal(), jsonArray(added))
	}
	return err
}

// difference returns the elements of all that are not in others, in order, each once.
func difference(all, others []snap.Audience) (rest []snap.Audience) {
	skip := make(map[snap.Audience]bool, len(others))
	for _, a := range others {
		skip[a] = true
	}
	for _, a := range all {
		if !skip[a] {
			skip[a] = true
			rest = append(rest, a)
		}
	}
	return rest
}

// SetRole changes a user's role until a sign-in, a check with the identity provider or a SCIM
// report sets it again. It takes effect at the next request, on every replica. The audit log gets
// no line if the user already has the role.
func (s *Store) SetRole(ctx context.Context, userID int64, r snap.Role) error {
	if !r.Valid() {
		return snap.Invalid(fmt.Sprintf("%q is not a role", r), "use owner, admin, member or viewer")
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		c := snap.Caller{User: &snap.User{ID: userID}, Role: r}
		before, err := s.userText(ctx, tx, `u.id = $1`+s.rowLock(`FOR UPDATE`), userID)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx,
			`UPDATE users SET role = $2, `+claimsAt("$3")+` WHERE id = $1 RETURNING org_id, groups_unknown`,
			userID, string(r), s.now().UnixMilli()).Scan(&c.Org.ID, &c.GroupsUnknown)
		if err != nil {
			return noRowsAs(err, errNoUser())
		}
		c.Groups, err = txCollect(ctx, tx, `SELECT audience`+subjectOf+`, '', '' FROM membership WHERE principal = $1
			AND `+isGroupMembership, scanGroup, userID)
		if err != nil {
			return err
		}
		if err := s.setMembership(ctx, tx, c); err != nil {
			return err
		}
		return s.recordUser(ctx, tx, userID, before)
	})
}

// SetDisabled disables or enables a user. The credentials of a disabled user are refused from the
// next request on. If the user is already in that state, nothing changes and the audit log gets no
// line.
func (s *Store) SetDisabled(ctx context.Context, userID int64, disabled bool) error {
	return s.setDisabled(ctx, userID, disabled, false)
}

// SetListed enables a user whom the configuration lists again, and disables one whom it no longer
// lists. It enables only users who were disabled because they were not listed. For every other
// listed user, it returns false and changes nothing.
func (s *Store) SetListed(ctx context.Context, userID int64, listed bool) (changed bool, err error) {
	if listed {
		err := s.read.QueryRowContext(ctx, `SELECT unlisted = 1 FROM users WHERE id = $1`, userID).Scan(&changed)
		if err != nil || !changed {
			return false, err
		}
	}
	return true, s.setDisabled(ctx, userID, !listed, !listed)
}

func (s *Store) setDisabled(ctx context.Context, userID int64, disabled, unlisted bool) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		var done bool
		err := tx.QueryRowContext(ctx, `SELECT disabled = $2 AND unlisted = $3 AND away = 0 FROM users
			WHERE id = $1`+s.rowLock(`FOR UPDATE`), userID, flag(disabled), flag(unlisted)).Scan(&done)
		if err != nil || done {
			return noRowsAs(err, errNoUser())
		}
		if _, err := tx.ExecContext(ctx, `UPDATE users SET disabled = $2, unlisted = $3, away = 0,
			signed_out_at = CASE WHEN CAST($3 AS bigint) = 1 THEN $4 ELSE signed_out_at END WHERE id = $1`,
			userID, flag(disabled), flag(unlisted), s.now().UnixMilli()); err != nil {
			return err
		}
		return s.recordUser(ctx, tx, userID, "")
	})
}

func errNoUser() error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: "the organization has no such user",
		Hint: "users appear at their first sign-in"}
}

// UserByEmail returns a user of an organization by their e-mail, ignoring case. If several accounts
// have the e-mail, it returns the one whose groups are the most recent. It fails with code
// not_found if there is none.
func (s *Store) UserByEmail(ctx context.Context, orgID int64, email string) (snap.Member, error) {
	found, err := s.UsersByEmail(ctx, orgID, email)
	if err != nil {
		return snap.Member{}, err
	}
	return slices.MaxFunc(found, func(a, b snap.Member) int { return a.GroupsAsOf.Compare(b.GroupsAsOf) }), nil
}

// UsersByEmail returns all accounts of an organization with an e-mail, ignoring case. A person has
// several after the organization's identity provider changed. It fails with code not_found if there
// is none.
func (s *Store) UsersByEmail(ctx context.Context, orgID int64, email string) ([]snap.Member, error) {
	found, err := s.members(ctx, `WHERE u.org_id = $1 AND u.email_folded = $2`, orgID, snap.FoldCase(email))
	if err == nil && len(found) == 0 {
		err = errNoUser()
	}
	return found, err
}

// Members returns the users of the caller's organization, sorted by e-mail.
func (s *Store) Members(ctx context.Context, c snap.Caller) ([]snap.Member, error) {
	return s.members(ctx, `WHERE u.org_id = $1`, c.Org.ID)
}

// members reads users with their groups, sorted by e-mail. The query returns one row for each group
// of a user, or one row for a user without groups.
func (s *Store) members(ctx context.Context, condition string, args ...any) (all []snap.Member, err error) {
	rows, err := s.rows(ctx, `
		SELECT u.id, u.email, u.name, u.role, u.disabled, u.groups_unknown, u.groups_as_of,
			coalesce(g.id, 0), coalesce(g.group_id, ''), coalesce(g.name, '')
		FROM users u LEFT JOIN membership m ON m.principal = u.id AND m.`+isGroupMembership+`
		LEFT JOIN groups g ON g.id = m.audience`+subjectOf+` `+condition+`
			ORDER BY u.email_folded, u.id, g.name, g.id`, args...)
	if err != nil {
		return nil, err
	}
	_, err = drain(rows, func(rows *sql.Rows) (none struct{}, err error) {
		var m snap.Member
		var g snap.Group
		err = rows.Scan(&m.ID, &m.Email, &m.Name, &m.Role, &m.Disabled, &m.GroupsUnknown, toTime(&m.GroupsAsOf), &g.ID,
			&g.GroupID, &g.Name)
		if n := len(all); n == 0 || all[n-1].ID != m.ID {
			all = append(all, m)
		}
		if g.ID != 0 {
			last := &all[len(all)-1]
			last.Groups = append(last.Groups, g)
		}
		return none, err
	})
	return all, err
}
