package cloud

import (
	"context"
	"errors"
	"time"

	"snap"
	"snap/api"
)

// byID is the input of a route on one snapshot.
type byID struct {
	ID string `path:"id" maxLength:"64" doc:"public ID of the snapshot"`
}

// body is an output that has one.
type body[T any] struct {
	Body T
}

// empty is an output without a body: status 204.
type empty struct{}

type shareGroupInput struct {
	byID
	Body api.ShareGroupRequest
}

type groupInput struct {
	byID
	Group string `path:"groupId" maxLength:"512" doc:"ID of the SSO group"`
}

type shareOrgInput struct {
	byID
	Body api.ShareOrgRequest
}

type orgInput struct {
	byID
	Slug string `path:"slug" maxLength:"63" doc:"slug of the recipient organization"`
}

// share is SPEC 3: from Private to Shared.
func (s *Service) share(ctx context.Context, _ *byID) (*body[api.Snapshot], error) {
	c := callOf(ctx)
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	if err := policy.CheckType(c.snapshot.Type); err != nil {
		return nil, s.refused(ctx, c, snap.ActShare, err)
	}
	if err := s.store.Share(ctx, c.caller, c.snapshot); err != nil {
		return nil, err
	}
	c.snapshot.Shared = true
	return &body[api.Snapshot]{wireSnapshot(c.snapshot)}, nil
}

// unshare is SPEC 3: from Shared to Private, effective immediately.
func (s *Service) unshare(ctx context.Context, _ *byID) (*empty, error) {
	c := callOf(ctx)
	return &empty{}, s.store.Unshare(ctx, c.caller, c.snapshot)
}

func (s *Service) shareGroup(ctx context.Context, in *shareGroupInput) (*body[api.GroupShare], error) {
	c := callOf(ctx)
	share, err := s.store.ShareGroup(ctx, c.caller, c.snapshot, in.Body.GroupID)
	if err != nil {
		return nil, err
	}
	return &body[api.GroupShare]{wireGroupShare(share)}, nil
}

func (s *Service) unshareGroup(ctx context.Context, in *groupInput) (*empty, error) {
	c := callOf(ctx)
	return &empty{}, s.store.UnshareGroup(ctx, c.caller, c.snapshot, in.Group)
}

func (s *Service) groupShares(ctx context.Context, _ *byID) (*body[api.GroupShareList], error) {
	c := callOf(ctx)
	shares, err := s.store.GroupShares(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	return &body[api.GroupShareList]{api.GroupShareList{Items: each(shares, wireGroupShare)}}, nil
}

// shareOrg creates the share with an organization, or changes its expiry
// (SPEC 2.3): without expires_at it never ends.
func (s *Service) shareOrg(ctx context.Context, in *shareOrgInput) (*body[api.OrgShare], error) {
	c := callOf(ctx)
	var expires time.Time
	if in.Body.ExpiresAt != nil {
		expires = in.Body.ExpiresAt.UTC()
		if !s.now().Before(expires) {
			return nil, &snap.Error{
				Code:   snap.CodeInvalid,
				Detail: "expires_at is not in the future",
				Hint:   "leave it out for a share that never expires",
				Fields: []snap.FieldError{{Field: "expires_at", Detail: "is not in the future"}},
			}
		}
	}
	if in.Body.OrgSlug == c.caller.Org.Slug {
		return nil, snap.Invalid(in.Body.OrgSlug+" is your own organization", "share org-wide instead: `snapcli cloud snapshots share "+c.snapshot.ID+"`")
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(policy.CheckType(c.snapshot.Type), policy.CheckExpiry(expires, s.now())); err != nil {
		return nil, s.refused(ctx, c, snap.ActShareOrg, err)
	}
	share, previous, err := s.store.ShareOrg(ctx, c.caller, c.snapshot, in.Body.OrgSlug, expires)
	if err != nil {
		return nil, err
	}
	out := wireOrgShare(share)
	if previous != nil && !previous.Expires.Equal(share.Expires) {
		out.PreviousExpiresAt = optional(previous.Expires)
	}
	return &body[api.OrgShare]{out}, nil
}

func (s *Service) unshareOrg(ctx context.Context, in *orgInput) (*empty, error) {
	c := callOf(ctx)
	return &empty{}, s.store.UnshareOrg(ctx, c.caller, c.snapshot, in.Slug)
}

func (s *Service) orgShares(ctx context.Context, _ *byID) (*body[api.OrgShareList], error) {
	c := callOf(ctx)
	shares, err := s.store.OrgShares(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	declined, err := s.store.Declined(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	shares = append(shares, declined...)
	return &body[api.OrgShareList]{api.OrgShareList{Items: each(shares, wireOrgShare)}}, nil
}

// policy returns the policy of the caller's organization, of now.
func (s *Service) policy(ctx context.Context) (snap.Policy, error) {
	org, err := s.store.Org(ctx, callOf(ctx).caller.Org.ID)
	return org.Policy, err
}
