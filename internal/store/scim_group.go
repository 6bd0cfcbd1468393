package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"snap"
)

// SCIMGroup is a group as an identity provider reports it. Snapshots are shared with its SSO group,
// and a configuration may give that group a role. The ID of the SSO group is the external ID or,
// without one, the display name. The provider's groups claim has the same ID.
type SCIMGroup struct {
	key, group              int64
	ID                      string // chosen by the service; unguessable
	DisplayName, ExternalID string
	Members                 []SCIMMember // set only if requested
	Created, Changed        time.Time
}

// SCIMMember is a member of a group: the ID and user name of a reported person.
type SCIMMember struct{ ID, UserName string }

// groupID returns the ID of the SSO group.
func (g SCIMGroup) groupID() string {
	if g.ExternalID != "" {
		return g.ExternalID
	}
	return g.DisplayName
}

// SCIMGroupChange holds the new values that a report gives a group. Nil keeps a name. The steps in
// Members are carried out in order.
type SCIMGroupChange struct {
	DisplayName, ExternalID *string
	Members                 []SCIMMemberChange
}

// SCIMMemberChange is one step in changing a group's members.
type SCIMMemberChange struct {
	Action SCIMAction
	IDs    []string // of reported people
}

// SCIMAction is the effect of a step on the members that it names.
type SCIMAction int

// The actions. Removing somebody who is not a member changes nothing.
const (
	SCIMAdd SCIMAction = iota
	SCIMRemove
	SCIMReplace // replaces all members with these
)

const selectSCIMGroups = `SELECT n.key, n.group_id, n.id, n.display_name, coalesce(n.external_id, ''), n.created_at,
	n.changed_at FROM scim_groups n `

func scanSCIMGroup(rows *sql.Rows) (g SCIMGroup, err error) {
	err = rows.Scan(&g.key, &g.group, &g.ID, &g.DisplayName, &g.ExternalID, toTime(&g.Created), toTime(&g.Changed))
	return g, err
}

var scimGroupColumns = map[string]string{"id": `n.id = %s`, "external_id": `n.external_id = %s`,
	"display_name": `n.display_name_folded = %s`,
	"member": `EXISTS(SELECT 1 FROM scim_members x JOIN scim_users u ON u.key = x.user_key
		WHERE x.group_key = n.key AND u.id = %s)`}

// membersOfPage is roughly the maximum number of members that the groups of one page have together.
const membersOfPage = 20_000

// SCIMGroups returns a page of the groups that an organization's provider reported, and the total
// number that match. With members, a page ends early when its groups together have too many
// members, but it always has at least one group.
func (s *Store) SCIMGroups(ctx context.Context, orgID int64, p SCIMPage, members bool) (page []SCIMGroup, total int,
	err error) {
	where, args := p.where(orgID, scimGroupColumns)
	if err := s.row(ctx, `SELECT count(*) FROM scim_groups n`+where, args...).Scan(&total); err != nil {
		return nil, 0, err
	}
	n := len(args)
	text := fmt.Sprintf(`%s%s ORDER BY n.key LIMIT $%d OFFSET $%d`, selectSCIMGroups, where, n+1, n+2)
	page, err = collect(ctx, s, text, scanSCIMGroup, append(args, p.Limit, p.Skip)...)
	if err != nil || !members {
		return page, total, err
	}
	totalMembers := 0
	for i := range page {
		if totalMembers > membersOfPage {
			return page[:i], total, nil
		}
		page[i].Members, err = collect(ctx, s, `SELECT u.id, u.user_name FROM scim_members x
			JOIN scim_users u ON u.key = x.user_key WHERE x.group_key = $1 ORDER BY u.key`,
			func(rows *sql.Rows) (m SCIMMember, err error) {
				err = rows.Scan(&m.ID, &m.UserName)
				return m, err
			}, page[i].key)
		if err != nil {
			return nil, 0, err
		}
		totalMembers += len(page[i].Members)
	}
	return page, total, nil
}

// AddSCIMGroup adds a group with the values of a change. From then on, people whom the provider
// reported are in the SSO group only if they are members of the reported group. It fails with code
// conflict when another group has the same SSO group, and with code invalid for members who were
// not reported or if the organization has too many groups.
func (s *Store) AddSCIMGroup(ctx context.Context, r Reporter, c SCIMGroupChange) (g SCIMGroup, err error) {
	var affected affectedAccounts
	err = s.report(ctx, r, func(tx *sql.Tx) error {
		if err := requireQuota(ctx, tx, r, `scim_groups`, MaxSCIMGroups); err != nil {
			return err
		}
		g, affected = SCIMGroup{ID: newSCIMID(), Created: s.now(), Changed: s.now()}, nil
		if err := s.setSSOGroup(ctx, tx, r, &g, c); err != nil {
			return err
		}
		err := tx.QueryRowContext(ctx, `
			INSERT INTO scim_groups(id, org_id, display_name, display_name_folded, external_id, group_id,
				created_at, changed_at)
			VALUES($1, $2, $3, $4, $5, $6, $7, $7) RETURNING key`, g.ID, r.Caller.Org.ID, g.DisplayName,
			snap.FoldCase(g.DisplayName), nullText(g.ExternalID), g.group, s.now().UnixMilli()).Scan(&g.key)
		if err != nil {
			return err
		}
		if err := s.changeMembers(ctx, tx, r, g, c.Members, &affected); err != nil {
			return err
		}
		return affected.addInGroup(ctx, tx, r, g.group)
	}, func(tx *sql.Tx) error { return s.applyReports(ctx, tx, r, affected, nil) })
	if violatesUnique(err) {
		err = errSCIMTaken("externalId or, without one, displayName")
	}
	return g, err
}

// ChangeSCIMGroup changes a group's names and members. The change takes effect at the next request,
// on every replica. ChangeSCIMGroup fails with code not_found if there is no such group, and
// otherwise for the same reasons as [Store.AddSCIMGroup].
func (s *Store) ChangeSCIMGroup(ctx context.Context, r Reporter, id string, c SCIMGroupChange) (g SCIMGroup,
	err error) {
	var affected affectedAccounts
	var gone []int64
	err = s.report(ctx, r, func(tx *sql.Tx) error {
		affected, gone = nil, nil
		if g, err = scimGroup(ctx, tx, r, id); err != nil {
			return err
		}
		if old := g.group; c.DisplayName != nil || c.ExternalID != nil {
			if err := s.setSSOGroup(ctx, tx, r, &g, c); err != nil {
				return err
			}
			if old != g.group { // the SSO group has changed: everybody in the old and the new one is affected
				gone = []int64{old}
				if err := errors.Join(affected.addInGroup(ctx, tx, r, old), affected.addInGroup(ctx, tx, r, g.group),
					affected.addMembers(ctx, tx, r, g.key)); err != nil {
					return err
				}
			}
		}
		if _, err := tx.ExecContext(ctx, `
			UPDATE scim_groups SET display_name = $2, display_name_folded = $3, external_id = $4, group_id = $5,
				changed_at = $6 WHERE key = $1`, g.key, g.DisplayName, snap.FoldCase(g.DisplayName),
			nullText(g.ExternalID), g.group, s.now().UnixMilli()); err != nil {
			return err
		}
		return s.changeMembers(ctx, tx, r, g, c.Members, &affected)
	}, func(tx *sql.Tx) error { return s.applyReports(ctx, tx, r, affected, gone) })
	if violatesUnique(err) {
		err = errSCIMTaken("externalId or, without one, displayName")
	}
	return g, err
}

// DeleteSCIMGroup deletes a reported group. Its members leave the SSO group at once. From then on,
// sign-ins decide again who belongs to the SSO group. DeleteSCIMGroup fails with code not_found if
// there is no such group.
func (s *Store) DeleteSCIMGroup(ctx context.Context, r Reporter, id string) error {
	var affected affectedAccounts
	var gone []int64
	return s.report(ctx, r, func(tx *sql.Tx) error {
		affected = nil
		g, err := scimGroup(ctx, tx, r, id)
		if err != nil {
			return err
		}
		gone = []int64{g.group}
		if err := affected.addInGroup(ctx, tx, r, g.group); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM scim_groups WHERE key = $1`, g.key)
		return err
	}, func(tx *sql.Tx) error { return s.applyReports(ctx, tx, r, affected, gone) })
}

func scimGroup(ctx context.Context, tx *sql.Tx, r Reporter, id string) (SCIMGroup, error) {
	g, err := one(txCollect(ctx, tx, selectSCIMGroups+`WHERE n.org_id = $1 AND n.id = $2`, scanSCIMGroup,
		r.Caller.Org.ID, id))
	return g, noRowsAs(err, errNoSCIM)
}

// setSSOGroup applies the names of a change, and finds or creates the SSO group with the group's
// new ID.
func (s *Store) setSSOGroup(ctx context.Context, tx *sql.Tx, r Reporter, g *SCIMGroup, c SCIMGroupChange) error {
	setReported(&g.DisplayName, c.DisplayName)
	setReported(&g.ExternalID, c.ExternalID)
	found, err := s.applyGroups(ctx, tx, SignIn{OrgID: r.Caller.Org.ID,
		Groups: []snap.Group{{GroupID: g.groupID(), Name: g.DisplayName}}})
	if err == nil {
		g.group = found[0].ID
	}
	return err
}

// changeMembers carries out the steps of a change, and adds to affected the accounts whose groups
// these steps may change.
func (s *Store) changeMembers(ctx context.Context, tx *sql.Tx, r Reporter, g SCIMGroup, steps []SCIMMemberChange,
	affected *affectedAccounts) error {
	for _, step := range steps {
		ids := slices.Compact(slices.Sorted(slices.Values(step.IDs)))
		people, err := s.reportedPeople(ctx, tx, r, ids)
		if err != nil {
			return err
		}
		if step.Action != SCIMRemove && len(people) < len(ids) {
			missing := len(ids) - len(people)
			return snap.Invalid(fmt.Sprintf("%d of the members are not users of the organization", missing),
				"create the users before the group's members; groups in groups are not supported")
		}
		var changed []int64
		if step.Action != SCIMAdd {
			if changed, err = s.removeMembers(ctx, tx, g, people, step.Action == SCIMReplace); err != nil {
				return err
			}
		}
		if step.Action != SCIMRemove {
			added, err := txCollect(ctx, tx, `INSERT INTO scim_members(group_key, user_key)
				SELECT $1, v FROM `+s.each("$2")+` AS e WHERE true ON CONFLICT DO NOTHING RETURNING user_key`,
				scanOne[int64], g.key, jsonArray(people))
			if err != nil {
				return err
			}
			changed = append(changed, added...)
		}
		if err := affected.addPeople(ctx, tx, s, r, changed); err != nil {
			return err
		}
	}
	return nil
}

// removeMembers removes these people from a group or, if others is set, everybody else. It returns
// the members that it removed.
func (s *Store) removeMembers(ctx context.Context, tx *sql.Tx, g SCIMGroup, people []int64, others bool) ([]int64,
	error) {
	in := ` IN `
	if others {
		in = ` NOT IN `
	}
	return txCollect(ctx, tx, `DELETE FROM scim_members WHERE group_key = $1 AND user_key`+in+
		`(SELECT v FROM `+s.each("$2")+` AS e) RETURNING user_key`, scanOne[int64], g.key, jsonArray(people))
}

// reportedPeople returns the keys of the reported people with these IDs. Unknown IDs are left out.
func (s *Store) reportedPeople(ctx context.Context, tx *sql.Tx, r Reporter, ids []string) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return txCollect(ctx, tx, `SELECT key FROM scim_users WHERE org_id = $1 AND id IN (SELECT value FROM `+
		s.eachText("$2")+`) ORDER BY key`, scanOne[int64], r.Caller.Org.ID, jsonArray(ids))
}
