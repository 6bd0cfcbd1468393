package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"snap"
)

// Reporter is an organization's identity provider, which reports people and groups by SCIM 2.0 (RFC
// 7643, RFC 7644). A report can change the groups and roles of existing accounts, and can end their
// sessions and keys. It never creates an account or a way to sign in.
type Reporter struct {
	Caller snap.Caller // the key that reports; Caller.Org is the organization
	// Issuer is the issuer of the organization's sign-ins. Only accounts of this issuer get groups.
	Issuer string
	// RoleOf returns the role that the configuration gives a person with these groups. It is nil
	// when groups give no role.
	RoleOf func(email string, verified bool, groups []snap.Group) snap.Role
}

// SCIMUser is a person as their identity provider reports them. They may have no account.
type SCIMUser struct {
	key                               int64
	ID                                string // chosen by the service; unguessable
	UserName, ExternalID, DisplayName string // ExternalID is empty when none was reported
	Active                            bool
	Created, Changed                  time.Time
}

// SCIMUserChange holds the new values that a report gives a person; nil keeps a value.
type SCIMUserChange struct {
	UserName, ExternalID, DisplayName *string
	Active                            *bool
}

// SCIMPage selects the resources that have all of these values, in the order of their creation. An
// empty value matches everything. Case is ignored in names.
type SCIMPage struct {
	ID, UserName, ExternalID, DisplayName, Member string
	Skip, Limit                                   int
}

// Limits on the reports of an organization's identity provider.
const (
	MaxSCIMUsers  = 100_000 // per organization
	MaxSCIMGroups = 10_000  // per organization
	MaxSCIMOfUser = 2_000   // groups of one person
)

var errNoSCIM = &snap.Error{Code: snap.CodeNotFound, Detail: "the organization has no such resource"}

// errSCIMTaken is the error for a value that is already in use and must be unique in the
// organization.
func errSCIMTaken(field string) error {
	return &snap.Error{Code: snap.CodeConflict, Detail: "another resource of the organization has this " + field}
}

const selectSCIMUsers = `SELECT n.key, n.id, n.user_name, coalesce(n.external_id, ''), n.display_name, n.active,
	n.created_at, n.changed_at FROM scim_users n `

func scanSCIMUser(rows *sql.Rows) (u SCIMUser, err error) {
	err = rows.Scan(&u.key, &u.ID, &u.UserName, &u.ExternalID, &u.DisplayName, &u.Active, toTime(&u.Created),
		toTime(&u.Changed))
	return u, err
}

// where returns the condition of a page for table n, and its arguments.
func (p SCIMPage) where(orgID int64, columns map[string]string) (text string, args []any) {
	conditions, args := []string{`n.org_id = $1`}, []any{orgID}
	for _, want := range []struct{ name, value string }{
		{"id", p.ID}, {"user_name", snap.FoldCase(p.UserName)}, {"external_id", p.ExternalID},
		{"display_name", snap.FoldCase(p.DisplayName)}, {"member", p.Member},
	} {
		if want.value == "" {
			continue
		}
		args = append(args, want.value)
		conditions = append(conditions, fmt.Sprintf(columns[want.name], `$`+strconv.Itoa(len(args))))
	}
	return ` WHERE ` + strings.Join(conditions, ` AND `), args
}

var scimUserColumns = map[string]string{"id": `n.id = %s`, "user_name": `n.user_name_folded = %s`,
	"external_id": `n.external_id = %s`, "display_name": `n.display_name_folded = %s`}

// SCIMUsers returns a page of the people that an organization's provider reported, and the total
// number that match.
func (s *Store) SCIMUsers(ctx context.Context, orgID int64, p SCIMPage) (page []SCIMUser, total int, err error) {
	where, args := p.where(orgID, scimUserColumns)
	if err := s.row(ctx, `SELECT count(*) FROM scim_users n`+where, args...).Scan(&total); err != nil {
		return nil, 0, err
	}
	n := len(args)
	text := fmt.Sprintf(`%s%s ORDER BY n.key LIMIT $%d OFFSET $%d`, selectSCIMUsers, where, n+1, n+2)
	page, err = collect(ctx, s, text, scanSCIMUser, append(args, p.Limit, p.Skip)...)
	return page, total, err
}

// AddSCIMUser adds a person with the values of a change. If the person is not active, the sessions
// and keys of their accounts end as described at [Store.ChangeSCIMUser]. It fails with code
// conflict when the user name or external ID is already in use, and with code invalid when the
// organization has too many people.
func (s *Store) AddSCIMUser(ctx context.Context, r Reporter, c SCIMUserChange) (u SCIMUser, err error) {
	err = s.report(ctx, r, func(tx *sql.Tx) error {
		if err := requireQuota(ctx, tx, r, `scim_users`, MaxSCIMUsers); err != nil {
			return err
		}
		u = SCIMUser{ID: newSCIMID(), Active: true}
		u.apply(c)
		return tx.QueryRowContext(ctx, `
			INSERT INTO scim_users(id, org_id, user_name, user_name_folded, external_id, display_name,
				display_name_folded, active, created_at, changed_at)
			VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) RETURNING key`,
			u.ID, r.Caller.Org.ID, u.UserName, snap.FoldCase(u.UserName), nullText(u.ExternalID), u.DisplayName,
			snap.FoldCase(u.DisplayName), flag(u.Active), s.now().UnixMilli()).Scan(&u.key)
	}, func(tx *sql.Tx) error {
		accounts, err := linkedAccounts(ctx, tx, r, u.key)
		if err != nil {
			return err
		}
		u, err = s.applyToAccounts(ctx, tx, r, u.key, accounts)
		return err
	})
	if violatesUnique(err) {
		err = errSCIMTaken("userName or externalId")
	}
	return u, err
}

// ChangeSCIMUser changes the reported data of a person. If the external ID changes, accounts with
// the new ID get the person's groups, and accounts with the old ID lose them. If the change leaves
// the person inactive, all sessions and user-scoped keys of their accounts end at once, as with
// [Store.EndRefused]. That includes the accounts of earlier external IDs that nobody else has. It
// fails with code not_found if there is no such person, and with code conflict when the user name
// or external ID is already in use.
func (s *Store) ChangeSCIMUser(ctx context.Context, r Reporter, id string, c SCIMUserChange) (u SCIMUser, err error) {
	var before []int64
	err = s.report(ctx, r, func(tx *sql.Tx) error {
		if u, err = scimUser(ctx, tx, r, id); err != nil {
			return err
		}
		if before, err = linkedAccounts(ctx, tx, r, u.key); err != nil {
			return err
		}
		old := u.ExternalID
		if u.apply(c); u.ExternalID != old {
			if err := recordFormerID(ctx, tx, r, u.key, old); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `
			UPDATE scim_users SET user_name = $2, user_name_folded = $3, external_id = $4, display_name = $5,
				display_name_folded = $6, active = $7, changed_at = $8 WHERE key = $1`,
			u.key, u.UserName, snap.FoldCase(u.UserName), nullText(u.ExternalID), u.DisplayName,
			snap.FoldCase(u.DisplayName), flag(u.Active), s.now().UnixMilli())
		return err
	}, func(tx *sql.Tx) error {
		u, err = s.applyToAccounts(ctx, tx, r, u.key, before)
		return err
	})
	if violatesUnique(err) {
		err = errSCIMTaken("userName or externalId")
	}
	return u, err
}

// DeleteSCIMUser deletes a reported person. It ends their accounts' sessions and user-scoped keys
// at once, as [Store.EndRefused] does. It fails with code not_found if there is no such person.
func (s *Store) DeleteSCIMUser(ctx context.Context, r Reporter, id string) error {
	var accounts []int64
	ctx = snap.ActingAs(ctx, r.Caller)
	return s.report(ctx, r, func(tx *sql.Tx) error {
		u, err := scimUser(ctx, tx, r, id)
		if err != nil {
			return err
		}
		if accounts, err = linkedAccounts(ctx, tx, r, u.key); err != nil {
			return err
		}
		if err := s.endPerson(ctx, tx, r, u); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM scim_users WHERE key = $1`, u.key)
		return err
	}, func(tx *sql.Tx) error { return s.applyReports(ctx, tx, r, accounts, nil) })
}

// applyToAccounts applies a person's current data to their accounts, including the accounts that
// were theirs before the change.
func (s *Store) applyToAccounts(ctx context.Context, tx *sql.Tx, r Reporter, key int64,
	before []int64) (SCIMUser, error) {
	ctx = snap.ActingAs(ctx, r.Caller)
	u, err := one(txCollect(ctx, tx, selectSCIMUsers+`WHERE n.key = $1`, scanSCIMUser, key))
	if err != nil {
		return u, err
	}
	now, err := linkedAccounts(ctx, tx, r, key)
	if err != nil {
		return u, err
	}
	if err := s.applyReports(ctx, tx, r, append(before, now...), nil); err != nil || u.Active {
		return u, err
	}
	return u, s.endPerson(ctx, tx, r, u)
}

// endPerson ends all accounts of a reported person, as [Store.EndRefused] does.
func (s *Store) endPerson(ctx context.Context, tx *sql.Tx, r Reporter, u SCIMUser) error {
	all, err := accountsOf(ctx, tx, r, u)
	if err != nil {
		return err
	}
	for _, account := range all {
		if err := s.endUser(ctx, tx, account); err != nil {
			return err
		}
	}
	return nil
}

func (u *SCIMUser) apply(c SCIMUserChange) {
	setReported(&u.UserName, c.UserName)
	setReported(&u.ExternalID, c.ExternalID)
	setReported(&u.DisplayName, c.DisplayName)
	setReported(&u.Active, c.Active)
}

// setReported sets a value to the one that a report gives; nil keeps it.
func setReported[T any](value, reported *T) {
	if reported != nil {
		*value = *reported
	}
}

func scimUser(ctx context.Context, tx *sql.Tx, r Reporter, id string) (SCIMUser, error) {
	u, err := one(txCollect(ctx, tx, selectSCIMUsers+`WHERE n.org_id = $1 AND n.id = $2`, scanSCIMUser,
		r.Caller.Org.ID, id))
	return u, noRowsAs(err, errNoSCIM)
}

// report runs change and then apply in one transaction. An organization's reports run one after the
// other, and never at the same time as one of its sign-ins. A sign-in that comes first uses the
// data from before the report, and the report is then applied to its result. A sign-in that comes
// later uses the data of the report.
func (s *Store) report(ctx context.Context, r Reporter, change, apply func(*sql.Tx) error) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.lockOrg(ctx, tx, r.Caller.Org.ID); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		return apply(tx)
	})
}

// waitForReports makes a sign-in's transaction wait for running reports of its organization.
// Reports that begin later wait for the transaction.
func (s *Store) waitForReports(ctx context.Context, tx *sql.Tx, orgID int64) error {
	_, err := tx.ExecContext(ctx, `SELECT id FROM orgs WHERE id = $1`+s.rowLock(`FOR SHARE`), orgID)
	return err
}

// requireQuota fails with code invalid if an organization already has max rows in a table.
func requireQuota(ctx context.Context, tx *sql.Tx, r Reporter, table string, max int) error {
	var n int
	err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE org_id = $1`, r.Caller.Org.ID).Scan(&n)
	if err == nil && n >= max {
		err = snap.Invalid(fmt.Sprintf("the organization has %d of these resources; more are not allowed", n),
			"assign fewer people and groups to the application at the identity provider")
	}
	return err
}

// newSCIMID returns a new ID of a resource: 80 random bits.
func newSCIMID() string { return rand.Text()[:16] }

// SCIMKeyOverlap is how long an organization's SCIM key works after it was replaced, so that the
// provider's reports do not fail before it has the new key.
const SCIMKeyOverlap = 24 * time.Hour

// replaceSCIMKeys makes all SCIM keys of an organization except the newest expire after the
// overlap.
func (s *Store) replaceSCIMKeys(ctx context.Context, tx *sql.Tx, orgID, newest int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE api_keys SET expires_at = $1 WHERE org_id = $2 AND kind = 'scim' AND id <> $3
		AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)`,
		s.now().Add(SCIMKeyOverlap).UnixMilli(), orgID, newest)
	return err
}
