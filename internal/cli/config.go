package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/local"
)

func (a *app) configCommand() *cobra.Command {
	cmd := a.configShowCommand("config")
	cmd.Short = "Show, check and edit the configuration"
	cmd.Args = knownCommand
	cmd.AddCommand(a.configShowCommand("show"), a.configPathCommand(), a.configEditCommand(), a.configCheckCommand())
	return cmd
}

// setting is one value of the configuration and where it is from.
type setting struct {
	Key    string `json:"key"`
	Value  string `json:"value" doc:"secrets are masked"`
	Source string `json:"source" doc:"file, environment or default"`
}

func (a *app) configShowCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show every setting and where it is from",
		Long: `Show prints the configuration in effect: each value, and whether it is from the
config file, from an environment variable (SNAPCLI_ and the key in capitals, with
__ for a dot) or a default. Secrets are masked.`,
		Example: examples("show it", "snapcli config show"),
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			list := settings(agent)
			if a.flags.json {
				return a.printJSON(list)
			}
			t := a.newTable(column{title: "Key", least: 16, cut: keepEnd}, column{title: "Value", least: 12, weight: 1}, column{title: "Source"})
			for _, s := range list {
				t.row(s.Key, s.Value, s.Source)
			}
			return t.flush()
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

// settings lists the configuration in effect, secrets masked: what is set, and
// how the cloud is reached in any case.
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
	for _, t := range agent.Targets() {
		key := "targets." + t.Name + "."
		put(key+"source", hidePassword(t.Source))
		put(key+"destination", hidePassword(t.Destination))
		put(key+"jobs", strconv.Itoa(t.Jobs))
		put(key+"production", strconv.FormatBool(t.Production))
		put(key+"sanitize.rules", t.Sanitize.Rules)
		put(key+"sanitize.sql", t.Sanitize.SQL)
	}
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

// maskKey shows of an API key what its hint shows: the first 8 and last 4.
func maskKey(key string) string {
	switch {
	case key == "":
		return ""
	case len(key) < 24:
		return "[hidden]"
	}
	return key[:8] + "…" + key[len(key)-4:]
}

var passwordInURL = regexp.MustCompile(`(://[^/?#@]*?:)[^/?#@]*@`)

var passwordInQuery = regexp.MustCompile(`(?i)([?&](?:password|secret|token|key|secret_key|access_key)=)[^&#]*`)

// hidePassword masks the passwords in a URL. References such as ${NAME} are no
// secrets and stay.
func hidePassword(url string) string {
	mask := func(pattern *regexp.Regexp, s string, after string) string {
		return pattern.ReplaceAllStringFunc(s, func(m string) string {
			parts := pattern.FindStringSubmatch(m)
			secret := strings.TrimSuffix(strings.TrimPrefix(m, parts[1]), after)
			if reference.MatchString(secret) {
				return m
			}
			return parts[1] + "[hidden]" + after
		})
	}
	return mask(passwordInQuery, mask(passwordInURL, url, "@"), "")
}

var reference = regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)

func (a *app) configPathCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Show where the config file is",
		Long:    "Path prints the path of the config file, whether it exists or not.",
		Example: examples("look into it", `cat "$(snapcli config path)"`),
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := a.configPath()
			if err == nil {
				a.result("%s", path)
			}
			return err
		},
	}
}

// configPath is the config file's path, also when it cannot be read.
func (a *app) configPath() (string, error) {
	if a.flags.config != "" {
		return filepath.Abs(a.flags.config)
	}
	dir, err := local.ConfigDir(a.env)
	return filepath.Join(dir, "config.yaml"), err
}

func (a *app) configEditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit the config file in your editor and check it",
		Long: `Edit opens the config file in $VISUAL or $EDITOR and checks it when the editor
ends. A file that does not exist yet begins with explained examples.`,
		Example: examples("edit it", "snapcli config edit"),
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.editConfig(cmd.Context()) },
	}
}

const configTemplate = `# The configuration of snapcli.

cloud:
  url: ""        # such as https://cloud.example; then run: snapcli login
  # api_key: ""  # for automation; better in the environment as SNAPCLI_CLOUD__API_KEY

targets: {}
#  shop:
#    source: postgres://me@db.example/shop
#    destination: postgres://me@localhost/shop_dev
#    sanitize: {sql: ./shop.sql}
`

func (a *app) editConfig(ctx context.Context) error {
	path, err := a.configPath()
	if err != nil {
		return err
	}
	editor := strings.Fields(first(a.env("VISUAL"), a.env("EDITOR"), defaultEditor()))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the configuration folder: %w", err)
	}
	if _, err := os.Stat(path); os.IsNotExist(err) {
		if err := os.WriteFile(path, []byte(configTemplate), 0o600); err != nil {
			return fmt.Errorf("begin the config file: %w", err)
		}
	}
	run := exec.CommandContext(ctx, editor[0], append(editor[1:], path)...)
	run.Stdin, run.Stdout, run.Stderr = a.io.In, a.io.Err, a.io.Err
	if err := run.Run(); err != nil {
		return &snap.Error{Code: snap.CodeUsage, Detail: fmt.Sprintf("the editor %s failed: %v", editor[0], err), Hint: "set EDITOR to the one you use", Cause: err}
	}
	return a.checkConfig()
}

func defaultEditor() string {
	if runtime.GOOS == "windows" {
		return "notepad"
	}
	return "vi"
}

func (a *app) configCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the config file",
		Long: `Check reads the configuration and says what is wrong with it, with line and
column. It connects to nothing.`,
		Example: examples("check it", "snapcli config check"),
		Args:    noArgs,
		RunE:    func(*cobra.Command, []string) error { return a.checkConfig() },
	}
}

func (a *app) checkConfig() error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	if url := agent.Config().Cloud.URL; url != "" {
		if _, err := api.CheckBaseURL(url); err != nil {
			return fmt.Errorf("cloud.url: %w", err)
		}
	}
	for _, t := range agent.Targets() {
		if t.Source == "" && t.Destination == "" {
			a.warn("the target %s has neither a source nor a destination", t.Name)
		}
	}
	a.done("", "%s is fine: %s", agent.ConfigPath(), plural(len(agent.Targets()), "target", "targets"))
	return nil
}
