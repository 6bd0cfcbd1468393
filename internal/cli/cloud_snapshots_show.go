package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"snap/api"

	"snap/internal/command"
)

func (a *app) cloudShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show SNAPSHOT-ID",
		Short: "Show everything about one cloud snapshot",
		Long: "Show prints one cloud snapshot with its whole ID and checksum, how it is shared,\nand what " +
			"you may do with it.",
		Example:           examples("show one", "snapcli cloud snapshots show snap_7h2k9m"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showCloud(cmd.Context(), args[0]) },
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) showCloud(ctx context.Context, typed string) error {
	conn, found, err := a.resolve(ctx, typed)
	if err != nil {
		return err
	}
	s, err := conn.Snapshot(ctx, found.ID)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(s)
	}
	a.fields(
		"ID", s.ID,
		"Name", s.Name,
		"Target", s.Target,
		"Type", string(s.Type),
		"Engine", string(s.Engine),
		"Size", exactSize(s.Size),
		"SHA-256", s.SHA256,
		"Created", a.moment(s.Created),
		"Organization", s.Organization,
		"Owner", s.Owner,
		"Sharing", a.sharing(s),
		"You may", strings.Join(mayDo(s.Can), ", "),
	)
	return nil
}

// sharing describes how a snapshot is shared.
func (a *app) sharing(s api.Snapshot) string {
	if s.Received {
		return "shared with your organization by " + s.Organization + " " + a.lasting(s.ExpiresAt)
	}
	state := "private"
	if s.Shared {
		state = "shared org-wide" + a.ending(s.ExpiresAt)
	}
	if s.Groups > 0 {
		state += ", " + plural(s.Groups, "group", "groups")
	}
	switch {
	case s.Orgs > 0:
		state += ", " + plural(s.Orgs, "other organization", "other organizations")
	case s.Outside:
		state += ", shared outside the organization"
	}
	return state
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
		{can.Delete, "delete"},
	} {
		if one.ok {
			may = append(may, one.word)
		}
	}
	return may
}

// fields prints names and values, one pair a line. It omits empty values.
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
		if a.colour(a.io.OutTerminal) {
			name = faint.Render(name)
		}
		a.result("%s %s", raw(name), pairs[i+1])
	}
}
