package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
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
		Long:    "Lists the devices and browsers where you are signed in.",
		Example: examples("see your sessions", "snapcli cloud sessions"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			sessions, err := conn.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			return a.printSessions(sessions)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printSessions(sessions []api.Session) error {
	if a.flags.json {
		return a.printJSON(emptyNotNull(sessions))
	}
	t := a.newTable(column{title: "ID"}, column{title: "Kind"}, column{title: "Name", least: 10},
		column{title: "Address", least: 8},
		momentColumn("Last used", 1), momentColumn("Expires", 0), column{title: "This one", paint: paintShared})
	for _, s := range sessions {
		this := ""
		if s.Current {
			this = "Yes"
		}
		t.row(s.ID, s.Kind, s.Name, s.Address, a.when(s.LastUsed), a.moment(s.ExpiresAt), this)
	}
	return t.flush()
}

func (a *app) sessionsEndCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "end SESSION-ID",
		Short:   "Sign a device or browser out at once",
		Long:    "End signs one of your devices or browsers out, from its next request on.",
		Example: examples("sign a lost laptop out", "snapcli cloud sessions end 12"),
		Args:    command.ExactArgs("session ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			if err := conn.EndSession(cmd.Context(), args[0]); err != nil {
				return noSuch(err, "session", args[0], "list them with `snapcli cloud sessions`")
			}
			a.done("", "signed the session %s out", args[0])
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			var out []cobra.Completion
			a.liveSession(cmd, func(ctx context.Context, c *connection) error {
				sessions, err := c.Sessions(ctx)
				for _, s := range sessions {
					out = append(out, cobra.CompletionWithDesc(s.ID, snap.CleanText(s.Name)))
				}
				return err
			})
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
