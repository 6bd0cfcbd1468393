package snap

import (
	"cmp"
	"slices"
	"time"
)

// Then is who could see a snapshot at a time in the past, as the audit log
// tells. It is the access rule of access.go, read from the log instead of from
// the grants.
type Then struct {
	Known   bool // the log knows the snapshot
	Existed bool // it had been pushed and not been deleted
	Owner   string
	OrgWide bool
	Groups  []string              // IDs of the groups it was shared with
	Orgs    map[string]*time.Time // slugs of the organizations it was shared with; nil never ends
	Users   []AuditDetail         // the organization's users: e-mail, role, groups
}

// ReadHistory reads an organization's audit lines about one snapshot and about
// its users, the oldest first and none after at.
func ReadHistory(lines []AuditEntry, snapshotID string, at time.Time) Then {
	then := Then{Orgs: map[string]*time.Time{}}
	users := map[string]AuditDetail{}
	for _, e := range lines {
		if e.Action == AuditUserChanged {
			users[e.Detail.User] = e.Detail
		}
		if e.Snapshot == snapshotID {
			then.read(e)
		}
	}
	for slug, until := range then.Orgs {
		if until != nil && !at.Before(*until) {
			delete(then.Orgs, slug)
		}
	}
	for _, u := range users {
		then.Users = append(then.Users, u)
	}
	slices.SortFunc(then.Users, func(a, b AuditDetail) int { return cmp.Compare(a.User, b.User) })
	return then
}

func (t *Then) read(e AuditEntry) {
	switch e.Action {
	case AuditPushed:
		t.Known, t.Existed, t.Owner = true, true, e.Detail.Owner
	case AuditDeleted:
		t.Existed = false
	case AuditShared:
		t.share(e.Detail)
	case AuditUnshared, AuditDeclined:
		t.unshare(e.Detail)
	}
}

func (t *Then) share(d AuditDetail) {
	switch {
	case d.OrgWide:
		t.OrgWide = true
	case d.Group != "" && !slices.Contains(t.Groups, d.Group):
		t.Groups = append(t.Groups, d.Group)
	case d.Organization != "":
		t.Orgs[d.Organization] = d.Expires
	}
}

func (t *Then) unshare(d AuditDetail) {
	switch {
	case d.OrgWide:
		t.OrgWide = false
	case d.Group != "":
		t.Groups = slices.DeleteFunc(t.Groups, func(g string) bool { return g == d.Group })
	case d.Organization != "":
		delete(t.Orgs, d.Organization)
	}
}

// Why says through what a user of the organization could see the snapshot;
// empty when they could not.
func (t Then) Why(u AuditDetail) string {
	switch {
	case !t.Existed || u.Disabled:
		return ""
	case t.Owner == u.User:
		return "owner of the snapshot"
	case u.Role.IsAdmin():
		return string(u.Role) + " of the organization"
	case t.OrgWide:
		return "shared org-wide"
	}
	for _, g := range t.Groups {
		if slices.Contains(u.Groups, g) {
			return "member of the group " + g
		}
	}
	return ""
}
