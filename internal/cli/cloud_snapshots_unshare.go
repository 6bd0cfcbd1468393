package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) unshareCommand() *cobra.Command {
	var f shareFlags
	cmd := &cobra.Command{
		Use:   "unshare SNAPSHOT-ID...",
		Short: "End a share",
		Long: `Unshare ends the org-wide share of a snapshot. --group ends the share with an
SSO group instead, and --org the share with another organization. Both can be
repeated and combined: either all of these shares end, or none if one is
refused. --all ends every share.

Unsharing takes effect immediately: people who could see the snapshot only
through that share no longer find it, and downloads in progress stop. Other
shares stay.`,
		Example: examples(
			"end the share with the whole organization", "snapcli cloud snapshots unshare snap_7h2k9m",
			"end the shares with two groups",
			"snapcli cloud snapshots unshare snap_7h2k9m --group Engineering --group dba",
			"end the share with another organization", "snapcli cloud snapshots unshare snap_7h2k9m --org globex",
			"end every share", "snapcli cloud snapshots unshare snap_7h2k9m --all"),
		Args:              command.SomeArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeShares(cmd.Context(), args, f, a.prepareUnshare)
		},
	}
	a.addShareFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.all, "all", false, "end every share")
	cmd.MarkFlagsMutuallyExclusive("all", "group")
	cmd.MarkFlagsMutuallyExclusive("all", "org")
	return cmd
}

func (a *app) prepareUnshare(_ context.Context, conn *connection, f shareFlags) (changer, error) {
	return func(ctx context.Context, s api.Snapshot, dry bool) ([]shareChange, error) {
		from, err := selectedShares(ctx, conn, s, f)
		if err != nil {
			return nil, err
		}
		end := conn.UnshareFrom
		if dry {
			end = conn.previewUnshare
		}
		ended, err := end(ctx, s.ID, from)
		if err != nil {
			return nil, err
		}
		if f.all && len(ended.Changes) == 0 {
			a.note("%s was not shared with anyone: nothing changed", s.Name)
		}
		var changes []shareChange
		for _, e := range ended.Changes {
			changes = append(changes, describeUnshare(s, e, f.all, dry))
		}
		return changes, nil
	}, nil
}

// selectedShares returns the shares of a snapshot that the flags select for removal.
func selectedShares(ctx context.Context, conn *connection, s api.Snapshot, f shareFlags) (api.UnshareRequest, error) {
	from := api.UnshareRequest{All: f.all, OrgWide: !f.all && len(f.groups)+len(f.orgs) == 0, OrgSlugs: f.orgs}
	if len(f.groups) == 0 {
		return from, nil
	}
	shares, err := conn.GroupShares(ctx, s.ID)
	if err != nil {
		return from, err
	}
	for _, typed := range f.groups {
		g, err := sharedGroup(ctx, conn, shares, typed)
		if err != nil {
			return from, err
		}
		from.GroupIDs = append(from.GroupIDs, g.GroupID)
	}
	return from, nil
}

// previewUnshare returns the changes that UnshareFrom would make. It fails for callers who are not
// allowed to make them.
func (c *connection) previewUnshare(ctx context.Context, id string, from api.UnshareRequest) (would api.ShareChanges,
	err error) {
	var orgs []api.OrgShare
	if len(from.OrgSlugs) > 0 {
		if orgs, err = c.OrgShares(ctx, id); err != nil {
			return would, err
		}
	}
	if _, err := c.Newcomers(ctx, id, ""); err != nil {
		return would, err
	}
	s, err := c.Snapshot(ctx, id)
	if err != nil {
		return would, err
	}
	if s.Outside && from.All {
		if orgs, err = c.OrgShares(ctx, id); err != nil {
			return would, err
		}
	}
	groups, err := c.GroupShares(ctx, id)
	if err != nil {
		return would, err
	}
	if from.All {
		from = everyShare(s, groups, orgs)
	}
	return plannedChanges(s, groups, orgs, from), nil
}

// everyShare names every live share.
func everyShare(s api.Snapshot, groups []api.GroupShare, orgs []api.OrgShare) api.UnshareRequest {
	from := api.UnshareRequest{OrgWide: s.Shared}
	for _, g := range groups {
		from.GroupIDs = append(from.GroupIDs, g.GroupID)
	}
	for _, o := range orgs {
		if o.DeclinedAt == nil {
			from.OrgSlugs = append(from.OrgSlugs, o.OrgSlug)
		}
	}
	return from
}

// plannedChanges returns the changes that the service would report.
func plannedChanges(s api.Snapshot, groups []api.GroupShare, orgs []api.OrgShare,
	from api.UnshareRequest) (would api.ShareChanges) {
	if from.OrgWide {
		would.Changes = append(would.Changes, api.ShareChange{Kind: "org_wide", Changed: s.Shared})
	}
	for _, id := range from.GroupIDs {
		change := api.ShareChange{Kind: "group", GroupID: id}
		for _, g := range groups {
			if g.GroupID == id {
				change.Changed, change.GroupName = true, g.Name
			}
		}
		would.Changes = append(would.Changes, change)
	}
	for _, slug := range from.OrgSlugs {
		live := slices.ContainsFunc(orgs, func(o api.OrgShare) bool { return o.OrgSlug == slug && o.DeclinedAt == nil })
		would.Changes = append(would.Changes, api.ShareChange{Kind: "organization", OrgSlug: slug, Changed: live})
	}
	return would
}

// describeUnshare describes a share that ended, or that would end if dry is set. The argument all
// is set if every other share ends as well.
func describeUnshare(s api.Snapshot, e api.ShareChange, all, dry bool) shareChange {
	c := shareChange{Changed: e.Changed}
	end, can, now := "is no longer shared", "can", " now"
	if dry && e.Changed {
		end, can, now = "would no longer be shared", "could", ""
	}
	with, then := "org-wide", fmt.Sprintf("%s %s see it%s", remainingViewers(s), can, now)
	c.Share, c.With = "org-wide", s.Organization
	switch e.Kind {
	case "group":
		with = "with the group " + nameWithID(e.GroupName, e.GroupID)
		then = "its members " + can + " no longer see it, unless another share or their role gives them access"
		c.Share, c.With = "group", e.GroupID
	case "organization":
		with, then = "with the organization "+e.OrgSlug, "nobody there "+can+" see it"+now
		c.Share, c.With = "organization", e.OrgSlug
	default:
		if all {
			s.Groups, s.Orgs = 0, 0
			then = fmt.Sprintf("%s %s see it%s", remainingViewers(s), can, now)
		}
		if !e.Changed {
			c.Text = fmt.Sprintf("%s was not shared org-wide: %s", s.Name, then)
			return c
		}
	}
	if !e.Changed {
		c.Text = fmt.Sprintf("%s was not shared %s: nothing changed", s.Name, with)
		return c
	}
	c.Text = fmt.Sprintf("%s %s %s: %s", s.Name, end, with, then)
	return c
}

// remainingViewers describes who can see a snapshot without its org-wide share. Callers who are not
// allowed to manage shares with other organizations do not receive the number of these shares. For
// them, remainingViewers covers only the snapshot's organization.
func remainingViewers(s api.Snapshot) string {
	where, admins := "in "+s.Organization+" only ", "the owners and admins"
	if s.Orgs > 0 {
		where, admins = "only ", admins+" of "+s.Organization
	}
	who := []string{"its owner", admins}
	if s.Owner == "" {
		who = who[1:]
	}
	if s.Groups > 0 {
		who = append(who, "the members of "+snap.Plural(s.Groups, "group", "groups"))
	}
	if s.Orgs > 0 {
		who = append(who, snap.Plural(s.Orgs, "other organization", "other organizations"))
	}
	if len(who) == 1 {
		return where + who[0]
	}
	return where + strings.Join(who[:len(who)-1], ", ") + " and " + who[len(who)-1]
}

// sharedGroup finds a group by ID or name, first among those the snapshot is shared with and then
// among all groups, because ending a share that does not exist is not an error.
func sharedGroup(ctx context.Context, conn *connection, shares []api.GroupShare, typed string) (api.Group, error) {
	var candidates []api.Group
	for _, share := range shares {
		candidates = append(candidates, api.Group{GroupID: share.GroupID, Name: share.Name})
	}
	g, err := chooseGroup(candidates, typed)
	if snap.CodeOf(err) != snap.CodeGroupNotFound {
		return g, err
	}
	found, err := findGroups(ctx, conn.Client, []string{typed})
	if err != nil {
		return g, err
	}
	return found[0], nil
}
