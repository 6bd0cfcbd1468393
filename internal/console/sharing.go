package console

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// changeSnapshot handles a form that concerns one snapshot: it makes, changes or ends a share,
// writes the description, asks for access, or answers a request for access. The form is on the
// snapshot's page, or on the page of requests, where it names the snapshot.
func (s *Server) changeSnapshot(v *visit) (string, error) {
	ctx, id := v.r.Context(), cmp.Or(v.r.PathValue("id"), v.field("snapshot"))
	switch v.field("do") {
	case "describe":
		_, err := v.api.Describe(ctx, id,
			api.DescribeRequest{Description: v.field("description"), Labels: labelsOf(v.field("labels"))})
		return "described", err
	case "request":
		return "requested", v.api.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: id, Reason: v.field("reason")})
	case "revoke":
		return v.endShare(ctx, id)
	case "":
		if v.field("shared") == "false" || v.field("revoke") != "" {
			return v.endShare(ctx, id)
		}
		return v.makeShare(ctx, id)
	}
	return v.answerRequest(ctx, id)
}

// labelsOf splits labels at commas.
func labelsOf(text string) []string {
	all := []string{}
	for label := range strings.SplitSeq(text, ",") {
		if label = strings.TrimSpace(label); label != "" {
			all = append(all, label)
		}
	}
	return all
}

// makeShare makes a share, or changes its end.
func (v *visit) makeShare(ctx context.Context, id string) (string, error) {
	with, err := v.recipient(ctx)
	if err != nil {
		return "", err
	}
	end, err := look.EndOf(v.field("expires"), v.field("date"))
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
	return v.share(ctx, id, with)
}

// share makes or changes the share and announces it, with the form that undoes it.
func (v *visit) share(ctx context.Context, id string, with api.SharesRequest) (string, error) {
	before, err := look.LiveShare(ctx, v.api, id, with)
	if err != nil {
		return "", err
	}
	people := v.newcomers(ctx, id, with)
	made, err := v.api.ShareWith(ctx, id, with, v.field("confirmed") != "")
	switch {
	case err != nil && len(with.OrgSlugs) > 0:
		return "", v.api.SuggestOrg(ctx, with.OrgSlugs[0], err)
	case err != nil:
		return "", err
	case len(made.Changes) == 1 && !made.Changes[0].Changed:
		return "unchanged", nil
	}
	f := flash{Text: look.Shared(v.audience(with), people), Warning: made.Warning}
	if f.Undo = endFields(with); before != nil {
		f.Text, f.Undo = look.EndChanged(v.audience(with)), before.Fields()
	}
	if made.Warning != "" { // the warning has the number of people too
		f.Text = look.Shared(v.audience(with), -1)
	}
	v.announce(f)
	return announced, nil
}

// endShare ends a share. Undo makes the share again, with exactly its former end.
func (v *visit) endShare(ctx context.Context, id string) (string, error) {
	with, err := v.recipient(ctx)
	if err != nil {
		return "", err
	}
	before, err := look.LiveShare(ctx, v.api, id, with)
	if err != nil {
		return "", err
	}
	if _, err := v.api.UnshareFrom(ctx, id,
		api.UnshareRequest{OrgWide: with.OrgWide, GroupIDs: with.GroupIDs, OrgSlugs: with.OrgSlugs}); err != nil {
		return "", err
	}
	v.announce(flash{Text: look.Unshared(v.audience(with), v.newcomers(ctx, id, with)), Undo: before.Fields()})
	return announced, nil
}

// endFields returns the fields of the form that ends a share.
func endFields(with api.SharesRequest) []look.Hidden {
	switch {
	case with.OrgWide:
		return look.Fields("shared", "false")
	case len(with.GroupIDs) > 0:
		return look.Fields("revoke", with.GroupIDs[0])
	}
	return look.Fields("do", "revoke", "slug", with.OrgSlugs[0])
}

// newcomers returns how many people a share within the organization would add, or -1 if that is not
// known. After a share has ended, these are the people who lost access.
func (v *visit) newcomers(ctx context.Context, id string, with api.SharesRequest) int {
	if len(with.OrgSlugs) > 0 {
		return -1
	}
	adds, err := v.api.Newcomers(ctx, id, strings.Join(with.GroupIDs, ""))
	if err != nil {
		return -1
	}
	return adds.Count
}

// audience names one recipient.
func (v *visit) audience(with api.SharesRequest) string {
	switch {
	case with.OrgWide:
		return "everyone in " + v.caller.Org.Name
	case len(with.GroupIDs) > 0:
		return "the group " + cmp.Or(v.groupName, with.GroupIDs[0])
	}
	return "everyone in " + with.OrgSlugs[0]
}

// recipient returns the recipient that the form names.
func (v *visit) recipient(ctx context.Context) (with api.SharesRequest, err error) {
	group := cmp.Or(v.field("grant"), v.field("revoke"))
	switch {
	case v.field("shared") != "":
		with.OrgWide = true
	case group != "":
		id, err := v.groupID(ctx, strings.TrimSpace(group))
		with.GroupIDs = []string{id}
		return with, err
	case v.r.PostForm.Has("slug"):
		slug := strings.ToLower(strings.TrimSpace(v.field("slug")))
		if slug == "" {
			return with, snap.Invalid("enter the slug of the organization to share with",
				"people in that organization find it on their account page")
		}
		with.OrgSlugs = []string{slug}
	default:
		err = snap.Invalid("the form has no recipient", "reload the page")
	}
	return with, err
}

// groupID returns the ID of the group whose ID or name was typed. An ID takes precedence over a
// name, and an exact name over a name that differs only in case. If there is no such group, groupID
// returns the typed text, which the API then refuses. It fails if several groups match.
func (v *visit) groupID(ctx context.Context, typed string) (string, error) {
	if typed == "" {
		return "", snap.Invalid("enter the name of the group to share with", "")
	}
	groups, err := v.api.Groups(ctx)
	if err != nil {
		return "", err
	}
	var exact, similar []api.Group
	for _, g := range groups {
		switch {
		case g.GroupID == typed:
			v.groupName = g.Name
			return typed, nil
		case g.Name == typed:
			exact = append(exact, g)
		case strings.EqualFold(g.Name, typed):
			similar = append(similar, g)
		}
	}
	if len(exact) == 0 {
		exact = similar
	}
	switch len(exact) {
	case 0:
		return typed, nil
	case 1:
		v.groupName = exact[0].Name
		return exact[0].GroupID, nil
	}
	return "", snap.Invalid(fmt.Sprintf("%d groups have the name %q", len(exact), typed),
		fmt.Sprintf("use the ID of the group, such as %s or %s", exact[0].GroupID, exact[1].GroupID))
}
