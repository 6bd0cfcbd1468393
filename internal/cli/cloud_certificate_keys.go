package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/command"
)

func (a *app) certificateKeysCommand() *cobra.Command {
	cmd := a.certificateKeysListCommand("certificate-keys")
	cmd.Short = "Choose whose certificates the organization accepts"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.certificateKeysListCommand("list"), a.certificateKeysAddCommand(),
		a.certificateKeysRevokeCommand())
	return cmd
}

func (a *app) certificateKeysListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the certificate keys",
		Long: `The certificate of a sanitized snapshot is valid in the cloud if it was signed
by a key that the organization registered and has not revoked. If the
organization's policy has "share_requires: certificate", only snapshots with a
valid certificate can be shared. Everybody in the organization can list the
keys. Owners and admins register and revoke them.`,
		Example: examples("list the keys", "snapcli cloud certificate-keys"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.CertificateKey]{
			connect: a.connect,
			list:    (*api.Client).CertificateKeys,
			empty:   "there are no certificate keys; register one with `snapcli cloud certificate-keys add PUBLIC-KEY`",
			columns: []column{{title: "Key", least: 16}, {title: "Name", least: 4}, {title: "State", least: 7},
				momentColumn("Since", 1)},
			row: func(k api.CertificateKey) []string {
				if k.RevokedAt != nil {
					return []string{k.ID, k.Name, "revoked", a.moment(*k.RevokedAt)}
				}
				return []string{k.ID, k.Name, "accepted", a.moment(k.CreatedAt)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) certificateKeysAddCommand() *cobra.Command {
	var r api.CertificateKeyRequest
	cmd := &cobra.Command{
		Use:   "add PUBLIC-KEY",
		Short: "Accept the certificates of a key",
		Long: `Add registers the public key of somebody who sanitizes snapshots for the
organization. On their machine, ` + "`snapcli keys export`" + ` prints it. Certificates
that the key signed are then valid, including those of snapshots that were
pushed earlier. A revoked key cannot be registered again.`,
		Example: examples("accept the certificates of this machine",
			`snapcli cloud certificate-keys add "$(snapcli keys export)" --name laptop`),
		Args: command.ExactArgs("public key"),
		RunE: a.withService(func(ctx context.Context, conn *connection, args []string) error {
			r.Public = args[0]
			k, err := conn.AddCertificateKey(ctx, r)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(k)
			}
			a.done(k.ID, "registered the certificate key %s; its certificates are valid", k.ID)
			return nil
		}),
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "a readable name for the key")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) certificateKeysRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke KEY-ID",
		Short: "Refuse the certificates of a key",
		Long: `Revoke makes the certificates of a key invalid, including those of snapshots
that were pushed earlier. If the organization's policy has "share_requires:
certificate", these snapshots can no longer be shared. Existing shares stay
until somebody ends them. A revoked key stays revoked.`,
		Example: examples("revoke a key", "snapcli cloud certificate-keys revoke 21fe31dfa154a261"),
		Args:    command.ExactArgs("key ID"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).RevokeCertificateKey, kind: "certificate key",
			list: "snapcli cloud certificate-keys", done: "revoked the certificate key %s"}),
	}
}
