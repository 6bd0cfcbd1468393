package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) configPathCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Show the path of the config file",
		Long:    "Path prints the path of the config file, whether it exists or not.",
		Example: examples("read it", `cat "$(snapcli config path)"`),
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := a.configPath()
			if err == nil {
				a.result("%s", path)
			}
			return err
		},
	}
}

// configPath returns the path of the config file, even if the file cannot be read.
func (a *app) configPath() (string, error) {
	if a.flags.config != "" {
		return filepath.Abs(a.flags.config)
	}
	dir, err := local.ConfigDir(a.env)
	return filepath.Join(dir, "config.yaml"), err
}
