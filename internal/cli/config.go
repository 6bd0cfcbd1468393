package cli

import (
	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) configCommand() *cobra.Command {
	cmd := a.configShowCommand("config")
	cmd.Short = "Show, check, edit and import the configuration"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.configShowCommand("show"), a.configGetCommand(), a.configSetCommand(), a.configPathCommand(),
		a.configEditCommand(), a.configCheckCommand(), a.configSchemaCommand(), a.configImportCommand())
	return cmd
}

// setting is one configuration value and its source.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value" doc:"secrets are masked"`
	Source string `json:"source" doc:"file, environment or default"`
}

func (a *app) configShowCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show the settings and their sources",
		Long: `The command prints the settings in the config file and in environment variables
(SNAPCLI_ and the key in capitals, with __ for a dot). It always prints
cloud.url and cloud.api_key. Secrets are masked.`,
		Example: examples("show it", "snapcli config show"),
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			agent, err := a.configuration()
			if err != nil {
				return err
			}
			list := settings(agent)
			if a.flags.json {
				return a.printJSON(list)
			}
			t := a.newTable(column{title: "Key", least: 16, cut: keepEnd}, column{title: "Value", least: 12, weight: 1},
				column{title: "Source"})
			for _, s := range list {
				t.row(s.Key, s.Value, s.Source)
			}
			return t.flush()
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

// settings lists the settings that the file or the environment contains, and always cloud.url and
// cloud.api_key. Secrets are masked.
func settings(agent *local.Agent) (list []setting) {
	for _, s := range agent.Settings() {
		if s.Origin != "default" || s.Key == "cloud.url" || s.Key == "cloud.api_key" {
			list = append(list, setting{s.Key, hideSecret(s), s.Origin})
		}
	}
	return list
}
