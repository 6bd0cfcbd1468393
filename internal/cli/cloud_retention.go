package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudRetentionCommand() *cobra.Command {
	cmd := a.retentionListCommand("retention")
	cmd.Short = "List and change the rules for keeping cloud snapshots"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.retentionListCommand("list"), a.retentionSetCommand(), a.retentionRemoveCommand(),
		a.retentionRunCommand())
	return cmd
}

func (a *app) retentionListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the retention rules",
		Long: `A retention rule sets how long a target's cloud snapshots are kept. Targets
without a rule keep everything. A rule never deletes a snapshot that another
organization can still pull. Owners and admins of the organization manage the
rules.`,
		Example: examples("list the rules", "snapcli cloud retention"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.RetentionRule]{
			connect: a.connect,
			list:    (*api.Client).Retention,
			empty: "there are no rules, so everything is kept; create one with `snapcli cloud retention set TARGET " +
				"--keep-last N`",
			columns: []column{{title: "Target", least: 8}, {title: "Keep last", right: true},
				{title: "Keep days", right: true}},
			row: func(r api.RetentionRule) []string {
				return []string{r.Target, orNone(r.KeepLast), orNone(r.KeepDays)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func orNone(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func (a *app) retentionSetCommand() *cobra.Command {
	var r api.RetentionRule
	cmd := &cobra.Command{
		Use:   "set TARGET",
		Short: "Create or change a target's rule",
		Long: `Set creates or changes the rule of a target. --keep-last N keeps the newest N
snapshots of each type. --keep-days N keeps the snapshots that are younger than
N days. With both flags, a snapshot is kept if either applies. The service
applies the rules every hour. ` + "`snapcli cloud retention run --dry-run`" + ` lists the
snapshots that the rules would delete.`,
		Example: examples(
			"keep the last ten snapshots, and all of the last two weeks",
			"snapcli cloud retention set shop --keep-last 10 --keep-days 14"),
		Args: command.ExactArgs("target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.KeepLast <= 0 && r.KeepDays <= 0 {
				return snap.Usage("cloud retention set needs --keep-last or --keep-days, greater than 0",
					command.UsageHint(cmd))
			}
			conn, err := a.connect()
			if err != nil {
				return err
			}
			r.Target = args[0]
			rule, err := conn.SetRetention(cmd.Context(), r)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(rule)
			}
			a.done("", "set the retention of %s; see what it would delete with `snapcli cloud retention run --dry-run`",
				rule.Target)
			return nil
		},
	}
	cmd.Flags().IntVar(&r.KeepLast, "keep-last", 0, "number of snapshots of each type to keep")
	cmd.Flags().IntVar(&r.KeepDays, "keep-days", 0, "number of days to keep snapshots")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) retentionRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove TARGET",
		Short:   "Delete a target's rule and keep its snapshots",
		Long:    "Remove deletes a target's retention rule. Its snapshots are then kept\nindefinitely.",
		Example: examples("keep all snapshots of a target", "snapcli cloud retention remove shop"),
		Args:    command.ExactArgs("target"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).DeleteRetention, kind: "retention rule for",
			list: "snapcli cloud retention", done: "all snapshots of %s are now kept"}),
	}
}

func (a *app) retentionRunCommand() *cobra.Command {
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Apply the rules now, or see what they would delete",
		Long: `Run deletes the cloud snapshots that the rules no longer keep, as the service
does every hour. With --dry-run, it only lists them, at most 200.`,
		Example: examples(
			"see what would be deleted", "snapcli cloud retention run --dry-run"),
		Args: command.NoArgs,
		RunE: a.withService(func(ctx context.Context, conn *connection, _ []string) error {
			if !dry {
				if err := a.confirm(ctx, yes, "Delete the snapshots that the retention rules no longer keep?",
					"They are deleted for everyone; --dry-run lists them first."); err != nil {
					return err
				}
			}
			result, err := runRetention(ctx, conn.Client, dry)
			if err != nil && len(result.Snapshots) == 0 {
				return err
			}
			return errors.Join(err, a.printRetentionRun(result))
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only list what would be deleted")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	a.jsonFlag(cmd)
	return cmd
}

// runRetention applies the rules in as many requests as it takes, or in one for a dry run. After an
// error, its result has what was deleted until then.
func runRetention(ctx context.Context, c *api.Client, dry bool) (api.RetentionResult, error) {
	all := api.RetentionResult{Snapshots: []api.Snapshot{}}
	for {
		next, err := c.RunRetention(ctx, api.RetentionRun{DryRun: dry})
		if err != nil {
			return all, err
		}
		all.DryRun, all.More = next.DryRun, next.More
		all.Snapshots = append(all.Snapshots, next.Snapshots...)
		if dry || !next.More || len(next.Snapshots) == 0 {
			return all, nil
		}
	}
}

func (a *app) printRetentionRun(r api.RetentionResult) error {
	if a.flags.json {
		return a.printJSON(r)
	}
	verb := "deleted"
	if r.DryRun {
		verb = "would delete"
	}
	if len(r.Snapshots) == 0 {
		a.note("the rules keep every snapshot: there is nothing to delete")
		return nil
	}
	for _, s := range r.Snapshots {
		a.result("%s %s (%s, %s, %s)", verb, s.Name, s.ID, string(s.Type), size(s.Size))
	}
	if r.More {
		a.note("these are the first %d; the rules would delete more", len(r.Snapshots))
	}
	return nil
}
