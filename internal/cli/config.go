package cli

import (
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snap/internal/local"

	"snap/internal/command"
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
		Short: "Show every setting and its source",
		Long: `Show prints the configuration in effect: each value, and whether it comes from
the config file, an environment variable (SNAPCLI_ and the key in capitals, with
__ for a dot) or a default. Secrets are masked.`,
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

// settings lists the effective configuration with secrets masked: the values that are set, and
// always cloud.url and cloud.api_key. It omits the clones, schedule, time zone and checks of
// targets.
func settings(agent *local.Agent) []setting {
	c := agent.Config()
	var list []setting
	put := func(key, value string) {
		if origin := agent.Origin(key); origin != "default" || strings.HasPrefix(key, "cloud.") {
			list = append(list, setting{key, value, origin})
		}
	}
	put("cloud.url", c.Cloud.URL)
	put("cloud.api_key", maskKey(c.Cloud.APIKey))
	if c.Cloud.CAFile != "" {
		put("cloud.ca_file", c.Cloud.CAFile)
	}
	if c.Cloud.PlainStorage {
		put("cloud.plain_storage", "true")
	}
	for _, t := range agent.Targets() {
		key := "targets." + t.Name + "."
		put(key+"source", hidePassword(t.Source))
		put(key+"destination", hidePassword(t.Destination))
		put(key+"scratch", hidePassword(t.Scratch))
		put(key+"jobs", strconv.Itoa(t.Jobs))
		put(key+"production", strconv.FormatBool(t.Production))
		put(key+"encrypt_to", strings.Join(t.EncryptTo, ", "))
		put(key+"sanitize.rules", t.Sanitize.Rules)
		put(key+"sanitize.sql", t.Sanitize.SQL)
		if prove := t.Sanitize.Prove; prove != nil {
			put(key+"sanitize.prove", strconv.FormatBool(*prove))
		}
		put(key+"subset", limits(t.Subset))
		put(key+"after_load", t.AfterLoad)
		put(key+"grants", strings.Join(t.Grants, "; "))
		for _, s := range viewWay(t).settings() {
			put(key+s[0], s[1])
		}
		for _, list := range choiceLists(t.Choice()) {
			put(key+list.key, strings.Join(list.patterns, ", "))
		}
	}
	if own := c.Trust.OwnOrganization; own != nil {
		put("trust.own_organization", strconv.FormatBool(*own))
	}
	put("identities", maskIdentities(c.Identities))
	put("postgres_tools", strings.Join(c.PostgresTools, ", "))
	var names []string
	for name := range c.StorageProfiles {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		put("storage_profiles."+name+".url", hidePassword(c.StorageProfiles[name].URL))
	}
	return list
}
