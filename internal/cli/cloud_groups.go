package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"snap/api"

	"snap/internal/command"
)

func (a *app) cloudGroupsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "List the organization's SSO groups",
		Long: `Groups lists the SSO groups of your organization, with how many members each had
at their last sign-in. Share with one by its name or ID. The groups themselves
are kept by your identity provider.`,
		Example: examples("find a group's ID", "snapcli cloud groups"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, conn, err := a.connect()
			if err != nil {
				return err
			}
			groups, err := conn.Groups(cmd.Context())
			if err != nil {
				return err
			}
			return a.printGroups(groups)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printGroups(groups []api.Group) error {
	if a.flags.json {
		return a.printJSON(emptyNotNull(groups))
	}
	if len(groups) == 0 {
		a.note("no group is known yet: they appear when members sign in, if the identity provider tells them")
		return nil
	}
	t := a.newTable(column{title: "Name", least: 8, weight: 1}, column{title: "ID", least: 8},
		column{title: "Members", right: true})
	for _, g := range groups {
		t.row(g.Name, g.GroupID, strconv.Itoa(g.Members))
	}
	return t.flush()
}

// emptyNotNull makes an empty list [] in JSON.
func emptyNotNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
