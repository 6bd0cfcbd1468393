package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"snap"
)

// userAgent is what snapcli calls itself to the service.
func userAgent() string { return "snapcli/" + snap.Version() }

// build is what version prints as JSON.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of snapcli",
		Long:    "Version prints what is running: the version, and what it was built with and for.",
		Example: "  snapcli version\n  snapcli version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.flags.json {
				return a.printJSON(build{snap.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			if a.flags.quiet {
				a.result("%s", snap.Version())
				return nil
			}
			a.result("snapcli %s (%s, %s/%s)", snap.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
