package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"snap"
	"snap/api"
)

// Confirmation is the parameter that confirms a share of unsanitized data.
type Confirmation struct {
	Confirmed bool `query:"confirm_unsanitized" doc:"confirms that unmasked data is shared"`
}

type shareInput struct {
	ByID
	Confirmation
}

type sharesInput struct {
	ByID
	Confirmation
	Body api.SharesRequest
}

type unshareInput struct {
	ByID
	Body api.UnshareRequest
}

type shareGroupInput struct {
	ByID
	Confirmation
	Body api.ShareGroupRequest
}

type groupInput struct {
	ByID
	Group string `path:"groupId" maxLength:"512" doc:"ID of the SSO group" example:"eng"`
}

type shareOrgInput struct {
	ByID
	Confirmation
	Body api.ShareOrgRequest
}

type orgInput struct {
	ByID
	Slug string `path:"slug" maxLength:"63" doc:"slug of the recipient organization" example:"globex"`
}

// shareWith makes shares. All routes that share call it. It checks the input and the policy, and
// returns the warning about data that is not sanitized.
func (s *Service) shareWith(ctx context.Context, with snap.Shares, confirmed bool) (changes []snap.ShareChange,
	warning string, err error) {
	c := callOf(ctx)
	if slices.Contains(with.Orgs, c.caller.Org.Slug) {
		return nil, "", snap.Invalid(c.caller.Org.Slug+" is your own organization",
			"share org-wide instead: `snapcli cloud snapshots share "+c.snapshot.ID+"`")
	}
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, "", err
	}
	if err := policy.CheckShares(c.snapshot.Type, with, confirmed, s.now()); err != nil {
		return nil, "", s.recordRefusal(ctx, c, snap.ActShare, err)
	}
	if err := s.checkCertificate(ctx, c, policy); err != nil {
		return nil, "", err
	}
	changes, newcomers, err := s.store.ShareWith(ctx, c.caller, c.snapshot, with)
	return changes, unsanitizedWarning(c.snapshot.Type, changes, newcomers), err
}

// checkCertificate refuses a share if the policy requires a certificate and the snapshot has no
// valid one.
func (s *Service) checkCertificate(ctx context.Context, c *call, policy snap.Policy) error {
	if policy.Requires != snap.RequireCertificate {
		return nil
	}
	found, err := s.store.Certificate(ctx, c.caller, c.snapshot)
	if err != nil {
		return err
	}
	if err := policy.CheckCertificate(found); err != nil {
		return s.recordRefusal(ctx, c, snap.ActShare, err)
	}
	return nil
}

// unsanitizedWarning says who can now see original data. It is empty if the snapshot is sanitized
// or the share adds nobody.
func unsanitizedWarning(t snap.Type, changes []snap.ShareChange, newcomers int) string {
	var who []string
	if newcomers == 1 {
		who = append(who, "1 more person in your organization")
	} else if newcomers > 1 {
		who = append(who, fmt.Sprintf("%d more people in your organization", newcomers))
	}
	for _, m := range changes {
		if m.Org != nil && m.Previous == nil {
			who = append(who, "everyone in "+m.Org.Slug)
		}
	}
	if t == snap.TypeSanitized || len(who) == 0 {
		return ""
	}
	return "this snapshot is not sanitized: " + strings.Join(who, " and ") + " can now see the original, unmasked data"
}

// share makes the org-wide share (SPEC 3, from Private to Shared).
func (s *Service) share(ctx context.Context, in *shareInput) (*body[api.Snapshot], error) {
	_, warning, err := s.shareWith(ctx, snap.Shares{OrgWide: true}, in.Confirmed)
	if err != nil {
		return nil, err
	}
	shared := callOf(ctx).snapshot
	shared.Shared, shared.Expires = true, time.Time{}
	out := wireSnapshot(shared)
	out.Warning = warning
	return &body[api.Snapshot]{out}, nil
}

// unshare ends the org-wide share, effective immediately (SPEC 3, from Shared to Private).
func (s *Service) unshare(ctx context.Context, _ *ByID) (*empty, error) {
	return s.unshareFrom(ctx, snap.Shares{OrgWide: true})
}

func (s *Service) unshareFrom(ctx context.Context, from snap.Shares) (*empty, error) {
	c := callOf(ctx)
	_, err := s.store.UnshareFrom(ctx, c.caller, c.snapshot, from)
	return &empty{}, err
}

func (s *Service) shareGroup(ctx context.Context, in *shareGroupInput) (*body[api.GroupShare], error) {
	expires, err := s.expiry(in.Body.ExpiresAt, in.Body.ExpiresIn)
	if err != nil {
		return nil, err
	}
	with := snap.Shares{Groups: []string{in.Body.GroupID}, Expires: expires}
	changes, warning, err := s.shareWith(ctx, with, in.Confirmed)
	if err != nil {
		return nil, err
	}
	m := changes[0]
	out := wireGroupShare(snap.GroupShare{Group: *m.Group, Expires: m.Expires, Created: m.Created, By: m.By})
	out.Warning = warning
	return &body[api.GroupShare]{out}, nil
}

func (s *Service) unshareGroup(ctx context.Context, in *groupInput) (*empty, error) {
	return s.unshareFrom(ctx, snap.Shares{Groups: []string{in.Group}})
}

func (s *Service) groupShares(ctx context.Context, _ *ByID) (*body[api.GroupShareList], error) {
	c := callOf(ctx)
	shares, err := s.store.GroupShares(ctx, c.caller, c.snapshot)
	if err != nil {
		return nil, err
	}
	return &body[api.GroupShareList]{api.GroupShareList{Items: each(shares, wireGroupShare)}}, nil
}

// shareOrg creates the share with an organization, or changes its expiry (SPEC 2.3). A share
// without an expiry never ends.
func (s *Service) shareOrg(ctx context.Context, in *shareOrgInput) (*body[api.OrgShare], error) {
	expires, err := s.expiry(in.Body.ExpiresAt, in.Body.ExpiresIn)
	if err != nil {
		return nil, err
	}
	changes, warning, err := s.shareWith(ctx, snap.Shares{Orgs: []string{in.Body.OrgSlug}, Expires: expires,
		WithSchema: in.Body.WithSchema}, in.Confirmed)
	if err != nil {
		return nil, err
	}
	m := changes[0]
	out := wireOrgShare(snap.OrgShare{Org: *m.Org, Expires: m.Expires, Created: m.Created, By: m.By,
		WithSchema: m.WithSchema})
	out.PreviousExpiresAt, out.Warning = replacedExpiry(m), warning
	return &body[api.OrgShare]{out}, nil
}

func (s *Service) unshareOrg(ctx context.Context, in *orgInput) (*empty, error) {
	return s.unshareFrom(ctx, snap.Shares{Orgs: []string{in.Slug}})
}

// expiry returns the end of a share or key, which is given as a time or as seconds from now by the
// service's clock. The end is zero, which means never, if neither is given. expiry fails if both
// are given or the time is not in the future.
func (s *Service) expiry(at *time.Time, in int64) (time.Time, error) {
	now := s.now()
	switch {
	case at != nil && in != 0:
		return time.Time{}, wrongExpiry("expires_in", "cannot be combined with expires_at", "use one of the two")
	case in != 0:
		return now.Add(time.Duration(in) * time.Second).UTC().Truncate(time.Millisecond), nil
	case at == nil:
		return time.Time{}, nil
	case !now.Before(*at):
		return time.Time{}, wrongExpiry("expires_at", "is not in the future",
			"the service's clock says "+now.UTC().Format(time.RFC3339)+"; give a later time, or a duration as "+
				"expires_in")
	}
	return at.UTC(), nil
}

func wrongExpiry(field, detail, hint string) error {
	return &snap.Error{
		Code: snap.CodeInvalid, Detail: field + " " + detail, Hint: hint,
		Fields: []snap.FieldError{{Field: field, Detail: detail}},
	}
}

// shares makes several shares in one transaction: all of them or none.
func (s *Service) shares(ctx context.Context, in *sharesInput) (*body[api.ShareChanges], error) {
	r := in.Body
	expires, err := s.expiry(r.ExpiresAt, r.ExpiresIn)
	if err != nil {
		return nil, err
	}
	with := snap.Shares{OrgWide: r.OrgWide, Groups: r.GroupIDs, Orgs: r.OrgSlugs, Expires: expires,
		WithSchema: r.WithSchema}
	if err := s.checkRecipients(ctx, with); err != nil {
		return nil, err
	}
	changes, warning, err := s.shareWith(ctx, with, in.Confirmed)
	if err != nil {
		return nil, err
	}
	return &body[api.ShareChanges]{api.ShareChanges{Changes: each(changes, wireShareChange), Warning: warning}}, nil
}

// endShares ends several shares in one transaction: all of them or none.
func (s *Service) endShares(ctx context.Context, in *unshareInput) (*body[api.ShareChanges], error) {
	c, r := callOf(ctx), in.Body
	from := snap.Shares{OrgWide: r.OrgWide, Groups: r.GroupIDs, Orgs: r.OrgSlugs}
	var ended []snap.ShareChange
	var err error
	if r.All {
		if r.OrgWide || len(r.GroupIDs)+len(r.OrgSlugs) > 0 {
			return nil, snap.Invalid("the field all cannot be combined with org_wide, group_ids or org_slugs",
				"set all to end every share, or name the recipients")
		}
		ended, err = s.store.UnshareAll(ctx, c.caller, c.snapshot)
	} else if err = s.checkRecipients(ctx, from); err == nil {
		ended, err = s.store.UnshareFrom(ctx, c.caller, c.snapshot, from)
	}
	if err != nil {
		return nil, err
	}
	return &body[api.ShareChanges]{api.ShareChanges{Changes: each(ended, wireShareChange)}}, nil
}

// checkRecipients refuses a change that names no recipient. It also refuses a change of cross-org
// shares by a caller who is only allowed to change other shares.
func (s *Service) checkRecipients(ctx context.Context, with snap.Shares) error {
	c := callOf(ctx)
	if !with.OrgWide && len(with.Groups)+len(with.Orgs) == 0 {
		return snap.Invalid("no recipient is given", "set org_wide, group_ids or org_slugs")
	}
	if len(with.Orgs) == 0 {
		return nil
	}
	if err := snap.Allowed(c.caller, snap.ActShareOrg, c.snapshot); err != nil {
		return s.recordRefusal(ctx, c, snap.ActShareOrg, err)
	}
	return nil
}

func (s *Service) orgShares(ctx context.Context, _ *ByID) (*body[api.OrgShareList], error) {
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

// policy returns the current policy of the caller's organization.
func (s *Service) policy(ctx context.Context) (snap.Policy, error) {
	org, err := s.store.Org(ctx, callOf(ctx).caller.Org.ID)
	return org.Policy, err
}
