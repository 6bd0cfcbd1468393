package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) describeCommand() *cobra.Command {
	var r api.DescribeRequest
	cmd := &cobra.Command{
		Use:   "describe SNAPSHOT-ID",
		Short: "Write a snapshot's description and labels",
		Long: `Describe replaces the description and labels of a cloud snapshot. Both are plain
text, and a search for their words finds the snapshot. Omit a flag to keep the
current value; an empty value removes it. Only people in your own organization
see the description and labels. The snapshot's owner, and owners and admins of
the organization, may change them.`,
		Example: examples("describe a snapshot",
			"snapcli cloud snapshots describe snap_7h2k9m --description \"Before July\""),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("description") && !cmd.Flags().Changed("label") {
				return snap.Usage("describe needs --description, --label or both", command.UsageHint(cmd))
			}
			conn, s, err := a.resolve(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("description") {
				r.Description = s.Description
			}
			if !cmd.Flags().Changed("label") {
				r.Labels = s.Labels
			}
			r.Labels = emptyNotNull(slices.DeleteFunc(r.Labels, func(label string) bool {
				return strings.TrimSpace(label) == ""
			}))
			if s, err = conn.Describe(cmd.Context(), s.ID, r); err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(s)
			}
			a.done("", "described %s", s.Name)
			return nil
		},
	}
	cmd.Flags().StringVar(&r.Description, "description", "", "plain text, at most 1000 characters")
	cmd.Flags().StringArrayVar(&r.Labels, "label", nil, "a label; can be repeated")
	a.jsonFlag(cmd)
	return cmd
}
