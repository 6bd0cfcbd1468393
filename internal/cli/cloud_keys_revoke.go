package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/command"
)

func (a *app) keysRevokeCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "revoke KEY-ID",
		Short: "Revoke an API key immediately",
		Long: "Revoke ends an API key. The service refuses every further request with the key.\n" +
			"Owners and admins can revoke every key that `snapcli cloud keys --all` lists.",
		Example: examples("revoke a key", "snapcli cloud keys revoke 12"),
		Args:    command.ExactArgs("key ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), yes, "Revoke the key "+args[0]+"?",
				"Programs that use it stop working."); err != nil {
				return err
			}
			if err := conn.RevokeKey(cmd.Context(), args[0]); err != nil {
				return noSuch(err, "API key", args[0], "list them with `snapcli cloud keys`")
			}
			a.done("", "revoked the key %s", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "revoke without asking")
	mine := func(c *api.Client, ctx context.Context) ([]api.Key, error) { return c.Keys(ctx, api.KeyFilter{}) }
	cmd.ValidArgsFunction = completeEntries(a, a.signedIn, mine,
		func(k api.Key) (string, string) { return k.ID, k.Name + " " + k.Hint })
	return cmd
}
