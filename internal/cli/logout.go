package cli

import (
	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/login"

	"snap/internal/command"
)

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Clear the stored login session",
		Long: `Logout ends the login session at the auth service and deletes it from this
machine. When the service cannot be reached, logout still deletes it here and
prints a warning.`,
		Example: examples("sign out", "snapcli logout"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			base, err := api.CheckBaseURL(agent.Config().Cloud.URL)
			if err != nil {
				return err
			}
			file, err := a.credentials()
			if err != nil {
				return err
			}
			ended, err := login.Logout(cmd.Context(), file, base, a.http())
			switch {
			case !ended && err != nil:
				return err
			case !ended:
				a.note("you were not signed in to %s", base)
				return nil
			case err != nil:
				a.warn("%s", err)
			}
			a.done("", "signed out of %s", base)
			if _, set := keyOf(agent); set {
				a.note("an API key is still configured; see `snapcli whoami`")
			}
			return nil
		},
	}
}
