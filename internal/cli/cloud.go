package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/command"
)

func (a *app) cloudCommand() *cobra.Command {
	cmd := command.Parent("cloud", "See, share and manage cloud snapshots",
		`The cloud commands use the service whose URL is the setting cloud.url. They use
an API key or the login session (see `+"`snapcli whoami`"+`).`)
	cmd.AddCommand(a.cloudSnapshotsCommand(), a.cloudGroupsCommand(), a.cloudKeysCommand(), a.cloudSessionsCommand(),
		a.cloudUploadsCommand(), a.cloudAuditCommand(), a.certificateKeysCommand(), a.cloudRequestsCommand(),
		a.cloudChannelsCommand(), a.cloudRetentionCommand(), a.cloudWebhooksCommand())
	return cmd
}
