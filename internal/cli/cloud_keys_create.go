package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) keysCreateCommand() *cobra.Command {
	var kind, expiresIn string
	var scopes, from []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an API key and show it once",
		Long: `Create makes an API key and shows it once, on standard output. Store the key in
the secrets of your CI system as ` + apiKeyEnv + `.

A cak key acts as you. A clt key is for pipelines, and a sak key for service
agents. Only owners and admins can create these two kinds, and must give
--scopes. Both act as the organization, within their scopes, and never change a
share. They see snapshots that are shared org-wide, snapshots that other
organizations shared with yours, and snapshots that clt or sak keys pushed. With
the scope private, they see every snapshot of the organization.

A cak key stops working when you leave the organization. With --from, a key
works only from the networks that you list; from anywhere else, the service
refuses the key as if it did not exist.`,
		Example: examples(
			"a key that acts as you, for 90 days", "snapcli cloud keys create laptop --expires-in 90d",
			"a key for the office network", "snapcli cloud keys create nightly --from 10.0.0.0/8 --expires-in 90d",
			"a pipeline's key that only pulls", "snapcli cloud keys create ci --kind clt --scopes pull"),
		Args: command.ExactArgs("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.createKey(cmd.Context(), args[0], kind, expiresIn, scopes, from)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", string(snap.UserKey), "kind of key: cak, clt or sak")
	cmd.Flags().StringVar(&expiresIn, "expires-in", "",
		"how long the key is valid, such as 90d (default: it never expires)")
	cmd.Flags().StringSliceVar(&from, "from", nil,
		"networks from which the key may be used, such as 10.0.0.0/8; at most 100 (default: anywhere)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil,
		"what the key may do: pull, push, private (required for clt and sak; a cak key has none)")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]cobra.Completion{"cak", "clt", "sak"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scopes",
		cobra.FixedCompletions([]cobra.Completion{"pull", "push", "pull,push", "pull,private"},
			cobra.ShellCompDirectiveNoFileComp))
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) createKey(ctx context.Context, name, kind, expiresIn string, scopes, from []string) error {
	seconds, err := secondsOf(expiresIn)
	if err != nil {
		return err
	}
	r := api.KeyRequest{Kind: snap.CredentialKind(kind), Name: name, ExpiresIn: seconds, From: from}
	if !r.Kind.IsKey() {
		return snap.Usage(fmt.Sprintf("%q is not a kind of key", kind), "use --kind cak, clt or sak")
	}
	for _, s := range scopes {
		r.Scopes = append(r.Scopes, snap.Scope(strings.TrimSpace(s)))
	}
	conn, err := a.signedIn()
	if err != nil {
		return err
	}
	k, err := conn.NewKey(ctx, r)
	if err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(k)
	}
	a.note("created the %s key %q, which %s; this is the only time it is shown:", string(k.Kind), k.Name,
		a.keyLife(k.ExpiresAt))
	a.result("%s", k.Secret)
	return nil
}

func (a *app) keyLife(expires *time.Time) string {
	if expires == nil {
		return "never expires"
	}
	return "expires " + a.until(expires)
}
