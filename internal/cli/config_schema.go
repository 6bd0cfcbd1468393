package cli

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"

	"snap/internal/command"
)

// configSchema is the JSON schema of config.yaml. A test compares it with local.Config.
//
//go:embed config.schema.json
var configSchema string

func (a *app) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON schema of the config file, for editors",
		Long: `Schema prints the JSON schema of config.yaml. Editors with the YAML language
server use it to complete and check the file if its first line is:

  # yaml-language-server: $schema=./config.schema.json`,
		Example: examples("save it next to the config file",
			`snapcli config schema > "$(dirname "$(snapcli config path)")/config.schema.json"`),
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.result("%s", raw(strings.TrimSpace(configSchema)))
			return nil
		},
	}
}
