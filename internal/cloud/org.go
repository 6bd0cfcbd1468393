package cloud

import (
	"cmp"
	"context"
	"time"

	"snap"
	"snap/api"
	"snap/internal/store"
)

func (s *Service) listGroups(ctx context.Context, _ *noInput) (*body[api.GroupList], error) {
	groups, err := s.store.Groups(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.GroupList]{api.GroupList{Items: each(groups, func(g store.GroupCount) api.Group {
		return api.Group{GroupID: g.GroupID, Name: g.Name, Members: g.Members}
	})}}, nil
}

func (s *Service) listMembers(ctx context.Context, _ *noInput) (*body[api.MemberList], error) {
	members, err := s.store.Members(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.MemberList]{api.MemberList{Items: each(members, func(m snap.Member) api.Member {
		return api.Member{Email: m.Email, Name: m.Name, Role: m.Role,
			Groups:   each(m.Groups, func(g snap.Group) string { return g.Name }),
			GroupIDs: each(m.Groups, func(g snap.Group) string { return g.GroupID })}
	})}}, nil
}

func (s *Service) me(ctx context.Context, _ *noInput) (*body[api.Me], error) {
	c := callOf(ctx).caller
	groups, err := s.store.GroupsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.sequence(ctx, c.Org.ID); err != nil {
		return nil, err
	}
	notices, err := s.store.Notices(ctx, c)
	if err != nil {
		return nil, err
	}
	out := api.Me{
		Organization:     c.Org.Slug,
		OrganizationName: c.Org.Name,
		Role:             c.Role,
		GroupsUnknown:    c.GroupsUnknown,
		GroupsWhy:        c.GroupsWhy,
		GroupsAsOf:       optional(c.GroupsAsOf),
		Groups: each(groups, func(g snap.Group) api.MyGroup {
			return api.MyGroup{GroupID: g.GroupID, Name: g.Name}
		}),
		Credential: api.MeCredential{Kind: c.Credential.Kind, Name: c.Credential.Name, Scopes: c.Credential.Scopes},
		Policy:     wirePolicy(policy),
		Notices:    each(notices, wireNotice),
	}
	if c.User != nil {
		out.Email, out.Name = c.User.Email, c.User.Name
		due, confirmed, err := s.signin.SignInDue(ctx, c.User.ID)
		if err != nil {
			return nil, err
		}
		out.SignInDue, out.Confirmed = optional(due), optional(confirmed)
		if out.IdleKeys, out.OrgIdleKeys, err = s.store.IdleKeys(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := s.addUsage(ctx, c, &out); err != nil {
		return nil, err
	}
	if c.IsAdmin() {
		if log, size, err := s.lastCheckpoint(ctx, c.Org); err == nil && size > 0 {
			out.Audit = &log
		} else if err != nil && snap.CodeOf(err) != snap.CodeConflict {
			// A conflict is reported when the log is verified.
			return nil, err
		}
	}
	return &body[api.Me]{out}, nil
}

// authConfig returns the address at which to sign in (SPEC 4.3).
func (s *Service) authConfig(context.Context, *noInput) (*body[api.AuthConfig], error) {
	return &body[api.AuthConfig]{s.web.authSettings}, nil
}

func wirePolicy(p snap.Policy) api.Policy {
	return api.Policy{
		ShareTypes:        each(p.ShareTypes, func(t snap.Type) snap.Type { return t }),
		UnsanitizedShares: cmp.Or(p.Unsanitized, snap.UnsanitizedAllow),
		MaxCrossOrgExpiry: int64(p.MaxCrossOrgExpiry / time.Second), MaxKeyAge: int64(p.MaxKeyAge / time.Second),
		ShareRequires: p.Requires,
	}
}

// wireNotice phrases an audit line for the user it concerns. It names no organization that a
// snapshot is shared with, because only owners and admins may know them.
func wireNotice(e snap.AuditEntry) api.Notice {
	out := api.Notice{At: e.At, Action: e.Action, Snapshot: e.Snapshot, Target: e.Detail.Target, Actor: e.Actor}
	switch e.Action {
	case snap.AuditTokenReused:
		out.Actor = ""
		out.Text = "a copy of your login was used on another device, so the session " + e.Detail.Name +
			" was ended; if that was not you, end the sessions that you do not recognize with `snapcli cloud sessions`"
	case snap.AuditAccessRequested:
		out.Text = e.Actor + " requests access to your snapshot of " + e.Detail.Target
	case snap.AuditShareExpires:
		with := "your organization"
		if e.Detail.Group != "" {
			with = "the group " + e.Detail.Group
		}
		out.Text = "the share of your snapshot of " + e.Detail.Target + " with " + with + " expires soon"
	default:
		out.Text = e.Actor + " shared your snapshot of " + e.Detail.Target + " outside the organization"
	}
	return out
}
