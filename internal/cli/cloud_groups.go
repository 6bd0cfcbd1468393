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
		Long: `Groups lists the SSO groups of your organization, with the number of members of
each, as of their last sign-in. You can share with a group by its name or ID.
Your identity provider manages the groups themselves.`,
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
		a.note("no groups are known yet: they appear when members sign in, if the identity provider sends groups")
		return nil
	}
	t := a.newTable(column{title: "Name", least: 8, weight: 1}, column{title: "ID", least: 8},
		column{title: "Members", right: true})
	for _, g := range groups {
		t.row(g.Name, g.GroupID, strconv.Itoa(g.Members))
	}
	return t.flush()
}

// emptyNotNull returns a non-nil list, so that an empty one is encoded as [] and not null.
func emptyNotNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
