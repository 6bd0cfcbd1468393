package cli

import (
	"bufio"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) configGetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print one setting",
		Long: `Get prints the effective value of one setting, from the config file or the
environment. Secrets are masked. The exit code is 3 if the setting has no value.`,
		Example:           examples("show the service in use", "snapcli config get cloud.url"),
		Args:              command.ExactArgs("key"),
		ValidArgsFunction: a.completeSettings,
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := a.configuration()
			if err != nil {
				return err
			}
			s, err := agent.Setting(args[0])
			if err != nil {
				return err
			}
			if s.Origin == "default" {
				return &snap.Error{Code: snap.CodeNotFound, Detail: s.Key + " is not set",
					Hint: "set it with `snapcli config set " + s.Key + " VALUE`"}
			}
			s.Value = hideSecret(s)
			if a.flags.json {
				return a.printJSON(setting{s.Key, s.Value, s.Origin})
			}
			a.result("%s", s.Value)
			return nil
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) configSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Change one setting in the config file",
		Long: `Set writes one setting into the config file and leaves the rest of the file
unchanged, comments included. Separate the entries of a list with commas, and
the statements of grants with semicolons. An entry that contains this separator
can only be written with ` + "`snapcli config edit`" + `. The value is checked first: an
invalid one changes nothing. An empty value ('') removes the setting.

If the value is -, it is read from standard input, so that a secret does not get
into the history of your shell.`,
		Example: examples(
			"set the service to use", "snapcli config set cloud.url https://cloud.example",
			"protect a destination", "snapcli config set targets.shop.production true",
			"a key, without showing it", "snapcli config set cloud.api_key - < key.txt"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && args[0] != "" { // an empty value removes a setting
				return nil
			}
			return command.ExactArgs("key", "value")(cmd, args)
		},
		ValidArgsFunction: a.completeSettings,
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := a.configuration()
			if err != nil {
				return err
			}
			key, value := args[0], args[1]
			switch {
			case value == "-":
				line, err := bufio.NewReader(a.io.In).ReadString('\n')
				if value = strings.TrimRight(line, "\r\n"); value == "" {
					return &snap.Error{Code: snap.CodeUsage, Detail: "standard input is empty",
						Hint: "send the value to standard input, for example with < key.txt", Cause: err}
				}
			case key == "cloud.api_key" && value != "":
				a.warn("the key may now be in your shell's history; use - to read it from standard input")
			}
			variable, err := agent.Set(key, value)
			if err != nil {
				return err
			}
			if value == "" {
				a.done("", "removed %s from %s", key, agent.ConfigPath())
			} else {
				a.done("", "set %s to %s in %s", key, hideSecret(local.Setting{Key: key, Value: value}),
					agent.ConfigPath())
			}
			a.warnOfPassword(value)
			if variable != "" {
				a.warn("%s is set and overrides the file", variable)
			}
			return nil
		},
	}
}

// hideSecret returns a setting's value with passwords and keys masked.
func hideSecret(s local.Setting) string {
	switch {
	case s.Key == "cloud.api_key":
		return maskKey(s.Value)
	case s.Key == "identities":
		return maskIdentities(strings.Split(s.Value, ","))
	case strings.HasSuffix(s.Key, "password_command"):
		return programOf(strings.Split(s.Value, ","))
	}
	return hidePassword(s.Value)
}

// completeSettings offers the names of settings, including those of the configured targets.
func (a *app) completeSettings(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var out []cobra.Completion
	agent, err := a.configuration()
	for _, key := range local.SettingKeys() {
		switch {
		case !strings.Contains(key, "NAME"):
			out = append(out, key)
		case err == nil && strings.HasPrefix(key, "targets.") && strings.Count(key, "NAME") == 1:
			for _, t := range agent.Targets() {
				out = append(out, strings.Replace(key, "NAME", snap.CleanText(t.Name), 1))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
