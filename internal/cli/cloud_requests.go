package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudRequestsCommand() *cobra.Command {
	cmd := a.requestsListCommand("requests")
	cmd.Short = "Ask for access to snapshots, and answer requests from others"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.requestsListCommand("list"), a.requestsAskCommand(), a.requestsWithdrawCommand(),
		a.requestsRefuseCommand())
	return cmd
}

func (a *app) requestsListCommand(use string) *cobra.Command {
	var mine bool
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the requests for access that you may answer",
		Long: `List shows the open requests for access to your snapshots, the oldest first.
Owners and admins see the requests for every snapshot of their organization. To
grant a request, use ` + "`snapcli cloud snapshots share`" + `: a request closes when the
person can see the snapshot. --mine lists your own requests. Requests expire
after 14 days.`,
		Example: examples("requests waiting for your answer", "snapcli cloud requests",
			"your own requests", "snapcli cloud requests --mine"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			list := (*api.Client).AccessRequests
			if mine {
				list = (*api.Client).OwnAccessRequests
			}
			return printList(a, serviceList[api.AccessRequest]{
				connect: a.connect,
				list:    list,
				empty:   "there are no open requests",
				columns: []column{{title: "ID"}, {title: "Snapshot", least: 8}, {title: "Target", least: 5, weight: 1},
					{title: "Person", least: 8, weight: 1}, {title: "Reason", least: 6, weight: 2},
					momentColumn("Asked", 0)},
				row: func(r api.AccessRequest) []string {
					return []string{r.ID, r.Snapshot, cmp.Or(r.Target, "-"), cmp.Or(r.Email, "you"),
						cmp.Or(r.Reason, "-"), a.moment(r.CreatedAt)}
				},
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&mine, "mine", false, "list your own requests")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) requestsAskCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "ask SNAPSHOT-ID",
		Short: "Ask for access to a snapshot that you cannot see",
		Long: `Ask sends a request to the snapshot's owner and to the owners and admins of its
organization. They learn your name, your e-mail address and your organization.
The service responds in the same way whether the snapshot exists or not. You can
have at most 20 open requests.`,
		Example: examples("ask for a snapshot whose link somebody sent you",
			"snapcli cloud requests ask snap_7h2k9m4qw8xvbn3t --reason 'bug 412'"),
		Args: command.ExactArgs("snapshot ID"),
		RunE: a.withService(func(ctx context.Context, conn *connection, args []string) error {
			if err := conn.RequestAccess(ctx, api.AccessRequestRequest{Snapshot: args[0], Reason: reason}); err != nil {
				return err
			}
			a.done("", "sent the request; if the snapshot exists, its owner and the admins of its organization will "+
				"see it")
			return nil
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why you need the snapshot")
	return cmd
}

func (a *app) requestsWithdrawCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "withdraw REQUEST-ID",
		Short:   "Withdraw one of your requests",
		Long:    `Withdraw ends one of your own requests for access.`,
		Example: examples("withdraw a request", "snapcli cloud requests withdraw 12"),
		Args:    command.ExactArgs("request ID"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).WithdrawAccessRequest, kind: "open request",
			list: "snapcli cloud requests --mine", done: "withdrew the request %s"}),
	}
}

func (a *app) requestsRefuseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "refuse REQUEST-ID",
		Short: "Refuse a request for access",
		Long: `Refuse ends a request for access to one of your snapshots or, for owners and
admins, to any snapshot of the organization. The person is not informed, because
they would learn that the snapshot exists.`,
		Example: examples("refuse a request", "snapcli cloud requests refuse 12"),
		Args:    command.ExactArgs("request ID"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).RefuseAccess, kind: "open request",
			list: "snapcli cloud requests", done: "refused the request %s; the person is not informed"}),
	}
}
