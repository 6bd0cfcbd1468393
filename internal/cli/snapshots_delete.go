package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) localDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete snapshots from this machine",
		Long:  "Delete removes snapshot files from this machine. Copies in the cloud stay.",
		Example: examples(
			"delete one", "snapcli snapshots delete shop-20261121T011600Z",
			"delete without asking", "snapcli snapshots delete shop-20261121T011600Z --yes"),
		Args:              command.SomeArgs("name"),
		ValidArgsFunction: a.completeLocal,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			return a.deleteLocal(ctx, agent, distinct(args), yes)
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return cmd
}

// distinct returns each name once, in the given order.
func distinct(names []string) (once []string) {
	for _, name := range names {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

func (a *app) deleteLocal(ctx context.Context, agent *local.Agent, names []string, yes bool) error {
	withoutCopy := 0
	for _, name := range names {
		s, err := agent.ToDelete(name)
		if err != nil {
			return err
		}
		if len(s.Cloud) == 0 {
			withoutCopy++
		}
	}
	what, details := names[0], "It was in the cloud when it was last pushed or pulled."
	if len(names) > 1 {
		what = fmt.Sprintf("these %d snapshots", len(names))
		details = "Each of them was in the cloud when it was last pushed or pulled."
	}
	switch {
	case withoutCopy == len(names):
		details = "No copy in the cloud is known."
	case withoutCopy > 0:
		details = fmt.Sprintf("%d of them have no known copy in the cloud.", withoutCopy)
	}
	if err := a.confirm(ctx, yes, "Delete "+what+" from this machine?", details); err != nil {
		return err
	}
	for _, name := range names {
		if err := agent.DeleteSnapshot(name); err != nil {
			return err
		}
		a.done("", "deleted %s from this machine", name)
	}
	return nil
}
