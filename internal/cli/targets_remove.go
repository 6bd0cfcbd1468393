package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) targetRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a target from the config file",
		Long:              "Remove deletes a target from the config file. Its snapshots and databases stay.",
		Example:           examples("remove one", "snapcli targets remove shop"),
		Args:              command.ExactArgs("name"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			if err := agent.RemoveTarget(args[0]); err != nil {
				return err
			}
			a.done("", "removed the target %s from %s", args[0], agent.ConfigPath())
			if all, err := agent.Snapshots(args[0]); err == nil && len(all) > 0 {
				a.note("its %s on this machine; list them with `snapcli snapshots --target %s`, and delete them with "+
					"`snapcli snapshots delete`", snap.Plural(len(all), "snapshot stays", "snapshots stay"),
					snap.ShellWord(args[0]))
			}
			return nil
		}),
	}
}
