package cloud

import (
	"context"

	"snap"
	"snap/api"
	"snap/internal/store"
)

type noInput struct{}

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
		return api.Member{Email: m.Email, Name: m.Name, Role: m.Role, Groups: each(m.Groups, func(g snap.Group) string { return g.Name })}
	})}}, nil
}

func (s *Service) me(ctx context.Context, _ *noInput) (*body[api.Me], error) {
	c := callOf(ctx).caller
	groups, err := s.store.GroupsOf(ctx, c)
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
	}
	if c.User != nil {
		out.Email, out.Name = c.User.Email, c.User.Name
	}
	return &body[api.Me]{out}, nil
}

// authConfig is SPEC 4.3.
func (s *Service) authConfig(context.Context, *noInput) (*body[api.AuthConfig], error) {
	return &body[api.AuthConfig]{s.authSettings}, nil
}
