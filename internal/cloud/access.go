package cloud

import (
	"context"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type accessInput struct {
	ByID
	User string `query:"user" maxLength:"320" doc:"explain the access of this user of the organization, by e-mail"`
}

type newcomersInput struct {
	ByID
	Group string `query:"group_id" maxLength:"512" doc:"ID of an SSO group; absent means the org-wide share"`
}

// explain reports who can see a snapshot, and why.
func (s *Service) explain(ctx context.Context, in *accessInput) (*body[api.Access], error) {
	c := callOf(ctx)
	ways, people, err := s.store.Access(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	out := api.Access{Snapshot: c.snapshot.ID, Ways: each(ways, wireWay), Counts: map[string]int{}, People: people}
	keys, err := s.store.KeysThatSee(ctx, c.snapshot)
	if err != nil {
		return nil, err
	}
	out.Keys = each(keys, func(k store.Key) api.AccessKey {
		return api.AccessKey{Kind: k.Kind, Name: k.Name, Scopes: k.Scopes}
	})
	for _, way := range out.Ways {
		out.Counts[way.Kind]++
	}
	if in.User != "" {
		member, verdict, err := s.store.Judge(ctx, c.caller, c.snapshot, in.User)
		if err != nil {
			return nil, err
		}
		out.User = &api.AccessVerdict{Email: member.Email, Visible: verdict.Visible, Why: verdict.Why}
	}
	return &body[api.Access]{out}, nil
}

// why lists the grants through which the caller sees the snapshot. If another organization shared
// the snapshot, why does not name the person who did.
func (s *Service) why(ctx context.Context, _ *ByID) (*body[api.Why], error) {
	c := callOf(ctx)
	ways, err := s.store.Ways(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	out := api.Why{Ways: each(ways, wireWay)}
	for i := range out.Ways {
		if c.snapshot.Received {
			out.Ways[i].GrantedBy = ""
		}
	}
	return &body[api.Why]{out}, nil
}

// newcomers lists the users who cannot see the snapshot now but could after a share.
func (s *Service) newcomers(ctx context.Context, in *newcomersInput) (*body[api.Newcomers], error) {
	c := callOf(ctx)
	users, count, err := s.store.Newcomers(ctx, c.caller, c.snapshot, in.Group, 50)
	if err != nil {
		return nil, err
	}
	return &body[api.Newcomers]{api.Newcomers{Users: each(users, func(u snap.User) string { return u.Email }),
		Count: count}}, nil
}

func wireWay(a snap.Access) api.AccessWay {
	out := api.AccessWay{Through: a.String(), ExpiresAt: optional(a.Until), Since: a.Since, GrantedBy: a.By,
		People: a.People}
	switch a.Audience.Kind() {
	case snap.KindUser:
		out.Kind = "owner"
		if a.Owner != nil {
			out.Owner = a.Owner.Email
		}
	case snap.KindAdmins:
		out.Kind = "admins"
	case snap.KindKeys:
		out.Kind = "keys"
	case snap.KindMembers:
		out.Kind = "org_wide"
	case snap.KindGroup:
		out.Kind = "group"
		if a.Group != nil {
			out.GroupID = a.Group.GroupID
		}
	case snap.KindRecipients:
		out.Kind, out.Organization = "organization", a.Org.Slug
	}
	return out
}
