package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/local"
)

func (a *app) cloudKeysCommand() *cobra.Command {
	cmd := a.keysListCommand("keys")
	cmd.Short = "List, make and revoke API keys"
	cmd.Args = knownCommand
	cmd.AddCommand(a.keysListCommand("list"), a.keysCreateCommand(), a.keysRevokeCommand())
	return cmd
}

func (a *app) keysListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List API keys",
		Long: `Lists your API keys, without their secrets. Keys are managed by a signed-in
person: this uses the login session, also when an API key is configured.`,
		Example: examples("list your keys", "snapcli cloud keys"),
		Args:    noArgs,
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

// signedIn connects by the login session.
func (a *app) signedIn() (*connection, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, err
	}
	return a.cloudBySession(agent)
}

func (a *app) printKeys(keys []api.Key) error {
	if a.flags.json {
		return a.printJSON(emptyNotNull(keys))
	}
	if len(keys) == 0 {
		a.note("you have no API key; make one with `snapcli cloud keys create NAME`")
		return nil
	}
	t := a.newTable(column{title: "ID"}, column{title: "Kind"}, column{title: "Name", least: 8}, column{title: "Key", least: 8},
		column{title: "Last used", least: 10, weight: 1}, column{title: "Expires", least: 10, weight: 2})
	for _, k := range keys {
		used := "never"
		if k.LastUsed != nil {
			used = a.relative(*k.LastUsed)
		}
		t.row(k.ID, string(k.Kind), k.Name, k.Hint, used, a.until(k.ExpiresAt))
	}
	return t.flush()
}

func (a *app) keysCreateCommand() *cobra.Command {
	var kind, expiresIn string
	var scopes []string
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an API key and show it once",
		Long: `Create makes an API key. It is shown once, on standard output; keep it in your
CI's secrets as ` + apiKeyEnv + `.

Kinds: cak acts as you; clt is for pipelines and sak for service agents: both
act as the organization, within their scopes, and never change a share.`,
		Example: examples(
			"a key that acts as you, for 90 days", "snapcli cloud keys create laptop --expires-in 90d",
			"a pipeline's key that only pulls", "snapcli cloud keys create ci --kind clt --scopes pull"),
		Args: oneArg("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.createKey(cmd.Context(), args[0], kind, expiresIn, scopes)
		},
	}
	cmd.Flags().StringVar(&kind, "kind", string(snap.UserKey), "cak, clt or sak")
	cmd.Flags().StringVar(&expiresIn, "expires-in", "", "how long it is valid, such as 90d (default without end)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what a clt or sak key may do: pull, push")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]cobra.Completion{"cak", "clt", "sak"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scopes", cobra.FixedCompletions([]cobra.Completion{"pull", "push", "pull,push"}, cobra.ShellCompDirectiveNoFileComp))
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) createKey(ctx context.Context, name, kind, expiresIn string, scopes []string) error {
	expires, err := a.expiry(expiresIn)
	if err != nil {
		return err
	}
	r := api.KeyRequest{Kind: snap.CredentialKind(kind), Name: name, ExpiresAt: expires}
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
	a.note("made the %s key %q, which %s; this is the only time it is shown:", string(k.Kind), k.Name, a.keyLife(k.ExpiresAt))
	a.result("%s", k.Secret)
	return nil
}

func (a *app) keyLife(expires *time.Time) string {
	if expires == nil {
		return "never expires"
	}
	return "expires " + a.until(expires)
}

func (a *app) keysRevokeCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "revoke KEY-ID",
		Short:   "Revoke an API key at once",
		Long:    "Revoke ends an API key. Whoever uses it is refused from the next request on.",
		Example: examples("revoke a key", "snapcli cloud keys revoke 12"),
		Args:    oneArg("key ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := a.signedIn()
			if err != nil {
				return err
			}
			if err := a.confirm(cmd.Context(), yes, "Revoke the key "+args[0]+"?", "Whatever uses it stops working."); err != nil {
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
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		a.liveSession(cmd, func(ctx context.Context, c *connection) error {
			keys, err := c.Keys(ctx)
			for _, k := range keys {
				out = append(out, cobra.CompletionWithDesc(k.ID, clean(k.Name+" "+k.Hint)))
			}
			return err
		})
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// noSuch says what was not found, when it is no snapshot.
func noSuch(err error, what, id, hint string) error {
	if snap.CodeOf(err) != snap.CodeNotFound {
		return err
	}
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no %s %q", what, id), Hint: hint, Cause: err}
}

// open is the agent and its cloud client, which is nil when no cloud service
// is configured or nobody is signed in: for what also works without.
func (a *app) open() (*local.Agent, *api.Client, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, nil, err
	}
	if agent.Config().Cloud.URL == "" {
		return agent, nil, nil
	}
	conn, err := a.cloud(agent)
	if snap.CodeOf(err) == snap.CodeNotSignedIn {
		a.warn("%s; only what is on this machine is shown", err)
		return agent, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return agent, conn.Client, nil
}
