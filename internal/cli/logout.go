package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/login"
)

func (a *app) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "logout [ACCOUNT]",
		Short: "Clear the stored login session",
		Long: `Logout ends the login session at the auth service and deletes it from this
machine. When the service cannot be reached, logout still deletes it here and
prints a warning.

It ends the session of the account in use, or of the one that you name. Your
other accounts stay signed in. None of them becomes the account in use: choose
one with ` + "`snapcli switch`" + `.`,
		Example: examples(
			"sign out", "snapcli logout",
			"sign out of one of several accounts", "snapcli logout globex",
			"sign out of all of them", "snapcli logout --all"),
		Args:              command.AtMostOneArg("account"),
		ValidArgsFunction: a.completeAccount,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return snap.Usage("--all signs out of every account, but an account is named too",
					command.UsageHint(cmd))
			}
			return a.logout(cmd.Context(), args, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "sign out of every account of the service")
	return cmd
}

func (a *app) logout(ctx context.Context, args []string, all bool) error {
	agent, base, file, err := a.loginSessions()
	if err != nil {
		return err
	}
	accounts, _, err := file.Accounts(base)
	if err != nil {
		return err
	}
	switch {
	case len(accounts) == 0:
		a.note("you were not signed in to %s", base)
		return nil
	case !all:
		if len(args) > 0 {
			file.Choose(login.Choice{Account: args[0]})
		}
		err = a.logoutOne(ctx, file, base)
	default:
		for _, s := range accounts {
			file.Choose(login.Choice{Account: s.Account()})
			if err = a.logoutOne(ctx, file, base); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if _, set := configuredKey(agent); set {
		a.note("an API key is still configured; see `snapcli whoami`")
	}
	return nil
}

// logoutOne signs out of the selected account.
func (a *app) logoutOne(ctx context.Context, file *login.File, base string) error {
	s, _, err := file.Session(base)
	if err != nil {
		return err
	}
	ended, err := login.Logout(ctx, file, base, a.http())
	switch {
	case !ended && err != nil:
		return err
	case err != nil:
		a.warn("%s", err)
	}
	left, inUse, err := file.Accounts(base)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		a.done("", "signed out of %s", base)
		return nil
	}
	a.done("", "signed out of %s as the account %s", base, s.Account())
	if inUse == "" {
		a.note("use one of your other accounts with `snapcli switch NAME`: %s", namesOf(left))
	}
	return nil
}
