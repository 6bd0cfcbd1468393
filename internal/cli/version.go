package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what is running: the module's version, or the revision it was
// built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

// userAgent is what snapcli calls itself to the service.
func userAgent() string { return "snapcli/" + version() }

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
				return a.printJSON(build{version(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			if a.flags.quiet {
				a.result("%s", version())
				return nil
			}
			a.result("snapcli %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
