package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudKeysCommand() *cobra.Command {
	cmd := a.keysListCommand("keys")
	cmd.Short = "List, create and revoke API keys"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.keysListCommand("list"), a.keysCreateCommand(), a.keysRevokeCommand())
	return cmd
}

func (a *app) keysListCommand(use string) *cobra.Command {
	var all bool
	var idle string
	cmd := &cobra.Command{
		Use:   use,
		Short: "List API keys",
		Long: `List shows your API keys, without their secrets. Owners and admins can list the
keys of the whole organization with --all, for example to revoke keys that
nobody needs. For --idle, a key that was never used counts as idle since its
creation. Only a signed-in person can manage keys, so this command uses the
login session even when an API key is configured.`,
		Example: examples("list your keys", "snapcli cloud keys",
			"everybody's keys that have not been used for 90 days", "snapcli cloud keys --all --idle 90d"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := api.KeyFilter{All: all}
			if idle != "" {
				var err error
				if filter.Idle, err = snap.ParseDuration(idle); err != nil {
					return snap.Usage("--idle: "+err.Error(), "give a duration such as 90d")
				}
			}
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			keys, err := conn.Keys(cmd.Context(), filter)
			if err != nil {
				return err
			}
			return a.printKeys(keys, filter)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list the keys of the whole organization (owners and admins)")
	cmd.Flags().StringVar(&idle, "idle", "", "list only keys that have not been used for this long, such as 90d")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printKeys(keys []api.Key, filter api.KeyFilter) error {
	if a.flags.json {
		return a.printJSON(emptyNotNull(keys))
	}
	if len(keys) == 0 && filter != (api.KeyFilter{}) {
		a.note("no API keys match")
		return nil
	}
	if len(keys) == 0 {
		a.note("you have no API keys that act as you; create one with `snapcli cloud keys create NAME`, or list the " +
			"organization's with `snapcli cloud keys --all` (owners and admins)")
		return nil
	}
	columns := []column{{title: "ID"}, {title: "Kind"}, {title: "Name", least: 8}, {title: "Key", least: 8}}
	if filter.All {
		columns = append(columns, column{title: "User", least: 8})
	}
	t := a.newTable(append(columns, column{title: "From", least: 8}, momentColumn("Last used", 1),
		momentColumn("Expires", 2))...)
	for _, k := range keys {
		used := "never"
		if k.LastUsed != nil {
			used = a.when(*k.LastUsed)
		}
		row := []string{k.ID, string(k.Kind), k.Name, k.Hint}
		if filter.All {
			row = append(row, cmp.Or(k.User, "-"))
		}
		t.row(append(row, cmp.Or(strings.Join(k.From, " "), "anywhere"), used, a.until(k.ExpiresAt))...)
	}
	return t.flush()
}
