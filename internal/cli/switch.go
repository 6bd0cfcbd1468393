package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/login"
)

func (a *app) switchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "switch [ACCOUNT]",
		Short: "Switch to another of your accounts",
		Long: `Switch changes the account in use if you are signed in to several accounts of
the cloud service, such as those of two organizations. Name the account, its
organization or its e-mail address. With two accounts, the name is optional.

For one command, use --org SLUG or set ` + accountEnv + ` instead. The commands
share and unshare need ` + accountEnv + `: their --org names the recipient.`,
		Example: examples(
			"list your accounts", "snapcli whoami --all",
			"use the account of another organization", "snapcli switch globex",
			"for one command only", "snapcli cloud snapshots --org globex"),
		Args:              command.AtMostOneArg("account"),
		ValidArgsFunction: a.completeAccount,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, base, file, err := a.loginSessions()
			if err != nil {
				return err
			}
			s, err := file.Switch(cmd.Context(), base,
				login.Choice{Org: a.flags.org, Account: cmp.Or(args...)})
			if err != nil {
				return err
			}
			a.done(s.Account(), "switched to the account %s%s", s.Account(), asWhom(s))
			if key, first := a.keyFirst(agent); first {
				a.warn("%s is set and overrides this account", key.Where)
			}
			a.warnOfEnv(s)
			return nil
		},
	}
}

// warnOfEnv warns if the environment selects an account other than this one.
func (a *app) warnOfEnv(s login.Session) {
	name := a.env(accountEnv)
	if name != "" && !slices.Contains([]string{s.Account(), s.Organization, s.Email}, name) {
		a.warn("%s is set and selects another account: %s", accountEnv, name)
	}
}

// noteAccounts notes, after a login, the other accounts on this machine.
func (a *app) noteAccounts(s login.Session) error {
	file, err := a.credentials()
	if err != nil {
		return err
	}
	all, _, err := file.Accounts(s.CloudURL)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(all, func(o login.Session) bool { return o.Account() == s.Account() })
	if len(others) > 0 {
		a.note("this account is named %s; `snapcli switch NAME` switches to another one: %s", s.Account(),
			namesOf(others))
	}
	a.warnOfEnv(s)
	return nil
}

func namesOf(all []login.Session) string {
	var names []string
	for _, s := range all {
		names = append(names, s.Account())
	}
	return strings.Join(names, ", ")
}

func (a *app) completeAccount(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeAccounts(login.Session.Account)(cmd, args, typed)
}

// completeAccounts offers one property of each account on this machine.
func (a *app) completeAccounts(property func(login.Session) string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		_, base, file, err := a.loginSessions()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, _, _ := file.Accounts(base) // after an error, nothing is offered
		for _, s := range all {
			if word := property(s); word != "" {
				out = append(out, cobra.CompletionWithDesc(word, cmp.Or(s.Email, s.Organization)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
