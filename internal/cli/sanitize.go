package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/local"
)

func (a *app) sanitizeCommand() *cobra.Command {
	var o local.SanitizeOptions
	cmd := &cobra.Command{
		Use:   "sanitize TARGET",
		Short: "Make a masked copy of a snapshot",
		Long: `Sanitize makes a masked copy of the target's newest snapshot, or of the one that
--snapshot names. How to mask stands in a SQL file or a file of column rules,
given here or in the target's configuration. The original is not touched.`,
		Example: examples(
			"mask as the target's configuration says", "snapcli sanitize shop",
			"run a SQL file on the copy", "snapcli sanitize shop --sql mask.sql"),
		Args:              oneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			tell, end := a.progress()
			s, err := agent.Sanitize(cmd.Context(), args[0], o, tell)
			end()
			if err != nil {
				return err
			}
			return a.made("sanitized", s, "push it with `snapcli push %s --cloud --type sanitized`", word(args[0]))
		},
	}
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "", "name of the snapshot to mask (default the newest)")
	cmd.Flags().StringVar(&o.SQL, "sql", "", "SQL file to run on the copy (default the target's)")
	cmd.Flags().StringVar(&o.Rules, "rules", "", "file of column rules (default the target's)")
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
	a.jsonFlag(cmd)
	return cmd
}
