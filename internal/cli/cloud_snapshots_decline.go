package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/command"
)

func (a *app) declineCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "decline SNAPSHOT-ID",
		Short: "Decline a snapshot that another organization shared",
		Long: `Decline ends another organization's share of a snapshot with your organization,
for all of your members. The other organization sees that you declined and may
share the snapshot again. Only owners and admins of your organization may
decline.`,
		Example:           examples("decline a snapshot", "snapcli cloud snapshots decline snap_7h2k9m"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, s, err := a.resolve(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), yes, "Decline "+s.Name+" from "+s.Organization+"?",
				"Nobody in your organization will be able to see it."); err != nil {
				return err
			}
			if err := conn.Decline(cmd.Context(), s.ID); err != nil {
				return err
			}
			a.done("", "declined %s from %s: nobody in your organization can see it now", s.Name, s.Organization)
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "decline without asking")
	return cmd
}
