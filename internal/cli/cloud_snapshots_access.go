package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"snap/api"
)

func (a *app) cloudAccessCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use:   "access SNAPSHOT-ID",
		Short: "Show who can see a snapshot, and why",
		Long: `Access lists the people of your organization who can see a snapshot, each with
the reason, and what else lets anyone see it. --at asks for a time in the past,
also of a snapshot that has been deleted since, by its whole ID. For owners and
admins.`,
		Example: examples(
			"who can see it now", "snapcli cloud snapshots access snap_7h2k9m",
			"who could see it on that day", "snapcli cloud snapshots access snap_7h2k9m --at 2026-11-21"),
		Args:              oneArg("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			when, err := parseTime(at, a.now())
			if err != nil {
				return err
			}
			return a.access(cmd.Context(), args[0], when)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "a time in the past: 2026-11-21, 2026-11-21T08:00:00Z, or 7d for seven days ago")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) access(ctx context.Context, typed string, at time.Time) error {
	_, conn, err := a.connect()
	if err != nil {
		return err
	}
	id, err := wholeID(ctx, conn, typed)
	if err != nil {
		return err
	}
	if at.IsZero() {
		at = a.now()
	}
	then, err := conn.AudienceAt(ctx, id, at)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(then)
	}
	return a.printAccess(then)
}

func (a *app) printAccess(then api.AudienceThen) error {
	if !then.Existed {
		a.note("%s did not exist at %s", then.Snapshot, moment(then.At))
		return nil
	}
	a.heading("It can be seen through")
	for _, t := range then.Through {
		a.result("  %s", t)
	}
	a.result("")
	a.heading("By these people of the organization")
	t := a.newTable(column{title: "User", least: 12, weight: 1}, column{title: "Why", least: 12})
	for _, u := range then.Users {
		t.row(u.Email, u.Why)
	}
	return t.flush()
}
