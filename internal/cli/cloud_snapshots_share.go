package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
)

// shareFlags choose with whom.
type shareFlags struct {
	group, org, expiresIn string
	dryRun                bool
}

func (a *app) shareCommand() *cobra.Command {
	var f shareFlags
	cmd := &cobra.Command{
		Use:   "share SNAPSHOT-ID...",
		Short: "Share with the organization, a group or another organization",
		Long: `Share lets more people see and pull a snapshot. Without a flag it is shared
org-wide: with every member of your organization. --group shares it with one
SSO group, --org with another organization, read-only, until --expires-in has
passed. Sharing changes nothing in the snapshot, and sharing twice changes
nothing at all, except that a share with an organization gets the new expiry.

Org-wide and group shares are for the snapshot's owner and for owners and admins
of the organization; shares with other organizations for owners and admins.`,
		Example: examples(
			"share with everyone in the organization", "snapcli cloud snapshots share snap_7h2k9m",
			"share with a group, by name or ID", "snapcli cloud snapshots share snap_7h2k9m --group Engineering",
			"share with another organization for a week", "snapcli cloud snapshots share snap_7h2k9m --org globex --expires-in 7d",
			"see what would happen", "snapcli cloud snapshots share snap_7h2k9m snap_p3v8xw --dry-run"),
		Args:              someArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeShares(cmd.Context(), args, f, a.sharer)
		},
	}
	a.shareWith(cmd, &f)
	cmd.Flags().StringVar(&f.expiresIn, "expires-in", "", "with --org: how long, such as 36h, 7d or 2w (default without end)")
	return cmd
}

// shareWith gives share and unshare the flags they have in common.
func (a *app) shareWith(cmd *cobra.Command, f *shareFlags) {
	cmd.Flags().StringVar(&f.group, "group", "", "an SSO group, by name or ID")
	cmd.Flags().StringVar(&f.org, "org", "", "another organization, by slug")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would change, and change nothing")
	cmd.MarkFlagsMutuallyExclusive("group", "org")
	_ = cmd.RegisterFlagCompletionFunc("group", a.completeGroups)
	_ = cmd.RegisterFlagCompletionFunc("org", a.completeOrgs)
	a.jsonFlag(cmd)
}

// shareChange is one change of who may see a snapshot, done or only planned:
// what share and unshare print as JSON, and in one line.
type shareChange struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Share     string     `json:"share" doc:"org-wide, group or organization"`
	With      string     `json:"with" doc:"slug of the organization, or ID of the group"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Changed   bool       `json:"changed" doc:"false when it was so already"`
	DryRun    bool       `json:"dry_run,omitempty"`
	Adds      []string   `json:"adds,omitempty" doc:"with --dry-run: who would see it and cannot now"`
	Says      string     `json:"says" doc:"what changed and who can see it now"`
	warning   string
}

// changer makes one change to one snapshot, or with dry only says it. A dry run
// asks the service what only those are told who may make the change, so that
// both are refused alike.
type changer func(ctx context.Context, s api.Snapshot, dry bool) (shareChange, error)

// changeShares finds every snapshot first, so that a mistyped ID changes
// nothing, and then makes the change to each. It goes on after a refusal.
func (a *app) changeShares(ctx context.Context, ids []string, f shareFlags, prepare func(context.Context, *connection, shareFlags) (changer, error)) error {
	if f.expiresIn != "" && f.org == "" {
		return snap.Usage("--expires-in is only for a share with another organization", "add --org SLUG")
	}
	_, conn, err := a.connect()
	if err != nil {
		return err
	}
	list, err := conn.resolve(ctx, ids)
	if err != nil {
		return err
	}
	change, err := prepare(ctx, conn, f)
	if err != nil {
		return err
	}
	return a.makeChanges(ctx, list, f.dryRun, change)
}

// resolve finds the snapshots of all IDs that a person typed, or none.
func (c *connection) resolve(ctx context.Context, typed []string) ([]api.Snapshot, error) {
	var list []api.Snapshot
	for _, id := range typed {
		s, err := c.Resolve(ctx, id)
		if err != nil {
			return nil, named(err, id, len(typed))
		}
		list = append(list, s)
	}
	return list, nil
}

// named adds which of several IDs an error is about.
func named(err error, id string, of int) error {
	if of < 2 {
		return err
	}
	return fmt.Errorf("%s: %w", id, err)
}

func (a *app) makeChanges(ctx context.Context, list []api.Snapshot, dry bool, change changer) error {
	var failed []error
	changes := []shareChange{}
	for _, s := range list {
		c, err := change(ctx, s, dry)
		c.ID, c.Name, c.DryRun = s.ID, s.Name, dry
		if err != nil {
			failed = append(failed, named(err, s.ID, len(list)))
			continue
		}
		changes = append(changes, c)
		if c.warning != "" {
			a.warn("%s", c.warning)
		}
		if !a.flags.json {
			a.done("", "%s", c.Says)
		}
	}
	if a.flags.json {
		if err := a.printJSON(changes); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// sharer prepares the change that share makes.
func (a *app) sharer(ctx context.Context, conn *connection, f shareFlags) (changer, error) {
	switch {
	case f.group != "":
		g, err := findGroup(ctx, conn.Client, f.group)
		return func(ctx context.Context, s api.Snapshot, dry bool) (shareChange, error) {
			return a.shareGroup(ctx, conn, s, g, dry)
		}, err
	case f.org != "":
		expires, err := a.expiry(f.expiresIn)
		return func(ctx context.Context, s api.Snapshot, dry bool) (shareChange, error) {
			return a.shareOrg(ctx, conn, s, f.org, expires, dry)
		}, err
	}
	return func(ctx context.Context, s api.Snapshot, dry bool) (shareChange, error) {
		return a.shareOrgWide(ctx, conn, s, dry)
	}, nil
}

// expiry turns --expires-in into a time; "" is nil, without end.
func (a *app) expiry(in string) (*time.Time, error) {
	if in == "" {
		return nil, nil
	}
	d, err := snap.ParseDuration(in)
	if err != nil {
		return nil, err
	}
	at := a.now().Add(d).UTC().Truncate(time.Second)
	return &at, nil
}

func (a *app) shareOrgWide(ctx context.Context, conn *connection, s api.Snapshot, dry bool) (shareChange, error) {
	c := shareChange{Share: "org-wide", With: s.Organization, Changed: !s.Shared}
	if dry {
		err := a.foretell(ctx, conn, s, "", &c)
		return c, err
	}
	if _, err := conn.Share(ctx, s.ID); err != nil {
		return c, err
	}
	c.Says = c.shared(s.Name, "org-wide", "every member of "+s.Organization)
	return c, nil
}

func (a *app) shareGroup(ctx context.Context, conn *connection, s api.Snapshot, g api.Group, dry bool) (shareChange, error) {
	c := shareChange{Share: "group", With: g.GroupID}
	shares, err := conn.GroupShares(ctx, s.ID)
	if dry && err != nil {
		return c, err
	}
	c.Changed = !slices.ContainsFunc(shares, func(share api.GroupShare) bool { return share.GroupID == g.GroupID })
	if dry {
		err := a.foretell(ctx, conn, s, g.GroupID, &c)
		return c, err
	}
	if _, err := conn.ShareGroup(ctx, s.ID, g.GroupID); err != nil {
		return c, err
	}
	c.Says = c.shared(s.Name, "with the group "+groupName(g), membersOf(g))
	return c, nil
}

// shared says that a snapshot is shared now, or was so already.
func (c shareChange) shared(name, with, who string) string {
	if !c.Changed {
		return fmt.Sprintf("%s was already shared %s: %s can see and pull it", name, with, who)
	}
	return fmt.Sprintf("shared %s %s: %s can see and pull it now", name, with, who)
}

// foretell says whom a share would add: a group's, or org-wide without one.
func (a *app) foretell(ctx context.Context, conn *connection, s api.Snapshot, groupID string, c *shareChange) error {
	added, err := conn.Newcomers(ctx, s.ID, groupID)
	if err != nil {
		return err
	}
	c.Adds = added.Users
	with := "org-wide"
	if groupID != "" {
		with = "with the group " + groupID
	}
	if !c.Changed {
		c.Says = fmt.Sprintf("%s is already shared %s: nothing would change", s.Name, with)
		return nil
	}
	c.Says = fmt.Sprintf("would share %s %s: nobody would see it who cannot now", s.Name, with)
	if added.Count == 0 {
		return nil
	}
	names := strings.Join(added.Users, ", ")
	if more := added.Count - len(added.Users); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	c.Says = fmt.Sprintf("would share %s %s: %s more could see and pull it: %s", s.Name, with, plural(added.Count, "person", "people"), names)
	return nil
}

func (a *app) shareOrg(ctx context.Context, conn *connection, s api.Snapshot, slug string, expires *time.Time, dry bool) (shareChange, error) {
	c := shareChange{Share: "organization", With: slug, ExpiresAt: expires}
	before, shared, err := orgShare(ctx, conn, s.ID, slug)
	if dry && err != nil { // else the change itself is refused, which the audit log records
		return c, err
	}
	if !dry {
		made, err := conn.ShareOrg(ctx, s.ID, slug, expires)
		if err != nil {
			return c, err
		}
		c.ExpiresAt = made.ExpiresAt
	}
	c.Changed = !shared || !sameTime(before.ExpiresAt, c.ExpiresAt)
	if before.ExpiresAt != nil && expires == nil {
		c.warning = fmt.Sprintf("the share of %s with %s ended %s before; it %s", s.Name, slug, a.until(before.ExpiresAt), verb(dry, "never ends now", "would never end"))
	}
	with := "with the organization " + slug + " " + a.lasting(c.ExpiresAt)
	c.Says = c.shared(s.Name, with, "every member of it")
	if dry && c.Changed {
		c.Says = fmt.Sprintf("would share %s %s: every member of it could see and pull it", s.Name, with)
	}
	return c, nil
}

// orgShare returns the live share of a snapshot with an organization, if there
// is one. Only who may change such shares is told.
func orgShare(ctx context.Context, conn *connection, id, slug string) (share api.OrgShare, shared bool, err error) {
	shares, err := conn.OrgShares(ctx, id)
	for _, share := range shares {
		if share.OrgSlug == slug && share.DeclinedAt == nil {
			return share, true, nil
		}
	}
	return api.OrgShare{}, false, err
}

func sameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// lasting writes how long a share lasts.
func (a *app) lasting(expires *time.Time) string {
	if expires == nil {
		return "without end"
	}
	return "until " + a.until(expires)
}

func verb(dry bool, did, would string) string {
	if dry {
		return would
	}
	return did
}

func now(dry bool) string { return verb(dry, " now", "") }

func groupName(g api.Group) string {
	if g.Name == "" || g.Name == g.GroupID {
		return g.GroupID
	}
	return g.Name + " (" + g.GroupID + ")"
}

func membersOf(g api.Group) string {
	if g.Members == 0 {
		return "its members, none so far,"
	}
	return "its " + plural(g.Members, "member", "members")
}
