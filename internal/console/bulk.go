package console

import (
	"cmp"
	"context"
	"strings"

	"snap"
	"snap/api"
	"snap/internal/look"
)

// changeMany shares, unshares or deletes the chosen snapshots.
func (s *Server) changeMany(v *visit) (string, error) {
	ctx, r := v.r.Context(), api.BulkRequest{IDs: v.r.PostForm["id"]}
	if len(r.IDs) == 0 {
		return "", snap.Invalid("no snapshot is chosen", "select the snapshots to change")
	}
	announce := func(changed []api.BulkResult) string { return v.sharedText(ctx, r, changed) }
	switch v.field("do") {
	case "everyone":
		r.Share = &api.SharesRequest{OrgWide: true}
	case "group":
		id, err := v.groupID(ctx, strings.TrimSpace(v.field("group")))
		if err != nil {
			return "", err
		}
		r.Share = &api.SharesRequest{GroupIDs: []string{id}}
	case "undo":
		r.Unshare = &api.UnshareRequest{OrgWide: !v.r.PostForm.Has("group"), GroupIDs: v.r.PostForm["group"]}
		announce = v.unsharedText
	case "unshare":
		if v.field("confirmed") == "" {
			return "", &snap.Error{Code: snap.CodeConfirm, Detail: "the end of the shares must be confirmed"}
		}
		r.Unshare, announce = &api.UnshareRequest{All: true}, v.unsharedText
	case "delete":
		if v.field("confirmed") == "" {
			return "", &snap.Error{Code: snap.CodeConfirm, Detail: "a deletion must be confirmed"}
		}
		r.Delete, announce = true, func([]api.BulkResult) string { return "deleted." }
	default:
		return "", snap.Invalid("the form does not say what to do", "reload the page")
	}
	var err error
	chosen, done := len(r.IDs), api.BulkResults{}
	if r.Share != nil {
		if r.IDs, err = v.notShared(ctx, r.IDs, *r.Share); err != nil {
			return "", err
		}
	}
	if len(r.IDs) > 0 {
		if done, err = v.api.Bulk(ctx, r, false); err != nil {
			return "", err
		}
	}
	f := bulkFlash(done, announce)
	if shared := chosen - len(r.IDs); shared > 0 {
		f.Text += " " + look.Plural(shared, "snapshot was", "snapshots were") + " already shared."
	}
	if r.Share != nil {
		f.Undo = undoFields(*r.Share, done)
	}
	v.announce(f)
	return announced, nil
}

// notShared returns the snapshots that are not shared with the recipient, so that sharing several
// snapshots never changes the end of an existing share. It includes snapshots that the caller is
// not allowed to see or share; for these, the change itself returns the error.
func (v *visit) notShared(ctx context.Context, ids []string, with api.SharesRequest) (rest []string, err error) {
	for _, id := range ids {
		share, err := look.LiveShare(ctx, v.api, id, with)
		switch code := snap.CodeOf(err); {
		case err != nil && code != snap.CodeNotFound && code != snap.CodeForbidden:
			return nil, err
		case share == nil:
			rest = append(rest, id)
		}
	}
	return rest, nil
}

// undoFields returns the fields of the form that ends the shares that were made, or nil if there
// are none.
func undoFields(with api.SharesRequest, done api.BulkResults) (fields []look.Hidden) {
	for _, one := range done.Items {
		if len(one.Changes) > 0 && one.Changes[0].Changed {
			fields = append(fields, look.Fields("id", one.ID)...)
		}
	}
	if fields == nil {
		return nil
	}
	for _, group := range with.GroupIDs {
		fields = append(fields, look.Fields("group", group)...)
	}
	return append(fields, look.Fields("do", "undo")...)
}

// bulkFlash announces how many snapshots were changed. It warns that original data can now be seen,
// or else gives the first reason why the other snapshots were not changed.
func bulkFlash(done api.BulkResults, announce func(changed []api.BulkResult) string) (f flash) {
	var changed []api.BulkResult
	reason := ""
	for _, one := range done.Items {
		if one.Error != nil {
			reason = cmp.Or(reason, one.Error.Detail)
			continue
		}
		changed = append(changed, one)
		f.Warning = cmp.Or(f.Warning, one.Warning)
	}
	f.Warning = cmp.Or(f.Warning, reason)
	f.Text = look.Plural(len(changed), "snapshot", "snapshots") + " " + announce(changed)
	if others := len(done.Items) - len(changed); others > 0 {
		f.Text += " " + look.Plural(others, "other was", "others were") + " not."
	}
	return f
}

// sharedText describes a share of several snapshots: its audience and the number of people in it.
// The number is the same for every snapshot, so sharedText requests it only for the first one.
func (v *visit) sharedText(ctx context.Context, r api.BulkRequest, changed []api.BulkResult) string {
	if len(changed) == 0 {
		return "shared."
	}
	people, err := v.peopleOf(ctx, *r.Share, changed[0].ID)
	text := "shared with " + v.audience(*r.Share)
	if err != nil || people == 0 {
		return text + "." // without the number of people
	}
	return text + ", " + look.People(people) + "."
}

// peopleOf returns the number of people in the audience of a share.
func (v *visit) peopleOf(ctx context.Context, with api.SharesRequest, snapshot string) (int, error) {
	if with.OrgWide {
		access, err := v.api.Access(ctx, snapshot, "")
		return access.People, err
	}
	groups, err := v.api.Groups(ctx)
	for _, g := range groups {
		if g.GroupID == with.GroupIDs[0] {
			return g.Members, nil
		}
	}
	return 0, err
}

// ending are the shares of one snapshot that are about to end.
type ending struct {
	Name string   // of the snapshot
	With []string // the recipients
}

// sharesToEnd returns the shares of the chosen snapshots. It omits snapshots without shares, and
// those whose shares the caller may not all end.
func (v *visit) sharesToEnd(ctx context.Context, ids []string) (all []ending, err error) {
	for _, id := range ids {
		sn, err := v.api.Snapshot(ctx, id)
		if snap.CodeOf(err) == snap.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !sn.Can.Share || sn.Outside && !sn.Can.ShareOrg {
			continue
		}
		with, err := v.recipients(ctx, sn)
		if err != nil {
			return nil, err
		}
		if len(with) > 0 {
			all = append(all, ending{sn.Name, with})
		}
	}
	return all, nil
}

// recipients returns with whom a snapshot is shared.
func (v *visit) recipients(ctx context.Context, sn api.Snapshot) (all []string, err error) {
	if sn.Shared {
		all = append(all, v.audience(api.SharesRequest{OrgWide: true}))
	}
	groups, err := v.api.GroupShares(ctx, sn.ID)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		all = append(all, "the group "+g.Name)
	}
	if !sn.Outside {
		return all, nil
	}
	orgs, err := v.api.OrgShares(ctx, sn.ID)
	for _, o := range orgs {
		if o.DeclinedAt == nil {
			all = append(all, o.OrgSlug)
		}
	}
	return all, err
}

// unsharedText describes how many audiences lost their shares.
func (v *visit) unsharedText(changed []api.BulkResult) string {
	wide, groups, orgs := false, map[string]bool{}, map[string]bool{}
	for _, one := range changed {
		for _, change := range one.Changes {
			switch {
			case !change.Changed:
			case change.GroupID != "":
				groups[change.GroupID] = true
			case change.OrgSlug != "":
				orgs[change.OrgSlug] = true
			default:
				wide = true
			}
		}
	}
	var ended []string
	if wide {
		ended = append(ended, v.audience(api.SharesRequest{OrgWide: true}))
	}
	if len(groups) > 0 {
		ended = append(ended, look.Plural(len(groups), "group", "groups"))
	}
	if len(orgs) > 0 {
		ended = append(ended, look.Plural(len(orgs), "organization", "organizations"))
	}
	if len(ended) == 0 {
		return "unshared."
	}
	last := len(ended) - 1
	text := ended[last]
	if last > 0 {
		text = strings.Join(ended[:last], ", ") + " and " + text
	}
	return "unshared. Shares with " + text + " ended."
}
