package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

// shareFlags select the recipients of a share.
type shareFlags struct {
	groups, orgs     []string
	expiresIn        string
	all, dryRun, yes bool
	withSchema       *bool // nil if the flag was not given
}

func (a *app) shareCommand() *cobra.Command {
	var f shareFlags
	var withSchema bool
	cmd := &cobra.Command{
		Use:   "share SNAPSHOT-ID...",
		Short: "Share with your organization, a group or another organization",
		Long: `Share lets more people see and pull a snapshot. Without --group or --org, it
shares the snapshot with all members of your organization. --group shares it
with an SSO group. --org shares it with another organization, whose members can
pull the snapshot but not change or share it. Both can be repeated and combined:
a snapshot is shared with all of them, or with none if one is refused. With
--expires-in, these shares end automatically, according to the service's clock.

Sharing never changes the snapshot. Sharing again replaces the expiry: without
--expires-in, the share then never ends. --with-schema lets the other
organizations see the snapshot's card (its tables, columns and masks), and
--with-schema=false hides the card from them. Without the flag, an existing
share keeps its setting, and a new share hides the card.

Snapshots that are not sanitized hold the original data. Share warns you about
them and says how many more people can see that data. Your organization's policy
unsanitized_shares can forbid sharing original data, or require a confirmation;
--yes confirms. The policy share_requires can forbid sharing a snapshot that has
no valid certificate of sanitizing.

The snapshot's owner, and owners and admins of the organization, may share
org-wide and with groups. Only owners and admins may share with other
organizations.`,
		Example: examples(
			"share with everyone in the organization", "snapcli cloud snapshots share snap_7h2k9m",
			"share with two groups, by name or ID",
			"snapcli cloud snapshots share snap_7h2k9m --group Engineering --group dba",
			"share with a group until tomorrow",
			"snapcli cloud snapshots share snap_7h2k9m --group dba --expires-in 24h",
			"share with another organization for a week",
			"snapcli cloud snapshots share snap_7h2k9m --org globex --expires-in 7d",
			"see what would happen", "snapcli cloud snapshots share snap_7h2k9m snap_p3v8xw --dry-run"),
		Args:              command.SomeArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("with-schema") {
				f.withSchema = &withSchema
				if len(f.orgs) == 0 {
					return snap.Usage("--with-schema works only for shares with other organizations",
						"add --org SLUG, or omit it")
				}
			}
			return a.changeShares(cmd.Context(), args, f, a.prepareShare)
		},
	}
	a.addShareFlags(cmd, &f)
	cmd.Flags().StringVar(&f.expiresIn, "expires-in", "",
		"how long the share lasts, such as 36h, 7d or 2w (default: it never ends)")
	cmd.Flags().BoolVar(&withSchema, "with-schema", false,
		"let the other organizations see the card too: tables, columns and masks")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "share original, unmasked data without asking")
	return cmd
}

// addShareFlags adds the flags that share and unshare have in common.
func (a *app) addShareFlags(cmd *cobra.Command, f *shareFlags) {
	cmd.Flags().StringArrayVar(&f.groups, "group", nil, "an SSO group, by name or ID; can be repeated")
	cmd.Flags().StringArrayVar(&f.orgs, "org", nil,
		"another organization, by slug; can be repeated (here, --org does not select your login session)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would change")
	_ = cmd.RegisterFlagCompletionFunc("group", a.completeGroups())
	_ = cmd.RegisterFlagCompletionFunc("org", a.completeOrgs)
	a.jsonFlag(cmd)
}

// shareChange is one change to a snapshot's shares, made or only planned. It is the JSON and the
// one-line output of share and unshare.
type shareChange struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Share     string     `json:"share" doc:"org-wide, group or organization"`
	With      string     `json:"with" doc:"slug of the organization, or ID of the group"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Changed   bool       `json:"changed" doc:"false if nothing changed"`
	DryRun    bool       `json:"dry_run,omitempty"`
	Adds      []string   `json:"adds,omitempty" doc:"with --dry-run: users who would gain access"`
	Text      string     `json:"says" doc:"what changed and who can see it now"`
	warning   string
}

// changer makes all changes to one snapshot or none. If dry is set, it only returns them. A dry run
// first makes a request that needs the same permission as the change, so that it fails for the same
// callers.
type changer func(ctx context.Context, s api.Snapshot, dry bool) ([]shareChange, error)

// changeShares resolves all IDs first, so that a mistyped one changes nothing, and then changes
// each snapshot. It continues after a refusal.
func (a *app) changeShares(ctx context.Context, ids []string, f shareFlags,
	prepare func(context.Context, *connection, shareFlags) (changer, error)) error {
	conn, err := a.connect()
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

// resolve finds the snapshots of all given IDs, which may be abbreviated, each snapshot once. It
// fails if any is missing.
func (c *connection) resolve(ctx context.Context, typed []string) ([]api.Snapshot, error) {
	var list []api.Snapshot
	for _, id := range typed {
		s, err := c.Resolve(ctx, id)
		if err != nil {
			return nil, withID(err, id, len(typed))
		}
		if !slices.ContainsFunc(list, func(other api.Snapshot) bool { return other.ID == s.ID }) {
			list = append(list, s)
		}
	}
	return list, nil
}

// withID puts the ID that an error is about before the error, if the command has several IDs.
func withID(err error, id string, count int) error {
	if count < 2 {
		return err
	}
	return fmt.Errorf("%s: %w", id, err)
}

func (a *app) makeChanges(ctx context.Context, list []api.Snapshot, dry bool, change changer) error {
	var failed []error
	changes := []shareChange{}
	for _, s := range list {
		made, err := change(ctx, s, dry)
		if err != nil {
			failed = append(failed, withID(err, s.ID, len(list)))
			if ctx.Err() != nil || errors.Is(err, huh.ErrUserAborted) {
				break
			}
			continue
		}
		for _, c := range made {
			c.ID, c.Name, c.DryRun = s.ID, s.Name, dry
			changes = append(changes, c)
			a.announce(c)
		}
	}
	if a.flags.json {
		if err := a.printJSON(changes); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// announce prints one change, preceded by its warning.
func (a *app) announce(c shareChange) {
	if c.warning != "" {
		a.warn("%s", c.warning)
	}
	if !a.flags.json {
		a.done("", "%s", c.Text)
	}
}

func (a *app) prepareShare(ctx context.Context, conn *connection, f shareFlags) (changer, error) {
	groups, err := findGroups(ctx, conn.Client, f.groups)
	if err != nil {
		return nil, err
	}
	with := api.SharesRequest{OrgWide: len(f.groups)+len(f.orgs) == 0, OrgSlugs: f.orgs,
		WithSchema: f.withSchema}
	for _, g := range groups {
		with.GroupIDs = append(with.GroupIDs, g.GroupID)
	}
	if with.ExpiresIn, err = secondsOf(f.expiresIn); err != nil {
		return nil, err
	}
	return func(ctx context.Context, s api.Snapshot, dry bool) ([]shareChange, error) {
		if dry {
			return a.previewShares(ctx, conn, s, with, groups)
		}
		made, err := a.shareConfirmed(ctx, conn, s, with, f.yes)
		var changes []shareChange
		for _, m := range made.Changes {
			changes = append(changes, a.describeShare(s, m, groups))
		}
		if made.Warning != "" {
			a.warn("%s: %s", s.Name, made.Warning)
		}
		return changes, err
	}, nil
}

// secondsOf converts --expires-in to seconds, which the service counts from its own clock. It
// returns 0 if expiresIn is empty, which means never.
func secondsOf(expiresIn string) (int64, error) {
	if expiresIn == "" {
		return 0, nil
	}
	d, err := snap.ParseDuration(expiresIn)
	return max(1, int64(d/time.Second)), err
}

// shareConfirmed shares a snapshot. It asks for confirmation on a terminal if the organization
// requires it.
func (a *app) shareConfirmed(ctx context.Context, conn *connection, s api.Snapshot, with api.SharesRequest,
	yes bool) (api.ShareChanges, error) {
	made, err := conn.ShareWith(ctx, s.ID, with, yes)
	if snap.CodeOf(err) != snap.CodeConfirm || yes || !a.canAsk() {
		return made, err
	}
	if err := a.confirm(ctx, false, "Share "+s.Name+" anyway?", err.Error()); err != nil {
		return made, err
	}
	return conn.ShareWith(ctx, s.ID, with, true)
}

// describeShare describes a share that the service created or changed, or that existed already.
func (a *app) describeShare(s api.Snapshot, m api.ShareChange, groups []api.Group) shareChange {
	c := shareChange{ExpiresAt: m.ExpiresAt, Changed: m.Changed}
	switch m.Kind {
	case "group":
		g := groupIn(groups, m)
		c.Share, c.With = "group", m.GroupID
		with := "with the group " + nameWithID(g.Name, g.GroupID) + a.endSuffix(m.ExpiresAt)
		c.Text = c.sentence(s.Name, with, membersOf(g))
	case "organization":
		c.Share, c.With = "organization", m.OrgSlug
		c.Text = c.sentence(s.Name, "with the organization "+m.OrgSlug+" "+a.lifetime(m.ExpiresAt), "all its members")
	default:
		c.Share, c.With = "org-wide", s.Organization
		c.Text = c.sentence(s.Name, "org-wide"+a.endSuffix(m.ExpiresAt), "all members of "+s.Organization)
	}
	if m.PreviousExpiresAt != nil && m.ExpiresAt == nil {
		c.warning = a.expiryWarning(s, c.With, m.PreviousExpiresAt, "now it never ends")
	}
	return c
}

// endSuffix describes when a share within the organization ends. It returns "" if the share never
// ends.
func (a *app) endSuffix(expires *time.Time) string {
	if expires == nil {
		return ""
	}
	return " until " + a.until(expires)
}

// expiryWarning formats the warning that a share loses its expiry. The argument now describes the
// new state.
func (a *app) expiryWarning(s api.Snapshot, with string, before *time.Time, now string) string {
	return fmt.Sprintf("the share of %s with %s was to end %s; %s", s.Name, with, a.until(before), now)
}

// groupIn returns the group of a change from groups or, if it is not among them, a group with only
// the ID and name.
func groupIn(groups []api.Group, m api.ShareChange) api.Group {
	for _, g := range groups {
		if g.GroupID == m.GroupID {
			return g
		}
	}
	return api.Group{GroupID: m.GroupID, Name: m.GroupName}
}

// previewShares describes what a share would change.
func (a *app) previewShares(ctx context.Context, conn *connection, s api.Snapshot, with api.SharesRequest,
	groups []api.Group) (all []shareChange, err error) {
	add := func(c shareChange, err error) error {
		all = append(all, c)
		return err
	}
	if with.OrgWide {
		c := shareChange{Share: "org-wide", With: s.Organization,
			Changed: !s.Shared || s.ExpiresAt != nil || with.ExpiresIn > 0}
		if s.ExpiresAt != nil && with.ExpiresIn == 0 {
			c.warning = a.expiryWarning(s, c.With, s.ExpiresAt, "it would never end")
		}
		if err := add(a.previewAccess(ctx, conn, s, "", c)); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		if err := add(a.previewGroupShare(ctx, conn, s, g, with.ExpiresIn)); err != nil {
			return nil, err
		}
	}
	for _, slug := range with.OrgSlugs {
		if err := add(a.previewOrgShare(ctx, conn, s, slug, with)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a *app) previewGroupShare(ctx context.Context, conn *connection, s api.Snapshot, g api.Group,
	seconds int64) (shareChange, error) {
	c := shareChange{Share: "group", With: g.GroupID}
	shares, err := conn.GroupShares(ctx, s.ID)
	if err != nil {
		return c, err
	}
	c.Changed = true
	for _, share := range shares {
		switch {
		case share.GroupID != g.GroupID || seconds > 0:
		case share.ExpiresAt == nil:
			c.Changed = false
		default:
			c.warning = a.expiryWarning(s, c.With, share.ExpiresAt, "it would never end")
		}
	}
	return a.previewAccess(ctx, conn, s, g.GroupID, c)
}

// sentence describes a snapshot as newly shared, or as shared already.
func (c shareChange) sentence(name, with, who string) string {
	if !c.Changed {
		return fmt.Sprintf("%s was already shared %s: %s can see and pull it", name, with, who)
	}
	return fmt.Sprintf("shared %s %s: %s can see and pull it now", name, with, who)
}

// previewAccess adds to c who would gain access through a share with a group, or with the whole
// organization if groupID is empty.
func (a *app) previewAccess(ctx context.Context, conn *connection, s api.Snapshot, groupID string,
	c shareChange) (shareChange, error) {
	added, err := conn.Newcomers(ctx, s.ID, groupID)
	if err != nil {
		return c, err
	}
	c.Adds = added.Users
	with := "org-wide"
	if groupID != "" {
		with = "with the group " + groupID
	}
	if !c.Changed {
		c.Text = fmt.Sprintf("%s is already shared %s: nothing would change", s.Name, with)
		return c, nil
	}
	c.Text = fmt.Sprintf("would share %s %s: nobody would gain access", s.Name, with)
	if added.Count == 0 {
		return c, nil
	}
	names := strings.Join(added.Users, ", ")
	if more := added.Count - len(added.Users); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	c.Text = fmt.Sprintf("would share %s %s: %s more could see and pull it: %s", s.Name, with,
		snap.Plural(added.Count, "person", "people"), names)
	return c, nil
}

// previewOrgShare describes what a share with another organization would change. It states the
// lifetime as a duration, because the end depends on the service's clock.
func (a *app) previewOrgShare(ctx context.Context, conn *connection, s api.Snapshot, slug string,
	with api.SharesRequest) (shareChange, error) {
	seconds := with.ExpiresIn
	c := shareChange{Share: "organization", With: slug}
	before, shared, err := orgShare(ctx, conn, s.ID, slug)
	if err != nil {
		return c, err
	}
	lasting := "indefinitely"
	if seconds > 0 {
		lasting = "for " + snap.Span(time.Duration(seconds)*time.Second)
	}
	schemaChanges := with.WithSchema != nil && *with.WithSchema != before.WithSchema
	if c.Changed = !shared || seconds > 0 || before.ExpiresAt != nil || schemaChanges; !c.Changed {
		c.Text = fmt.Sprintf("%s is already shared with the organization %s indefinitely: nothing would change", s.Name,
			slug)
		return c, nil
	}
	if before.ExpiresAt != nil && seconds == 0 {
		c.warning = a.expiryWarning(s, slug, before.ExpiresAt, "it would never end")
	}
	c.Text = fmt.Sprintf("would share %s with the organization %s %s: all its members could see and pull it", s.Name,
		slug, lasting)
	return c, nil
}

// orgShare returns the live share of a snapshot with an organization, if there is one. It fails for
// callers who are not allowed to manage shares with other organizations.
func orgShare(ctx context.Context, conn *connection, id, slug string) (share api.OrgShare, shared bool, err error) {
	shares, err := conn.OrgShares(ctx, id)
	for _, share := range shares {
		if share.OrgSlug == slug && share.DeclinedAt == nil {
			return share, true, nil
		}
	}
	return api.OrgShare{}, false, err
}

// lifetime describes how long a share lasts.
func (a *app) lifetime(expires *time.Time) string {
	if expires == nil {
		return "indefinitely"
	}
	return "until " + a.until(expires)
}

func membersOf(g api.Group) string {
	if g.Members == 0 {
		return "its members (none yet)"
	}
	return "its " + snap.Plural(g.Members, "member", "members")
}
