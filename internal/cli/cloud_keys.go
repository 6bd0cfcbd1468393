package cli

import (
	"github.com/spf13/cobra"

	"snap/api"

	"snap/internal/command"
)

func (a *app) cloudKeysCommand() *cobra.Command {
	cmd := a.keysListCommand("keys")
	cmd.Short = "List, make and revoke API keys"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.keysListCommand("list"), a.keysCreateCommand(), a.keysRevokeCommand())
	return cmd
}

func (a *app) keysListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List API keys",
		Long: `Lists your API keys, without their secrets. Only a signed-in person manages
keys: this command uses the login session, even when an API key is configured.`,
		Example: examples("list your keys", "snapcli cloud keys"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			keys, err := conn.Keys(cmd.Context())
			if err != nil {
				return err
			}
			return a.printKeys(keys)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printKeys(keys []api.Key) error {
	if a.flags.json {
		return a.printJSON(emptyNotNull(keys))
	}
	if len(keys) == 0 {
		a.note("you have no API keys; create one with `snapcli cloud keys create NAME`")
		return nil
	}
	t := a.newTable(column{title: "ID"}, column{title: "Kind"}, column{title: "Name", least: 8},
		column{title: "Key", least: 8},
		momentColumn("Last used", 1), momentColumn("Expires", 2))
	for _, k := range keys {
		used := "never"
		if k.LastUsed != nil {
			used = a.when(*k.LastUsed)
		}
		t.row(k.ID, string(k.Kind), k.Name, k.Hint, used, a.until(k.ExpiresAt))
	}
	return t.flush()
}
