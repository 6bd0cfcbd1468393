package cli

import (
	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudSessionsCommand() *cobra.Command {
	cmd := a.sessionsListCommand("sessions")
	cmd.Short = "List where you are signed in, and sign devices out"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.sessionsListCommand("list"), a.sessionsEndCommand())
	return cmd
}

func (a *app) sessionsListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     use,
		Short:   "List where you are signed in",
		Long:    "List shows the devices and browsers where you are signed in.",
		Example: examples("see your sessions", "snapcli cloud sessions"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.Session]{
			connect: a.signedIn,
			list:    (*api.Client).Sessions,
			empty:   "you are not signed in anywhere",
			columns: []column{{title: "ID"}, {title: "Kind"}, {title: "Name", least: 10}, {title: "Address", least: 8},
				momentColumn("Last used", 1), momentColumn("Expires", 0), {title: "This one", paint: paintShared}},
			row: func(s api.Session) []string {
				this := ""
				if s.Current {
					this = "Yes"
				}
				return []string{s.ID, s.Kind, s.Name, s.Address, a.when(s.LastUsed), a.moment(s.ExpiresAt), this}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) sessionsEndCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "end SESSION-ID",
		Short:   "Sign out a device or browser immediately",
		Long:    "End signs out one of your devices or browsers, beginning with its next request.",
		Example: examples("sign out a lost laptop", "snapcli cloud sessions end 12"),
		Args:    command.ExactArgs("session ID"),
		RunE: a.remove(removal{connect: a.signedIn, remove: (*api.Client).EndSession, kind: "session",
			list: "snapcli cloud sessions", done: "signed the session %s out"}),
		ValidArgsFunction: completeEntries(a, a.signedIn, (*api.Client).Sessions,
			func(s api.Session) (string, string) { return s.ID, s.Name }),
	}
}
