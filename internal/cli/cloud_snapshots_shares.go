package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) sharesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "shares SNAPSHOT-ID",
		Short: "List the shares of a snapshot",
		Long: `Shares says whether a snapshot is shared org-wide. Then it lists the groups that
the snapshot is shared with, and the other organizations. Only owners and admins
of the organization see the list of organizations.

For a snapshot that another organization shares with yours, the command shows
only that organization and when the share ends.`,
		Example:           examples("list its shares", "snapcli cloud snapshots shares snap_7h2k9m"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.shares(cmd.Context(), args[0]) },
	}
	a.jsonFlag(cmd)
	return cmd
}

// sharesList is the JSON output of shares. For callers who are not allowed to see the shares with
// other organizations, Organizations is null, and Note explains why.
type sharesList struct {
	ID            string           `json:"id"`
	OrgWide       bool             `json:"org_wide"`
	ExpiresAt     *time.Time       `json:"expires_at,omitempty" doc:"when the org-wide share ends"`
	Groups        []api.GroupShare `json:"groups"`
	Organizations []api.OrgShare   `json:"organizations"`
	Received      *receivedShare   `json:"received,omitempty" doc:"the share that your organization received, if any"`
	Note          string           `json:"note,omitempty"`
}

// receivedShare is the part of a share that a recipient organization is allowed to see.
type receivedShare struct {
	From      string     `json:"from" doc:"slug of the organization that shares it"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// noteAdmins is shown to callers who are not admins (SPEC 7).
const noteAdmins = "only owners and admins see shares with other organizations: an org admin is required"

func (a *app) shares(ctx context.Context, typed string) error {
	conn, s, err := a.resolve(ctx, typed)
	if err != nil {
		return err
	}
	if s.Received {
		return a.receivedShares(s)
	}
	list := sharesList{ID: s.ID, OrgWide: s.Shared, ExpiresAt: s.ExpiresAt}
	if list.Groups, err = conn.GroupShares(ctx, s.ID); err != nil {
		return err
	}
	list.Organizations, err = conn.OrgShares(ctx, s.ID)
	switch {
	case errors.Is(err, &snap.Error{Code: snap.CodeForbidden}),
		errors.Is(err, &snap.Error{Code: snap.CodeUserAttributionRequired}):
		list.Organizations, list.Note = nil, noteAdmins
	case err != nil:
		return err
	}
	if a.flags.json {
		return a.printJSON(list)
	}
	return a.printShares(list)
}

// noteOwningAdmins is shown to recipients in place of the lists.
const noteOwningAdmins = "only people of %s can see its other shares: for those with other " +
	"organizations, an org admin of that organization is required"

// receivedShares prints what a recipient is allowed to see about the shares of a snapshot.
func (a *app) receivedShares(s api.Snapshot) error {
	note := fmt.Sprintf(noteOwningAdmins, s.Organization)
	if a.flags.json {
		received := &receivedShare{From: s.Organization, ExpiresAt: s.ExpiresAt}
		return a.printJSON(sharesList{ID: s.ID, Groups: []api.GroupShare{}, Received: received, Note: note})
	}
	a.result("shared with your organization by %s %s", s.Organization, a.lifetime(s.ExpiresAt))
	a.note("%s", note)
	return nil
}

func (a *app) printShares(list sharesList) error {
	if list.OrgWide {
		a.note("shared org-wide%s: every member of the organization can see it", a.endSuffix(list.ExpiresAt))
	}
	if err := a.printGroupShares(list.Groups); err != nil {
		return err
	}
	if list.Note != "" {
		a.note("%s", list.Note)
		return nil
	}
	a.result("")
	return a.printOrgShares(list.Organizations)
}

func (a *app) printGroupShares(shares []api.GroupShare) error {
	a.heading("Group shares")
	if len(shares) == 0 {
		a.result("  none")
		return nil
	}
	t := a.newTable(column{title: "Group", least: 8, weight: 1}, column{title: "ID", least: 8, weight: 3},
		momentColumn("Expires", 4), column{title: "Shared by", least: 6}, momentColumn("Since", 0))
	for _, share := range shares {
		by := share.SharedBy
		if share.Channel != "" {
			by = "channel " + share.Channel
		}
		t.row(share.Name, share.GroupID, a.until(share.ExpiresAt), by, a.moment(share.SharedAt))
	}
	return t.flush()
}

func (a *app) printOrgShares(shares []api.OrgShare) error {
	a.heading("Cross-organization shares")
	if len(shares) == 0 {
		a.result("  none")
		return nil
	}
	t := a.newTable(column{title: "Organization", least: 8, weight: 2}, column{title: "Slug"},
		momentColumn("Expires", 3), column{title: "Shared by", least: 6}, momentColumn("Since", 0))
	for _, share := range shares {
		if share.DeclinedAt != nil {
			t.row(share.Name, share.OrgSlug, "declined "+a.moment(*share.DeclinedAt), "", "")
			continue
		}
		t.row(share.Name, share.OrgSlug, a.until(share.ExpiresAt), share.SharedBy, a.moment(share.SharedAt))
	}
	return t.flush()
}

// heading prints the title of one of several lists.
func (a *app) heading(text string) {
	if a.color(a.io.OutTerminal) {
		text = bold.Underline(true).Render(text)
	}
	a.result("%s", raw(text))
}
