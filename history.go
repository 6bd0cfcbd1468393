package snap

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// PastAccess describes who could see a snapshot at a time in the past. It applies the access rule
// of access.go to the audit log instead of to the stored grants.
type PastAccess struct {
	Known   bool // the log records the push of the snapshot
	Existed bool // it had been pushed and was not yet deleted
	Owner   string
	OrgWide bool
	Groups  []string              // IDs of the groups it was shared with
	Orgs    map[string]*time.Time // slugs of the organizations it was shared with; nil means no end
	Users   []AuditDetail         // the organization's users: account, e-mail, role, groups
	Keys    []AuditDetail         // the organization-level keys that were not revoked: name, kind, scopes
	Closed  bool                  // the organization was closed, so none of its members and keys saw anything
	account int64                 // the owner's ID; 0 if a key pushed, or if the log line of the push has no ID
	at      time.Time

	wideUntil  *time.Time            // when the org-wide share ends; nil means never
	groupUntil map[string]*time.Time // the same for the groups
}

// ReadHistory reconstructs from an organization's audit log who could see a snapshot at a time in
// the past. lines holds the entries about the snapshot, and about the organization's users, keys,
// policy and closing, from the oldest to the newest. None of them may be later than the time at.
func ReadHistory(lines []AuditEntry, snapshotID string, at time.Time) PastAccess {
	past := PastAccess{Orgs: map[string]*time.Time{}, groupUntil: map[string]*time.Time{}, at: at}
	users, keys, created := map[string]AuditDetail{}, map[int64]AuditDetail{}, map[int64]time.Time{}
	var policy Policy
	for _, e := range lines {
		switch e.Action {
		case AuditUserChanged, AuditUserLeft:
			delete(users, e.Detail.User) // a line from an older service recorded the user under the e-mail
			users[accountOf(e.Detail.Account, e.Detail.User)] = e.Detail
		case AuditKeyCreated:
			if CredentialKind(e.Detail.Kind).OrgLevel() {
				keys[e.Detail.Key], created[e.Detail.Key] = e.Detail, e.At
			}
		case AuditKeyRevoked:
			delete(keys, e.Detail.Key)
		case AuditPolicy:
			policy = policyOf(e.Detail.Policy)
		case AuditOrgClosed, AuditOrgOpened:
			past.Closed = e.Action == AuditOrgClosed
		}
		if e.Snapshot == snapshotID {
			past.read(e)
		}
	}
	past.endShares()
	past.Users = slices.SortedFunc(maps.Values(users), func(a, b AuditDetail) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Account, b.Account))
	})
	for id, k := range keys {
		end := created[id].Add(policy.MaxKeyAge)
		if policy.MaxKeyAge > 0 && (k.Expires == nil || end.Before(*k.Expires)) {
			k.Expires = &end
		}
		past.Keys = append(past.Keys, k)
	}
	slices.SortFunc(past.Keys, func(a, b AuditDetail) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	return past
}

// policyOf reads the policy of an audit line. If the text is not a policy, policyOf returns the
// zero Policy, which limits nothing.
func policyOf(text string) (p Policy) {
	if json.Unmarshal([]byte(text), &p) != nil {
		return Policy{}
	}
	return p
}

// accountOf returns a string that identifies a user: the account ID, which does not change with the
// e-mail, or the e-mail in lines from older services, which recorded no account.
func accountOf(account int64, email string) string {
	if account == 0 {
		return email
	}
	return strconv.FormatInt(account, 10)
}

func (t *PastAccess) read(e AuditEntry) {
	switch e.Action {
	case AuditPushed:
		t.Known, t.Existed, t.Owner, t.account = true, true, e.Detail.Owner, e.Detail.Account
	case AuditDeleted:
		t.Existed = false
	case AuditShared:
		t.share(e.Detail)
	case AuditUnshared, AuditDeclined:
		t.unshare(e.Detail)
	}
}

// endShares removes the shares that had expired by the time t.at.
func (t *PastAccess) endShares() {
	ended := func(until *time.Time) bool { return until != nil && !(Grant{Until: *until}).Live(t.at) }
	t.OrgWide = t.OrgWide && !ended(t.wideUntil)
	t.Groups = slices.DeleteFunc(t.Groups, func(g string) bool { return ended(t.groupUntil[g]) })
	maps.DeleteFunc(t.Orgs, func(_ string, until *time.Time) bool { return ended(until) })
}

func (t *PastAccess) share(d AuditDetail) {
	switch {
	case d.OrgWide:
		t.OrgWide, t.wideUntil = true, d.Expires
	case d.Group != "":
		if t.groupUntil[d.Group] = d.Expires; !slices.Contains(t.Groups, d.Group) {
			t.Groups = append(t.Groups, d.Group)
		}
	case d.Organization != "":
		t.Orgs[d.Organization] = d.Expires
	}
}

func (t *PastAccess) unshare(d AuditDetail) {
	switch {
	case d.OrgWide:
		t.OrgWide = false
	case d.Group != "":
		t.Groups = slices.DeleteFunc(t.Groups, func(g string) bool { return g == d.Group })
	case d.Organization != "":
		delete(t.Orgs, d.Organization)
	}
}

// Why names the grants through which a user of the organization could see the snapshot. It returns
// "" if they could not see it. Why calls [Judge], which applies the access rule, with the grants
// that the log shows.
func (t PastAccess) Why(u AuditDetail) string {
	if !t.Existed || t.Closed {
		return ""
	}
	n := numbers{}
	v := Judge(n.caller(u), u.Disabled, n.grants(t), t.at)
	if !v.Visible {
		return ""
	}
	return v.Why
}

// SeenBy reports whether key, one of the organization's keys, could see and pull the snapshot.
func (t PastAccess) SeenBy(key AuditDetail) bool {
	if !t.Existed || t.Closed || key.Expires != nil && !t.at.Before(*key.Expires) {
		return false
	}
	n := numbers{}
	c := Caller{Org: n.home(), Credential: Credential{Kind: CredentialKind(key.Kind), Scopes: key.Scopes}}
	return Judge(c, false, n.grants(t), t.at).Visible && Allowed(c, ActPull, Snapshot{Org: c.Org}) == nil
}

// numbers assigns identifiers to names. The log identifies a group by its ID at the identity
// provider, and a user as accountOf does, but the access rule needs numbers. Each name gets the
// next free number when it first appears.
type numbers map[string]int64

func (n numbers) of(kind, name string) int64 {
	key := kind + " " + name
	if n[key] == 0 {
		n[key] = int64(len(n) + 1)
	}
	return n[key]
}

// home returns the organization whose log is read.
func (n numbers) home() OrgRef { return OrgRef{ID: n.of("organization", "")} }

func (n numbers) group(id string) Group {
	return Group{ID: n.of("group", id), GroupID: id, Name: id}
}

// caller converts a user of the log to a Caller with the role and groups that the user had.
func (n numbers) caller(u AuditDetail) Caller {
	c := Caller{Org: n.home(), User: &User{ID: n.of("user", accountOf(u.Account, u.User)), Email: u.User}, Role: u.Role}
	for _, id := range u.Groups {
		c.Groups = append(c.Groups, n.group(id))
	}
	return c
}

// grants returns the grants that the push added, and those of the live org-wide and group shares.
func (n numbers) grants(t PastAccess) (all []Access) {
	home := n.home()
	add := func(kind AudienceKind, subject int64, group *Group) {
		all = append(all, Access{Grant: Grant{Audience: AudienceOf(kind, subject)}, Group: group, Org: home})
	}
	add(KindAdmins, home.ID, nil)
	if t.Owner != "" {
		add(KindUser, n.of("user", accountOf(t.account, t.Owner)), nil)
	} else {
		add(KindKeys, home.ID, nil)
	}
	if t.OrgWide {
		add(KindMembers, home.ID, nil)
	}
	for _, id := range t.Groups {
		g := n.group(id)
		add(KindGroup, g.ID, &g)
	}
	return all
}
