package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap/internal/command"
)

func (a *app) cloudDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete SNAPSHOT-ID...",
		Short: "Delete cloud snapshots and their bytes",
		Long: `Delete removes snapshots from the cloud service, for everyone and permanently.
Pulled copies stay where they are. Only owners and admins of the organization
may delete snapshots.`,
		Example: examples(
			"delete one", "snapcli cloud snapshots delete snap_7h2k9m",
			"delete without asking", "snapcli cloud snapshots delete snap_7h2k9m --yes"),
		Args:              command.SomeArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.deleteCloud(cmd.Context(), args, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return cmd
}

func (a *app) deleteCloud(ctx context.Context, ids []string, yes bool) error {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	list, err := conn.resolve(ctx, ids)
	if err != nil {
		return err
	}
	what := list[0].Name
	if len(list) > 1 {
		what = fmt.Sprintf("these %d snapshots", len(list))
	}
	if err := a.confirm(ctx, yes, "Delete "+what+" from the cloud?",
		"It is deleted for everyone, with all its shares."); err != nil {
		return err
	}
	var failed []error
	for _, s := range list {
		if err := conn.Delete(ctx, s.ID); err != nil {
			failed = append(failed, withID(err, s.ID, len(list)))
			continue
		}
		a.done("", "deleted %s (%s) from the cloud", s.Name, s.ID)
	}
	return errors.Join(failed...)
}
