package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
)

// userAgent is the User-Agent that snapcli sends to the service.
func userAgent() string { return "snapcli/" + snap.Version() }

// versionView is the JSON output of version.
type versionView struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of snapcli",
		Long:    "Version prints the version of snapcli, its Go version and its platform.",
		Example: examples("show it", "snapcli version", "for a script", "snapcli version --json"),
		Args:    command.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion() },
	}
	a.jsonFlag(cmd)
	return cmd
}

// printVersion implements both `snapcli version` and `snapcli --version`.
func (a *app) printVersion() error {
	switch {
	case a.flags.json:
		return a.printJSON(versionView{snap.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
	case a.flags.quiet:
		a.result("%s", snap.Version())
	default:
		a.result("snapcli %s (%s, %s/%s)", snap.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	return nil
}
