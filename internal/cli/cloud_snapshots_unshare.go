package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
)

func (a *app) unshareCommand() *cobra.Command {
	var f shareFlags
	cmd := &cobra.Command{
		Use:   "unshare SNAPSHOT-ID...",
		Short: "End a share",
		Long: `Unshare ends the org-wide share of a snapshot; with --group that with an SSO
group, with --org that with another organization. It acts at once: whoever could
see the snapshot only by that share no longer finds it, and downloads that have
begun stop. Other shares stay.`,
		Example: examples(
			"make it private again", "snapcli cloud snapshots unshare snap_7h2k9m",
			"end the share with a group", "snapcli cloud snapshots unshare snap_7h2k9m --group Engineering",
			"end the share with another organization", "snapcli cloud snapshots unshare snap_7h2k9m --org globex"),
		Args:              someArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeShares(cmd.Context(), args, f, a.unsharer)
		},
	}
	a.shareWith(cmd, &f)
	return cmd
}

// unsharer prepares the change that unshare makes.
func (a *app) unsharer(_ context.Context, conn *connection, f shareFlags) (changer, error) {
	return func(ctx context.Context, s api.Snapshot, dry bool) (shareChange, error) {
		switch {
		case f.group != "":
			return a.unshareGroup(ctx, conn, s, f.group, dry)
		case f.org != "":
			return a.unshareOrg(ctx, conn, s, f.org, dry)
		}
		return a.unshareOrgWide(ctx, conn, s, dry)
	}, nil
}

func (a *app) unshareOrgWide(ctx context.Context, conn *connection, s api.Snapshot, dry bool) (shareChange, error) {
	c := shareChange{Share: "org-wide", With: s.Organization, Changed: s.Shared}
	if err := unlessDry(ctx, conn, s.ID, dry, func() error { return conn.Unshare(ctx, s.ID) }); err != nil {
		return c, err
	}
	what := verb(dry, "is no longer shared org-wide", "would no longer be shared org-wide")
	if !c.Changed {
		what = "was not shared org-wide"
	}
	c.Says = fmt.Sprintf("%s %s: %s can see it%s", s.Name, what, stillSee(s), now(dry))
	return c, nil
}

// unlessDry ends a share; a dry run only asks for what those are told who may.
func unlessDry(ctx context.Context, conn *connection, id string, dry bool, end func() error) error {
	if !dry {
		return end()
	}
	_, err := conn.Newcomers(ctx, id, "")
	return err
}

// stillSee says who sees a snapshot without its org-wide share. Who may not
// change shares with other organizations is not told of them, so that without
// one it speaks of the snapshot's own organization alone.
func stillSee(s api.Snapshot) string {
	where, admins := "in "+s.Organization+" only ", "the owners and admins"
	if s.Orgs > 0 {
		where, admins = "only ", admins+" of "+s.Organization
	}
	who := []string{"its owner", admins}
	if s.Owner == "" {
		who = who[1:]
	}
	if s.Groups > 0 {
		who = append(who, "the members of "+plural(s.Groups, "group", "groups"))
	}
	if s.Orgs > 0 {
		who = append(who, plural(s.Orgs, "other organization", "other organizations"))
	}
	if len(who) == 1 {
		return where + who[0]
	}
	return where + strings.Join(who[:len(who)-1], ", ") + " and " + who[len(who)-1]
}

func (a *app) unshareGroup(ctx context.Context, conn *connection, s api.Snapshot, typed string, dry bool) (shareChange, error) {
	c := shareChange{Share: "group"}
	shares, err := conn.GroupShares(ctx, s.ID)
	if err != nil {
		return c, err
	}
	g, shared, err := a.sharedGroup(ctx, conn, shares, typed)
	if err != nil {
		return c, err
	}
	c.With, c.Changed = g.GroupID, shared
	if err := unlessDry(ctx, conn, s.ID, dry, func() error { return conn.UnshareGroup(ctx, s.ID, g.GroupID) }); err != nil {
		return c, err
	}
	if !shared {
		c.Says = fmt.Sprintf("%s was not shared with the group %s: nothing changed", s.Name, groupName(g))
		return c, nil
	}
	c.Says = fmt.Sprintf("%s %s with the group %s: its members no longer see it unless they may for another reason", s.Name,
		verb(dry, "is no longer shared", "would no longer be shared"), groupName(g))
	return c, nil
}

// sharedGroup finds the group that a person typed among those the snapshot is
// shared with, and else among all, since unsharing what is not shared is fine.
func (a *app) sharedGroup(ctx context.Context, conn *connection, shares []api.GroupShare, typed string) (g api.Group, shared bool, err error) {
	var among []api.Group
	for _, share := range shares {
		among = append(among, api.Group{GroupID: share.GroupID, Name: share.Name})
	}
	g, err = chooseGroup(among, typed)
	if snap.CodeOf(err) != snap.CodeGroupNotFound {
		return g, true, err
	}
	g, err = findGroup(ctx, conn.Client, typed)
	return g, false, err
}

func (a *app) unshareOrg(ctx context.Context, conn *connection, s api.Snapshot, slug string, dry bool) (shareChange, error) {
	c := shareChange{Share: "organization", With: slug}
	_, shared, err := orgShare(ctx, conn, s.ID, slug)
	if dry && err != nil {
		return c, err
	}
	c.Changed = shared
	if !dry {
		if err := conn.UnshareOrg(ctx, s.ID, slug); err != nil {
			return c, err
		}
	}
	if !shared {
		c.Says = fmt.Sprintf("%s was not shared with the organization %s: nothing changed", s.Name, slug)
		return c, nil
	}
	c.Says = fmt.Sprintf("%s %s with the organization %s: nobody there can see it%s", s.Name,
		verb(dry, "is no longer shared", "would no longer be shared"), slug, now(dry))
	return c, nil
}
