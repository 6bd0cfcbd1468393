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
	at      time.Time
}

// ReadHistory reads an organization's audit lines about one snapshot and about
// its users, the oldest first and none after at.
func ReadHistory(lines []AuditEntry, snapshotID string, at time.Time) Then {
	then := Then{Orgs: map[string]*time.Time{}, at: at}
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
		if until != nil && !(Grant{Until: *until}).Live(at) {
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
// empty when they could not. It asks the access rule itself.
func (t Then) Why(u AuditDetail) string {
	if !t.Existed {
		return ""
	}
	n := numbers{}
	v := Judge(n.caller(u), u.Disabled, n.grants(t), t.at)
	if !v.Visible {
		return ""
	}
	return v.Why
}

// numbers gives what the log knows by name the identifiers by which the access
// rule knows it: each name its own, in the order in which they are met.
type numbers map[string]int64

func (n numbers) of(kind, name string) int64 {
	key := kind + " " + name
	if n[key] == 0 {
		n[key] = int64(len(n) + 1)
	}
	return n[key]
}

// home is the organization whose log is read.
func (n numbers) home() OrgRef { return OrgRef{ID: n.of("organization", "")} }

func (n numbers) group(id string) Group {
	return Group{ID: n.of("group", id), GroupID: id, Name: id}
}

// caller is a user as they were.
func (n numbers) caller(u AuditDetail) Caller {
	c := Caller{Org: n.home(), User: &User{ID: n.of("user", u.User), Email: u.User}, Role: u.Role}
	for _, id := range u.Groups {
		c.Groups = append(c.Groups, n.group(id))
	}
	return c
}

// grants are those that a push made and the shares that held.
func (n numbers) grants(t Then) []Access {
	home := n.home()
	all := []Access{{Grant: Grant{Audience: AudienceOf(KindAdmins, home.ID)}, Org: home}}
	if t.Owner != "" {
		all = append(all, Access{Grant: Grant{Audience: AudienceOf(KindUser, n.of("user", t.Owner))}, Org: home})
	}
	if t.OrgWide {
		all = append(all, Access{Grant: Grant{Audience: AudienceOf(KindMembers, home.ID)}, Org: home})
	}
	for _, id := range t.Groups {
		g := n.group(id)
		all = append(all, Access{Grant: Grant{Audience: AudienceOf(KindGroup, g.ID)}, Group: &g, Org: home})
	}
	return all
}
