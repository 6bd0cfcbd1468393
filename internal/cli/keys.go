package cli

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Manage the keys that sign and check certificates",
		Long: `A snapshot that is sanitized on a machine with a signing key gets a certificate:
a signed statement that names the original, the rules that were applied, and the
result of the leak scan, which looks for original values in the copy. The
certificate does not say whether the rules were good. To check certificates, use
` + "`snapcli snapshots verify`" + `. Create a key with ` + "`snapcli keys new`" + `, or set
SNAPCLI_SIGNING_KEY to a private key, for example in a CI job.`,
		Example: examples("create this machine's key", "snapcli keys new --name ci"),
		Args:    command.RequireKnown,
	}
	cmd.AddCommand(a.keysNewCommand(), a.signingKeysCommand(), a.keysExportCommand(), a.keysTrustCommand(),
		a.revokeSigningKeyCommand())
	return cmd
}

// signingKeyView is the JSON form of a key.
type signingKeyView struct {
	ID      string     `json:"id"`
	Name    string     `json:"name,omitempty"`
	Public  string     `json:"public" doc:"public key as text"`
	Own     bool       `json:"own" doc:"its private key was created on this machine"`
	Since   time.Time  `json:"since" doc:"when the key was added on this machine"`
	Revoked *time.Time `json:"revoked_at,omitempty" doc:"time since which its certificates are refused"`
}

func viewSigningKey(k local.SigningKey) signingKeyView {
	v := signingKeyView{ID: k.ID(), Name: k.Name, Public: k.Public, Own: k.Own, Since: k.Since}
	if !k.Revoked.IsZero() {
		v.Revoked = &k.Revoked
	}
	return v
}

// printChangedKey prints the key that a command changed.
func (a *app) printChangedKey(k local.SigningKey, format string, args ...any) error {
	if a.flags.json {
		return a.printJSON(viewSigningKey(k))
	}
	a.done(k.ID(), format, args...)
	return nil
}

func (a *app) keysNewCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Create this machine's signing key",
		Long: `The key signs the certificates of all snapshots that are sanitized on this
machine from now on. The private key stays in the data folder. Others need the
public key, which ` + "`snapcli keys export`" + ` prints.`,
		Example: examples("create a key", "snapcli keys new --name ci"),
		Args:    command.NoArgs,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, _ []string) error {
			k, err := agent.NewSigningKey(name)
			if err != nil {
				return err
			}
			return a.printChangedKey(k, "created the signing key %s; others trust it with `snapcli keys trust %s`",
				k.ID(), k.Public)
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "a readable name for the key")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) signingKeysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the known keys",
		Long:    "List prints this machine's key and the public keys of others, including revoked\nones.",
		Example: examples("list them", "snapcli keys list"),
		Args:    command.NoArgs,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, _ []string) error {
			all, err := agent.SigningKeys()
			if err != nil {
				return err
			}
			return a.printSigningKeys(all)
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printSigningKeys(all []local.SigningKey) error {
	if a.flags.json {
		return a.printJSON(viewAll(all, viewSigningKey))
	}
	if len(all) == 0 {
		a.note("there are no keys; create one with `snapcli keys new`")
		return nil
	}
	t := a.newTable(column{title: "Key", least: 16}, column{title: "Name", least: 4}, column{title: "State", least: 7},
		momentColumn("Since", 1))
	for _, k := range all {
		state := "trusted"
		if k.Own {
			state = "own"
		}
		if !k.Revoked.IsZero() {
			state = "revoked"
		}
		t.row(k.ID(), k.Name, state, a.moment(k.Since))
	}
	return t.flush()
}

func (a *app) keysExportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export [KEY]",
		Short: "Print a public key",
		Long: `Export prints this machine's public key, or the public key with the given ID or
name. With ` + "`snapcli keys trust`" + `, other people accept the certificates that this
key signed for sanitized snapshots. An owner or admin registers the key in the
cloud with ` + "`snapcli cloud certificate-keys add`" + `.`,
		Example: examples("print this machine's public key", "snapcli keys export"),
		Args:    command.AtMostOneArg("key"),
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			k, err := agent.SigningKey(cmp.Or(args...))
			if err != nil {
				return err
			}
			a.result("%s", k.Public)
			return nil
		}),
	}
}

func (a *app) keysTrustCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "trust PUBLIC-KEY",
		Short: "Accept the certificates of somebody else's key",
		Long: `Trust makes ` + "`snapcli snapshots verify`" + ` on this machine accept the certificates
of a public key. Do not get the key through the same channel as the snapshot.`,
		Example: examples("trust a key",
			"snapcli keys trust snapkey-11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"),
		Args: command.ExactArgs("public key"),
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			k, err := agent.TrustSigningKey(args[0], name)
			if err != nil {
				return err
			}
			return a.printChangedKey(k, "certificates of the key %s are accepted", k.ID())
		}),
	}
	cmd.Flags().StringVar(&name, "name", "", "a readable name for the key")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) revokeSigningKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke KEY",
		Short: "Refuse the certificates of a key",
		Long: `Revoke makes this machine refuse all certificates of a key, including those of
earlier snapshots. If the key is this machine's own, its private key is deleted.
A revoked key stays revoked.`,
		Example: examples("revoke a key", "snapcli keys revoke ci"),
		Args:    command.ExactArgs("key"),
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			k, err := agent.RevokeSigningKey(args[0])
			if err != nil {
				return err
			}
			return a.printChangedKey(k, "certificates of the key %s are refused", k.ID())
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}
