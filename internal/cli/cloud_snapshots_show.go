package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/card"
	"snap/internal/command"
)

func (a *app) cloudShowCommand() *cobra.Command {
	var view cardView
	cmd := &cobra.Command{
		Use:   "show SNAPSHOT-ID",
		Short: "Show everything about one cloud snapshot",
		Long: `Show prints one cloud snapshot with its whole ID and checksum, how it is shared,
what you may do with it, the sizes of the target's newest snapshots, and its
card: the database it was taken from, how it was masked, its tables with their
row counts and sizes, and what changed since the previous snapshot. A
certificate is valid if it was signed by a key that the organization has
registered and not revoked. The snapshot's owner, and owners and admins of the
organization, also see who pulled it, who shared it, with whom, and until when.
A card never contains a row of data. Another organization sees the card only if
the share includes it.`,
		Example: examples("show one", "snapcli cloud snapshots show snap_7h2k9m",
			"show the columns, and how each was masked", "snapcli cloud snapshots show snap_7h2k9m --columns"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showCloud(cmd.Context(), args[0], view)
		},
	}
	view.flags(cmd)
	a.jsonFlag(cmd)
	return cmd
}

// cloudView is the JSON output of show.
type cloudView struct {
	api.Snapshot
	Card     *api.Card        `json:"card,omitempty" doc:"absent if there is none or it is withheld"`
	Withheld bool             `json:"card_withheld,omitempty" doc:"the owning organization does not show the card"`
	Changes  *api.CardChanges `json:"changes,omitempty" doc:"what changed since the previous snapshot"`
	Access   *api.Access      `json:"access,omitempty" doc:"who has access and why, if you may explain access"`
	Pulls    []api.PullCount  `json:"pulls,omitempty" doc:"only for callers who are allowed to see them"`
	Versions []version        `json:"versions,omitempty" doc:"newest snapshots of its organization, target and type"`
}

// version is one snapshot of a target.
type version struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created_at"`
	Size    int64     `json:"size" doc:"bytes"`
}

// versionsShown is how many of the target's snapshots the show command lists with their sizes.
const versionsShown = 10

func (a *app) showCloud(ctx context.Context, typed string, view cardView) error {
	conn, found, err := a.resolve(ctx, typed)
	if err != nil {
		return err
	}
	shown, err := conn.cloudDetails(ctx, found.ID, view.search)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(shown)
	}
	return a.printCloudShown(shown, view)
}

// cloudDetails collects the data that show prints about a snapshot.
func (c *connection) cloudDetails(ctx context.Context, id, search string) (v cloudView, err error) {
	if v.Snapshot, err = c.Snapshot(ctx, id); err != nil {
		return v, err
	}
	versions, err := c.Versions(ctx, v.Snapshot, versionsShown)
	if err != nil {
		return v, err
	}
	for _, s := range versions {
		v.Versions = append(v.Versions, version{s.ID, s.Created, s.Size})
	}
	if v.Can != nil && v.Can.Explain {
		access, err := c.Access(ctx, id, "")
		if err != nil {
			return v, err
		}
		v.Access = &access
	}
	described, err := c.cloudCard(ctx, id, search)
	if err != nil || described == nil {
		return v, err
	}
	v.Card, v.Withheld = described.Card, described.Withheld
	if v.Card != nil {
		changes, err := c.CardChanges(ctx, id)
		if err != nil {
			return v, err
		}
		v.Changes = &changes
	}
	if v.Can != nil && v.Can.Explain {
		v.Pulls, err = c.Pulls(ctx, id)
	}
	return v, err
}

func (a *app) printCloudShown(v cloudView, view cardView) error {
	s := v.Snapshot
	pairs := []string{
		"ID", s.ID, "Name", s.Name, "Target", s.Target, "Type", string(s.Type), "Engine", string(s.Engine),
		"Size", exactSize(s.Size), "Sizes", sizesOf(v.Versions), "SHA-256", s.SHA256, "Created", a.moment(s.Created),
		"Organization", s.Organization, "Owner", s.Owner, "Sharing", a.sharing(s),
		"You may", strings.Join(mayDo(s.Can), ", "),
		"Description", s.Description, "Labels", strings.Join(s.Labels, ", "), "Certificate", card.Certificate(s),
	}
	if v.Card != nil {
		pairs = append(pairs, cardFields(*v.Card, s.Engine)...)
		pairs = append(pairs, "Subset", card.Subset(v.Card.Subset))
	}
	if v.Withheld {
		pairs = append(pairs, "Card", "the organization "+s.Organization+" does not show it")
	}
	pairs = append(pairs, "Pull it", card.PullCommand(s), "Load it", card.LoadCommand(s))
	a.fields(pairs...)
	if v.Card != nil {
		if err := a.printTables(v.Card.Tables, view, v.Card.Subset != nil); err != nil {
			return err
		}
	}
	if c := v.Changes; c != nil && c.Previous != nil {
		a.printChanges(c.Previous.Name, c.Counted, c.Changes, c.More)
	}
	if err := a.printWays(v.Access); err != nil {
		return err
	}
	return a.printPulls(v.Pulls)
}

// sizesOf lists the sizes of a target's snapshots, the oldest first. It returns "" for fewer than
// two.
func sizesOf(versions []version) string {
	if len(versions) < 2 {
		return ""
	}
	var all []string
	for _, one := range slices.Backward(versions) {
		all = append(all, size(one.Size))
	}
	return strings.Join(all, ", ") + " (the last " + strconv.Itoa(len(versions)) + " of this target)"
}

// printWays prints who shared the snapshot with whom, and until when.
func (a *app) printWays(access *api.Access) error {
	if access == nil {
		return nil
	}
	t := a.newTable(column{title: "Shared with", least: 10, weight: 1}, column{title: "By", least: 8, weight: 1},
		momentColumn("Since", 0), column{title: "Expires"})
	for _, way := range access.Ways {
		with := map[string]string{"org_wide": "everyone (org-wide)", "group": "group " + way.GroupID,
			"organization": "organization " + way.Organization}[way.Kind]
		if with == "" {
			continue
		}
		if with == "organization " {
			with = "another organization"
		}
		until := "never"
		if way.ExpiresAt != nil {
			until = a.moment(*way.ExpiresAt)
		}
		t.row(with, cmp.Or(way.GrantedBy, "-"), a.moment(way.Since), until)
	}
	if len(t.rows) == 0 {
		return nil
	}
	a.result("")
	return t.flush()
}

// changesShown is how many changes the show command prints without --json.
const changesShown = 20

// printChanges prints the changes since a previous snapshot. counted reports whether rows were
// compared, and more is the number of changes that are not listed.
func (a *app) printChanges(previous string, counted bool, changes []api.CardChange, more int) {
	a.result("")
	switch {
	case len(changes) > 0:
		a.result("Changed since %s:", previous)
	case counted:
		a.result("No table or row changed since %s.", previous)
	default:
		a.result("No table or row count changed since %s.", previous)
	}
	for _, one := range changes[:min(len(changes), changesShown)] {
		a.result("  %s", card.Change(one))
	}
	if more += max(0, len(changes)-changesShown); more > 0 {
		a.result("  and %d more", more)
	}
}

func (a *app) printPulls(pulls []api.PullCount) error {
	if len(pulls) == 0 {
		return nil
	}
	a.result("")
	t := a.newTable(column{title: "Pulled by", least: 8}, column{title: "Times", right: true}, momentColumn("Last", 1))
	for _, p := range pulls {
		t.row(cmp.Or(p.Email, p.Organization), digits(p.Times), a.moment(p.LastAt))
	}
	return t.flush()
}

func (a *app) sharing(s api.Snapshot) string {
	if s.Received {
		return "shared with your organization by " + s.Organization + " " + a.lifetime(s.ExpiresAt)
	}
	state := "private"
	if s.Shared {
		state = "shared org-wide" + a.endSuffix(s.ExpiresAt)
	}
	return state + withPrefix(", ", card.Partial(s, a.now()))
}

func mayDo(can *api.Can) []string {
	if can == nil {
		return nil
	}
	var may []string
	for _, one := range []struct {
		ok   bool
		word string
	}{
		{can.Pull, "pull"},
		{can.Share, "share org-wide and with groups"},
		{can.ShareOrg, "share with other organizations"},
		{can.Explain, "ask who can see it"},
		{can.Describe, "describe"},
		{can.Delete, "delete"},
	} {
		if one.ok {
			may = append(may, one.word)
		}
	}
	return may
}

// fields prints names and values, one pair per line. It omits empty values.
func (a *app) fields(pairs ...string) {
	widest := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			widest = max(widest, len(pairs[i]))
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		name := pairs[i] + ":" + strings.Repeat(" ", widest-len(pairs[i]))
		if a.color(a.io.OutTerminal) {
			name = faint.Render(name)
		}
		a.result("%s %s", raw(name), pairs[i+1])
	}
}
