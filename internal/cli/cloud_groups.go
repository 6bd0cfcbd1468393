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
		Long: `Groups lists the SSO groups of your organization, with the number of members in
each, as your identity provider last reported them. You can share with a group
by its name or ID. Your identity provider manages the groups themselves.`,
		Example: examples("find a group's ID", "snapcli cloud groups"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.Group]{
			connect: a.connect,
			list:    (*api.Client).Groups,
			empty: "no groups are known yet: they appear when the identity provider reports them, at a sign-in or " +
				"by SCIM",
			columns: []column{{title: "Name", least: 8, weight: 1}, {title: "ID", least: 8},
				{title: "Members", right: true}},
			row: func(g api.Group) []string {
				return []string{g.Name, g.GroupID, strconv.Itoa(g.Members)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}
