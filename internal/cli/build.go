package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/local"
)

func (a *app) buildCommand() *cobra.Command {
	var o local.BuildOptions
	cmd := &cobra.Command{
		Use:   "build TARGET",
		Short: "Take a snapshot of a target's source database",
		Long: `Build reads the target's source database and writes one snapshot file on this
machine. The database is only read, in one consistent view.`,
		Example:           examples("take a snapshot", "snapcli build shop", "keep only its name, for a script", "name=$(snapcli build shop --quiet)"),
		Args:              oneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			tell, end := a.progress()
			s, err := agent.Build(cmd.Context(), args[0], o, tell)
			end()
			if err != nil {
				return err
			}
			return a.made("built", s, "mask it with `snapcli sanitize %s`, or push it with `snapcli push %s --cloud`", word(args[0]), word(args[0]))
		},
	}
	cmd.Flags().IntVar(&o.Jobs, "jobs", 0, "tables read at once; 0 is the target's setting")
	a.jsonFlag(cmd)
	return cmd
}

// made prints the local snapshot that a command made.
func (a *app) made(verb string, s local.Snapshot, next string, args ...any) error {
	if a.flags.json {
		return a.printJSON(viewSnapshot(s))
	}
	a.done(s.Name, "%s %s (%s, %s%s)", verb, s.Name, s.Type, size(s.Size), tablesOf(len(s.Tables)))
	a.next(next, args...)
	return nil
}

// tablesOf adds how many tables there are, when that is known.
func tablesOf(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "table", "tables")
}
