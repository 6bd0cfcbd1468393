package console

import (
	"context"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// changeShares makes, changes or ends the share that a form of the share box names.
func (s *Server) changeShares(v *visit) (string, error) {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	switch v.field("do") {
	case "share":
		return s.makeShare(ctx, v, id)
	case "end":
		with, err := v.recipient(ctx)
		if err != nil {
			return "", err
		}
		_, err = v.api.UnshareWith(ctx, id,
			api.UnshareRequest{OrgWide: with.OrgWide, GroupIDs: with.GroupIDs, OrgSlugs: with.OrgSlugs})
		return "unshared", err
	}
	return "", snap.Invalid("the form names no action", "reload the page")
}

// makeShare makes a share, or gives it another end.
func (s *Server) makeShare(ctx context.Context, v *visit, id string) (string, error) {
	with, err := v.recipient(ctx)
	if err != nil {
		return "", err
	}
	end, err := look.EndOf(v.field("ends"), v.field("date"))
	if snap.CodeOf(err) == snap.CodeUsage {
		return "", snap.Invalid("the end of the share is not valid", "choose one from the list")
	}
	if err != nil {
		return "", err
	}
	with.ExpiresAt, with.ExpiresIn = end.ExpiresAt, end.ExpiresIn
	if len(with.OrgSlugs) > 0 {
		schema := v.field("schema") != ""
		with.WithSchema = &schema
	}
	made, err := v.api.ShareWith(ctx, id, with, v.field("confirmed") != "")
	switch {
	case err != nil && len(with.OrgSlugs) > 0:
		return "", v.api.SuggestOrg(ctx, with.OrgSlugs[0], err)
	case err != nil:
		return "", err
	case made.Warning != "":
		return "warned", nil
	case len(made.Changes) == 1 && !made.Changes[0].Changed:
		return "unchanged", nil
	}
	return "shared", nil
}

// recipient returns whom the form names.
func (v *visit) recipient(ctx context.Context) (with api.SharesRequest, err error) {
	switch v.field("to") {
	case "everyone":
		with.OrgWide = true
	case "group":
		id, err := v.groupID(ctx, strings.TrimSpace(v.field("group")))
		with.GroupIDs = []string{id}
		return with, err
	case "organization":
		slug := strings.ToLower(strings.TrimSpace(v.field("organization")))
		if slug == "" {
			return with, snap.Invalid("enter the slug of the organization to share with",
				"somebody there finds it on the account page")
		}
		with.OrgSlugs = []string{slug}
	default:
		err = snap.Invalid("the form names nobody", "reload the page")
	}
	return with, err
}

// groupID returns the ID of the group that was typed by its ID or its name.
func (v *visit) groupID(ctx context.Context, typed string) (string, error) {
	if typed == "" {
		return "", snap.Invalid("enter the name of the group to share with", "")
	}
	groups, err := v.api.Groups(ctx)
	if err != nil {
		return "", err
	}
	named := typed
	for _, g := range groups {
		if g.GroupID == typed {
			return typed, nil
		}
		if strings.EqualFold(g.Name, typed) {
			named = g.GroupID
		}
	}
	return named, nil
}
