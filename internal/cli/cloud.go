package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/command"
)

func (a *app) cloudCommand() *cobra.Command {
	cmd := command.Parent("cloud", "See and share what is in the cloud service",
		`The commands below cloud work with the cloud service at cloud.url, by an API key
or the login session (see `+"`snapcli whoami`"+`).`)
	cmd.AddCommand(a.cloudSnapshotsCommand(), a.cloudGroupsCommand(), a.cloudKeysCommand(), a.cloudSessionsCommand(),
		a.cloudUploadsCommand(), a.cloudAuditCommand(),
		a.cloudChannelsCommand(), a.cloudRetentionCommand(), a.cloudWebhooksCommand())
	return cmd
}
