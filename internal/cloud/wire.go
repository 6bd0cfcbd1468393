package cloud

import (
	"strconv"
	"time"

	"snap"
	"snap/api"
)

// This file converts the domain's records to the types of the API.

func wireSnapshot(s snap.Snapshot) api.Snapshot {
	out := api.Snapshot{
		ID: s.ID, Target: s.Target, Name: s.Name, Type: s.Type, Engine: s.Engine,
		Size: s.Size, SHA256: s.SHA256, Created: s.Created,
		Description: s.Description, Labels: s.Labels,
		Shared: s.Shared, Received: s.Received, Organization: s.Org.Slug,
		ExpiresAt: optional(s.Expires), Groups: s.Groups, Orgs: s.Orgs, Outside: s.Outside,
		FirstGroup: s.FirstGroup, NextExpiry: optional(s.NextExpiry), Through: s.Through,
	}
	// A recipient learns the owner's organization, not who the owner is.
	if s.Owner != nil && !s.Received {
		out.Owner = s.Owner.Email
	}
	return out
}

func wireCan(c snap.Caller, s snap.Snapshot) *api.Can {
	may := func(do snap.Action) bool { return snap.Allowed(c, do, s) == nil }
	return &api.Can{
		Pull:     may(snap.ActPull),
		Delete:   may(snap.ActDelete),
		Share:    may(snap.ActShare),
		ShareOrg: may(snap.ActShareOrg),
		Explain:  may(snap.ActExplain),
		Describe: may(snap.ActDescribe),
	}
}

func wireGroupShare(g snap.GroupShare) api.GroupShare {
	out := api.GroupShare{GroupID: g.Group.GroupID, Name: g.Group.Name, ExpiresAt: optional(g.Expires), SharedBy: g.By,
		SharedAt: g.Created}
	if g.Channel != 0 {
		out.Channel = strconv.FormatInt(g.Channel, 10)
	}
	return out
}

func wireOrgShare(o snap.OrgShare) api.OrgShare {
	return api.OrgShare{OrgSlug: o.Org.Slug, Name: o.Org.Name, ExpiresAt: optional(o.Expires), SharedBy: o.By,
		SharedAt: o.Created, WithSchema: o.WithSchema, DeclinedAt: optional(o.Declined)}
}

func wireShareChange(m snap.ShareChange) api.ShareChange {
	out := api.ShareChange{Kind: "org_wide", ExpiresAt: optional(m.Expires), PreviousExpiresAt: replacedExpiry(m),
		Changed: m.Changed}
	switch {
	case m.Group != nil:
		out.Kind, out.GroupID, out.GroupName = "group", m.Group.GroupID, m.Group.Name
	case m.Org != nil:
		out.Kind, out.OrgSlug = "organization", m.Org.Slug
	}
	return out
}

// replacedExpiry returns the previous expiry of a share if the change replaced it, otherwise nil.
func replacedExpiry(m snap.ShareChange) *time.Time {
	if m.Previous == nil || m.Previous.Expires.Equal(m.Expires) {
		return nil
	}
	return optional(m.Previous.Expires)
}

// optional returns nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// each maps a list. It never returns nil, so an empty list is [] in JSON.
func each[A, B any](list []A, f func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}
