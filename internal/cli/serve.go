package cli

import (
	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/webui"
)

func (a *app) serveCommand() *cobra.Command {
	var o webui.Options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Start the web UI on this machine",
		Long: `Serve starts the web UI, which shows the snapshots on this machine and in the
cloud side by side. By default, only this machine can reach it. To open it, use
the one-time link that serve prints; to stop it, press Ctrl-C. The web UI keeps
the account that was in use when it started, until you sign out there.`,
		Example: examples(
			"start and open a browser", "snapcli serve --open",
			"listen on a port of your choice, and only print the link", "snapcli serve --listen 127.0.0.1:9000"),
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Agent, o.Client, err = a.open(); err != nil {
				return err
			}
			if o.Sessions, err = a.credentials(); err != nil {
				return err
			}
			o.HTTP = a.http()
			o.Out, o.Version, o.Env, o.Now, o.Log = a.io.Out, snap.Version(), a.env, a.now, a.log
			return webui.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Listen, "listen", "",
		"address to listen on (default 127.0.0.1:8484, or the next free port)")
	cmd.Flags().BoolVar(&o.Open, "open", false, "open the link in a browser")
	cmd.Flags().BoolVar(&o.AllowRemote, "allow-remote", false, "allow an address that other machines can reach")
	cmd.Flags().StringSliceVar(&o.Hosts, "host", nil,
		"additional host names that browsers may use")
	return cmd
}
