package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"snap"
)

// This file combines the groups that an identity provider reports by SCIM with the groups that it
// names at sign-ins. The rule: if SCIM reports both a person and a group, SCIM alone decides
// whether the person belongs to the group. In all other cases the last sign-in decides.

// workingSCIMKey is the condition that the organization o.id has a working SCIM key. Without one,
// nobody can correct the reports, so they do not count. $now is replaced with a parameter.
const workingSCIMKey = ` EXISTS(SELECT 1 FROM api_keys k WHERE k.org_id = o.id AND k.kind = 'scim'
	AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > $now)
	AND (o.max_key_age = 0 OR k.created_at + o.max_key_age > $now))`

// linkedTo joins accounts u to the people n that SCIM reports, by their external IDs and never by
// an e-mail address. $1 is the organization and $2 the issuer.
const linkedTo = ` FROM users u JOIN scim_users n ON n.org_id = u.org_id AND n.external_id = u.external_id
	WHERE u.org_id = $1 AND u.issuer = $2`

// linkedAccounts returns the accounts of a reported person.
func linkedAccounts(ctx context.Context, tx *sql.Tx, r Reporter, key int64) ([]int64, error) {
	return txCollect(ctx, tx, `SELECT u.id`+linkedTo+` AND n.key = $3`, scanOne[int64], r.Caller.Org.ID, r.Issuer, key)
}

// accountsOf returns all accounts of a reported person, from any issuer, because a person who
// leaves must lose all of them. An account with an earlier external ID of the person is included,
// unless the ID is now another person's.
func accountsOf(ctx context.Context, tx *sql.Tx, r Reporter, u SCIMUser) ([]int64, error) {
	return txCollect(ctx, tx, `
		SELECT id FROM users WHERE org_id = $1 AND external_id = $2 AND external_id <> ''
		UNION SELECT u.id FROM users u WHERE u.org_id = $1 AND u.former_scim_user = $3 AND NOT EXISTS(
			SELECT 1 FROM scim_users n WHERE n.org_id = $1 AND n.external_id = u.external_id AND n.key <> $3)`,
		scanOne[int64], r.Caller.Org.ID, u.ExternalID, u.key)
}

// recordFormerID records that the accounts with an external ID belong to the person who had it.
func recordFormerID(ctx context.Context, tx *sql.Tx, r Reporter, key int64, externalID string) error {
	_, err := tx.ExecContext(ctx, `UPDATE users SET former_scim_user = $3
		WHERE org_id = $1 AND external_id = $2 AND external_id <> ''`, r.Caller.Org.ID, externalID, key)
	return err
}

// affectedAccounts are accounts of reported people whose groups a report may change.
type affectedAccounts []int64

// addInGroup adds the accounts that are in an SSO group now.
func (t *affectedAccounts) addInGroup(ctx context.Context, tx *sql.Tx, r Reporter, group int64) error {
	return t.add(txCollect(ctx, tx, `SELECT u.id`+linkedTo+
		` AND u.id IN (SELECT principal FROM membership WHERE audience = $3)`, scanOne[int64],
		r.Caller.Org.ID, r.Issuer, int64(snap.AudienceOf(snap.KindGroup, group))))
}

// addMembers adds the accounts of a reported group's members.
func (t *affectedAccounts) addMembers(ctx context.Context, tx *sql.Tx, r Reporter, key int64) error {
	return t.add(txCollect(ctx, tx, `SELECT u.id`+linkedTo+
		` AND n.key IN (SELECT user_key FROM scim_members WHERE group_key = $3)`, scanOne[int64],
		r.Caller.Org.ID, r.Issuer, key))
}

// addPeople adds the accounts of reported people.
func (t *affectedAccounts) addPeople(ctx context.Context, tx *sql.Tx, s *Store, r Reporter, keys []int64) error {
	return t.add(txCollect(ctx, tx, `SELECT u.id`+linkedTo+` AND n.key IN (SELECT v FROM `+s.each("$3")+` AS e)`,
		scanOne[int64], r.Caller.Org.ID, r.Issuer, jsonArray(keys)))
}

func (t *affectedAccounts) add(ids []int64, err error) error {
	*t = append(*t, ids...)
	return err
}

// useReports changes the groups of a sign-in if SCIM reports the person. For groups that SCIM
// reports, SCIM decides whether the person is a member; other groups stay. The role follows from
// the result.
func (s *Store) useReports(ctx context.Context, tx *sql.Tx, in *SignIn) error {
	if err := s.setLastExternalID(ctx, tx, in); err != nil || in.ExternalID == "" {
		return err
	}
	var key int64
	err := tx.QueryRowContext(ctx, `SELECT n.key FROM scim_users n JOIN orgs o ON o.id = n.org_id
		WHERE n.org_id = $1 AND n.external_id = $2 AND`+strings.ReplaceAll(workingSCIMKey, `$now`, `$3`),
		in.OrgID, in.ExternalID, s.now().UnixMilli()).Scan(&key)
	if err != nil {
		return noRowsAs(err, nil)
	}
	type reportedGroup struct {
		snap.Group
		member bool
	}
	groups, err := txCollect(ctx, tx, `SELECT g.id, g.group_id, g.name,
			CASE WHEN x.user_key IS NULL THEN 0 ELSE 1 END
		FROM scim_groups n JOIN groups g ON g.id = n.group_id
			LEFT JOIN scim_members x ON x.group_key = n.key AND x.user_key = $2 WHERE n.org_id = $1`,
		func(rows *sql.Rows) (g reportedGroup, err error) {
			err = rows.Scan(&g.ID, &g.GroupID, &g.Name, &g.member)
			return g, err
		}, in.OrgID, key)
	if err != nil || len(groups) == 0 {
		return err
	}
	in.Groups = slices.DeleteFunc(slices.Clone(in.Groups), func(g snap.Group) bool {
		return slices.ContainsFunc(groups, func(r reportedGroup) bool { return r.GroupID == g.GroupID })
	})
	for _, g := range groups {
		if g.member {
			in.Groups = append(in.Groups, g.Group)
		}
	}
	in.GroupsUnknown, in.GroupsWhy = false, ""
	if in.RoleOf != nil {
		in.Role, in.RoleUnknown = in.RoleOf(in.Groups), false
	}
	return nil
}

// setLastExternalID gives a sign-in without an external ID the one that its account has or, if
// there is no account yet, the subject. A check without an ID token has no external ID.
func (s *Store) setLastExternalID(ctx context.Context, tx *sql.Tx, in *SignIn) error {
	if in.ExternalID != "" {
		return nil
	}
	err := tx.QueryRowContext(ctx, `SELECT external_id FROM users WHERE org_id = $1 AND issuer = $2 AND subject = $3`,
		in.OrgID, in.Issuer, in.Subject).Scan(&in.ExternalID)
	if errors.Is(err, sql.ErrNoRows) {
		in.ExternalID, err = in.Subject, nil
	}
	return err
}

// account is an account while reports are applied to it.
type account struct {
	id       int64
	email    string
	role     snap.Role
	disabled bool
	verified bool
	unknown  bool // the last sign-in had no usable groups
	have     []snap.Audience
	groups   []snap.Group // of the last sign-in, without the groups that SCIM reports
	reported []snap.Group
}

// applyReports gives accounts of reported people the groups that SCIM reports for them. It removes
// these accounts from the other groups that SCIM reports and from the groups gone, which SCIM no
// longer reports, and sets their roles. Each account that changes gets a line in the audit log. The
// number of statements hardly depends on the number of accounts.
func (s *Store) applyReports(ctx context.Context, tx *sql.Tx, r Reporter, ids, gone []int64) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for part := range slices.Chunk(ids, 2000) {
		if err := s.applyReportsTo(ctx, tx, r, part, gone); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) applyReportsTo(ctx context.Context, tx *sql.Tx, r Reporter, ids, gone []int64) error {
	all, reports, err := s.readAccounts(ctx, tx, r, ids, gone)
	if err != nil {
		return err
	}
	var w reportWrites
	for _, a := range all {
		if err := w.plan(r, a, reports); err != nil {
			return err
		}
	}
	return w.write(ctx, tx, s, r)
}

// readAccounts reads accounts with their groups. reports is set if the organization's provider
// reports groups at all.
func (s *Store) readAccounts(ctx context.Context, tx *sql.Tx, r Reporter, ids, gone []int64) (all []*account,
	reports bool, err error) {
	list, byID := jsonArray(ids), map[int64]*account{}
	all, err = txCollect(ctx, tx, `SELECT id, email, role, disabled, email_verified, groups_unknown FROM users
		WHERE id IN (SELECT v FROM `+s.each("$1")+` AS e) ORDER BY id`, func(rows *sql.Rows) (*account, error) {
		a := &account{}
		err := rows.Scan(&a.id, &a.email, &a.role, &a.disabled, &a.verified, &a.unknown)
		return a, err
	}, list)
	if err != nil {
		return nil, false, err
	}
	for _, a := range all {
		byID[a.id] = a
	}
	reported, err := txCollect(ctx, tx, `SELECT group_id FROM scim_groups WHERE org_id = $1`, scanOne[int64],
		r.Caller.Org.ID)
	if err != nil {
		return nil, false, err
	}
	skip := map[int64]bool{}
	for _, id := range append(reported, gone...) {
		skip[id] = true
	}
	_, err = txCollect(ctx, tx, `SELECT m.principal, m.audience,
			coalesce(g.id, 0), coalesce(g.group_id, ''), coalesce(g.name, '')
		FROM membership m LEFT JOIN groups g ON m.`+isGroupMembership+` AND g.id = m.audience`+subjectOf+`
		WHERE m.principal IN (SELECT v FROM `+s.each("$1")+` AS e)`, func(rows *sql.Rows) (none struct{}, err error) {
		var id int64
		var audience snap.Audience
		var g snap.Group
		err = rows.Scan(&id, &audience, &g.ID, &g.GroupID, &g.Name)
		a := byID[id]
		a.have = append(a.have, audience)
		if g.ID != 0 && !skip[g.ID] {
			a.groups = append(a.groups, g)
		}
		return none, err
	}, list)
	if err != nil {
		return nil, false, err
	}
	_, err = txCollect(ctx, tx, `SELECT u.id, g.id, g.group_id, g.name FROM users u
		JOIN scim_users n ON n.org_id = u.org_id AND n.external_id = u.external_id
		JOIN scim_members x ON x.user_key = n.key
		JOIN scim_groups y ON y.key = x.group_key JOIN groups g ON g.id = y.group_id
		WHERE u.issuer = $2 AND u.id IN (SELECT v FROM `+s.each("$1")+` AS e)`,
		func(rows *sql.Rows) (none struct{}, err error) {
			var id int64
			var g snap.Group
			err = rows.Scan(&id, &g.ID, &g.GroupID, &g.Name)
			byID[id].reported = append(byID[id].reported, g)
			return none, err
		}, list, r.Issuer)
	return all, len(reported) > 0, err
}

// reportWrites collects the changes that reports cause, grouped by statement.
type reportWrites struct {
	add, drop map[snap.Audience][]int64
	roles     map[snap.Role][]int64
	known     []int64 // accounts whose groups were unknown until now
	changed   []int64
	lines     []snap.AuditEntry
}

// plan decides what changes for one account.
func (w *reportWrites) plan(r Reporter, a *account, reports bool) error {
	groups := append(slices.Clone(a.groups), a.reported...)
	if len(groups) > MaxSCIMOfUser {
		return snap.Invalid(fmt.Sprintf("a person would be in more than %d groups", MaxSCIMOfUser),
			"assign fewer groups to the application at the identity provider")
	}
	c := snap.Caller{Org: r.Caller.Org, User: &snap.User{ID: a.id}, Role: a.role, Groups: groups,
		GroupsUnknown: a.unknown && !reports}
	want := c.Audiences()
	if len(difference(a.have, want)) == 0 && len(difference(want, a.have)) == 0 && c.GroupsUnknown == a.unknown {
		return nil
	}
	if r.RoleOf != nil && !c.GroupsUnknown {
		if c.Role = r.RoleOf(a.email, a.verified, groups); c.Role != a.role {
			w.roles = appendID(w.roles, c.Role, a.id)
		}
		want = c.Audiences()
	}
	for _, audience := range difference(a.have, want) {
		w.drop = appendID(w.drop, audience, a.id)
	}
	for _, audience := range difference(want, a.have) {
		w.add = appendID(w.add, audience, a.id)
	}
	if a.unknown && !c.GroupsUnknown {
		w.known = append(w.known, a.id)
	}
	w.changed = append(w.changed, a.id)
	d := snap.AuditDetail{User: a.email, Account: a.id, Role: c.Role, Disabled: a.disabled}
	if !c.GroupsUnknown {
		for _, g := range groups {
			d.Groups = append(d.Groups, g.GroupID)
		}
		slices.Sort(d.Groups)
	}
	w.lines = append(w.lines, snap.AuditEntry{Action: snap.AuditUserChanged, Detail: d})
	return nil
}

func appendID[K comparable](m map[K][]int64, key K, id int64) map[K][]int64 {
	if m == nil {
		m = map[K][]int64{}
	}
	m[key] = append(m[key], id)
	return m
}

func (w *reportWrites) write(ctx context.Context, tx *sql.Tx, s *Store, r Reporter) error {
	do := func(text string, args ...any) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	}
	in := `(SELECT v FROM ` + s.each("$2") + ` AS e)`
	for audience, ids := range w.drop {
		if err := do(`DELETE FROM membership WHERE audience = $1 AND principal IN `+in,
			int64(audience), jsonArray(ids)); err != nil {
			return err
		}
	}
	for audience, ids := range w.add {
		if err := do(`INSERT INTO membership(principal, kind, audience) SELECT v, $1`+kindOf+`, $1 FROM `+
			s.each("$2")+` AS e`, int64(audience), jsonArray(ids)); err != nil {
			return err
		}
	}
	for role, ids := range w.roles {
		if err := do(`UPDATE users SET role = $1 WHERE id IN `+in, string(role), jsonArray(ids)); err != nil {
			return err
		}
	}
	if len(w.known) > 0 {
		if err := do(`UPDATE users SET groups_unknown = 0, groups_why = '', groups_as_of = $1 WHERE id IN `+in,
			s.now().UnixMilli(), jsonArray(w.known)); err != nil {
			return err
		}
	}
	if len(w.changed) > 0 { // tokens from before the report must not undo it
		if err := do(`UPDATE users SET `+claimsAt("$1")+` WHERE id IN `+in,
			s.now().UnixMilli(), jsonArray(w.changed)); err != nil {
			return err
		}
	}
	return s.recordAll(ctx, tx, r.Caller, w.lines)
}

// recordAll is like record, for many lines of the caller's organization.
func (s *Store) recordAll(ctx context.Context, tx *sql.Tx, c snap.Caller, lines []snap.AuditEntry) error {
	if len(lines) == 0 {
		return nil
	}
	bodies := make([]string, 0, len(lines))
	for _, e := range lines {
		body, err := json.Marshal(s.fillIn(ctx, c, e))
		if err != nil {
			return err
		}
		bodies = append(bodies, string(body))
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO audit_waiting(org_id, body) SELECT $1, value FROM `+s.eachText("$2"),
		c.Org.ID, jsonArray(bodies)); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}
