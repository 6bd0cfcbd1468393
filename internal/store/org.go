package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"snap"
)

// Org is an organization with the limits that its configuration sets.
type Org struct {
	snap.OrgRef
	Policy snap.Policy
	// Closed is set while the configuration does not list the organization. Its credentials are
	// refused, nothing more is shared with it, and its webhooks and retention are paused. See
	// [Store.CloseAllBut].
	Closed bool
}

// ApplyOrg creates the organization with this slug, or updates its name and policy. At every start,
// the service calls it for each configured organization.
func (s *Store) ApplyOrg(ctx context.Context, slug, name string, p snap.Policy) (snap.OrgRef, error) {
	if !snap.ValidSlug(slug) {
		return snap.OrgRef{}, snap.Invalid(fmt.Sprintf("%q is not a slug", slug),
			"use 1 to 63 lower-case letters, digits and inner hyphens")
	}
	policy, err := json.Marshal(p)
	if err != nil {
		return snap.OrgRef{}, err
	}
	org := snap.OrgRef{Slug: slug, Name: name}
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		var before string
		err := tx.QueryRowContext(ctx, `SELECT id, policy FROM orgs WHERE slug = $1`, slug).Scan(&org.ID, &before)
		if err == nil {
			return s.changeOrg(ctx, tx, org, before, string(policy), p.MaxKeyAge)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if org.ID, err = newPrincipal(ctx, tx, "org"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx,
			`INSERT INTO orgs(id, slug, name, policy, max_key_age) VALUES($1, $2, $3, $4, $5)`,
			org.ID, slug, name, string(policy), p.MaxKeyAge.Milliseconds()); err != nil {
			return err
		}
		return s.setKeyAudiences(ctx, tx, org)
	})
	return org, err
}

// CloseAllBut closes every organization whose slug is not listed, and opens the listed ones, except
// organizations that a newer program has closed. The change takes effect at the next request, on
// every replica. Nothing is deleted, so an organization that is opened again is unchanged.
func (s *Store) CloseAllBut(ctx context.Context, slugs []string) error {
	list := jsonArray(slugs)
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE orgs SET closed_by = $2 WHERE closed_by < $2
			AND slug NOT IN (SELECT value FROM `+s.eachText("$1")+`)`, list, s.schema)
		if err != nil {
			return err
		}
		changed, err := txCollect(ctx, tx, `UPDATE orgs SET closed = 1 - closed
			WHERE closed = CASE WHEN slug IN (SELECT value FROM `+s.eachText("$1")+`) THEN 1 ELSE 0 END
			AND (closed = 0 OR closed_by <= $2) RETURNING id, closed`, func(rows *sql.Rows) (o Org, err error) {
			err = rows.Scan(&o.ID, &o.Closed)
			return o, err
		}, list, s.schema)
		if err != nil {
			return err
		}
		for _, o := range changed {
			e := snap.AuditEntry{Action: snap.AuditOrgOpened}
			if o.Closed {
				e.Action = snap.AuditOrgClosed
			}
			if err := s.record(ctx, tx, o.ID, snap.Caller{}, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeOrg sets an organization's name and policy, and records a changed policy.
func (s *Store) changeOrg(ctx context.Context, tx *sql.Tx, org snap.OrgRef, before, policy string,
	maxKeyAge time.Duration) error {
	differs, err := changed(tx.ExecContext(ctx,
		`UPDATE orgs SET name = $2, policy = $3, max_key_age = $4 WHERE id = $1 AND (name <> $2 OR policy <> $3)`,
		org.ID, org.Name, policy, maxKeyAge.Milliseconds()))
	if err != nil || !differs || before == policy {
		return err
	}
	return s.record(ctx, tx, org.ID, snap.Caller{}, snap.AuditEntry{Action: snap.AuditPolicy,
		Detail: snap.AuditDetail{Policy: policy}})
}

// lockOrg makes transactions that lock the same organization wait for each other, so that they
// cannot exceed a limit together. SQLite has one writer, so it needs no lock.
func (s *Store) lockOrg(ctx context.Context, tx *sql.Tx, orgID int64) error {
	if s.dialect == sqlite {
		return nil
	}
	_, err := tx.ExecContext(ctx, `SELECT id FROM orgs WHERE id = $1 FOR NO KEY UPDATE`, orgID)
	return err
}

// setKeyAudiences writes the audiences of an organization's keys: one set for keys without the
// scope private, and one for keys with it.
func (s *Store) setKeyAudiences(ctx context.Context, tx *sql.Tx, org snap.OrgRef) error {
	plain, private := snap.Caller{Org: org}, snap.Caller{Org: org}
	private.Credential.Scopes = []snap.Scope{snap.ScopePrivate}
	overriding := ``
	if s.dialect == postgres {
		overriding = ` OVERRIDING SYSTEM VALUE`
	}
	_, err := tx.ExecContext(ctx,
		`INSERT INTO principals(id, kind)`+overriding+` VALUES($1, 'keys')`, private.Principal())
	if err != nil {
		return err
	}
	if err := s.setMembership(ctx, tx, plain); err != nil {
		return err
	}
	return s.setMembership(ctx, tx, private)
}

// newPrincipal allocates the identifier of an organization, user or group.
func newPrincipal(ctx context.Context, tx *sql.Tx, kind string) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO principals(kind) VALUES($1) RETURNING id`, kind).Scan(&id)
	return id, err
}

// OrgBySlug returns an organization by its slug. It fails with code organization_not_found if there
// is none.
func (s *Store) OrgBySlug(ctx context.Context, slug string) (Org, error) {
	org, err := one(s.orgs(ctx, `WHERE slug = $1`, slug))
	return org, noRowsAs(err, errNoOrg(slug))
}

func errNoOrg(slug string) error {
	return &snap.Error{
		Code:   snap.CodeOrganizationNotFound,
		Detail: fmt.Sprintf("no organization has the slug %q", slug),
		Hint:   "ask the other organization for its slug: `snapcli whoami` shows it",
	}
}

// Org returns an organization by its identifier, which must exist.
func (s *Store) Org(ctx context.Context, id int64) (Org, error) {
	org, err := one(s.orgs(ctx, `WHERE id = $1`, id))
	if err != nil {
		err = fmt.Errorf("organization %d: %w", id, err)
	}
	return org, err
}

// Orgs returns every organization of the service, by slug. It is for the operator.
func (s *Store) Orgs(ctx context.Context) ([]Org, error) { return s.orgs(ctx, `ORDER BY slug`) }

func (s *Store) orgs(ctx context.Context, suffix string, args ...any) ([]Org, error) {
	return collect(ctx, s, selectOrg+suffix, func(rows *sql.Rows) (Org, error) { return scanOrg(rows) }, args...)
}

const selectOrg = `SELECT id, slug, name, policy, closed FROM orgs `

func scanOrg(row scanner) (o Org, err error) {
	var policy string
	if err := row.Scan(&o.ID, &o.Slug, &o.Name, &policy, &o.Closed); err != nil {
		return o, err
	}
	err = json.Unmarshal([]byte(policy), &o.Policy)
	return o, err
}

func scanGroup(rows *sql.Rows) (g snap.Group, err error) {
	err = rows.Scan(&g.ID, &g.GroupID, &g.Name)
	return g, err
}

// GroupCount is an SSO group and the number of its members who are not disabled.
type GroupCount struct {
	snap.Group
	Members int
}

// Groups returns the SSO groups of the caller's organization, by name.
func (s *Store) Groups(ctx context.Context, c snap.Caller) ([]GroupCount, error) {
	return collect(ctx, s, `
		SELECT g.id, g.group_id, g.name, (
			SELECT count(*) FROM membership m JOIN users u ON u.id = m.principal AND u.disabled = 0
			WHERE m.audience = g.id`+groupOf+`)
		FROM groups g WHERE g.org_id = $1 ORDER BY g.name, g.group_id`,
		func(rows *sql.Rows) (g GroupCount, err error) {
			err = rows.Scan(&g.ID, &g.GroupID, &g.Name, &g.Members)
			return g, err
		}, c.Org.ID)
}
