package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snap"
	"snap/internal/command"
	"snap/internal/login"
)

// The groups of commands in --help.
const (
	groupMain   = "main"
	groupClones = "clones"
	groupCloud  = "cloud"
	groupHere   = "here"
)

// root returns the command tree. CONTRIBUTING.md says how to add a command.
func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:               "snapcli",
		Short:             "Take, mask, share and load database snapshots",
		Long:              introduction,
		Args:              command.RequireKnown,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return a.printVersion()
			}
			return command.ShowHelp(cmd, args)
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(command.FlagError)
	root.SetUsageTemplate(usageTemplate)
	a.globalFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("org",
		a.completeAccounts(func(s login.Session) string { return s.Organization }))
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Take, mask, move and load snapshots:"},
		&cobra.Group{ID: groupClones, Title: "Clones for development and tests:"},
		&cobra.Group{ID: groupCloud, Title: "Sign in and share:"},
		&cobra.Group{ID: groupHere, Title: "This machine:"},
	)
	add(root, groupMain, a.buildCommand(), a.sanitizeCommand(), a.diffCommand(), a.pushCommand(), a.pullCommand(),
		a.loadCommand())
	add(root, groupClones, a.cloneCommand(), a.runCommand(), a.resetCommand(), a.clonesCommand())
	add(root, groupCloud, a.cloudCommand(), a.loginCommand(), a.logoutCommand(), a.switchCommand(),
		a.whoamiCommand())
	add(root, groupHere, a.initCommand(), a.targetsCommand(), a.snapshotsCommand(), a.trustCommand(), a.keysCommand(),
		a.configCommand(), a.serveCommand(), a.agentCommand(), a.doctorCommand())
	add(root, "", a.completionCommand(), a.versionCommand())
	root.AddCommand(topics()...)
	command.CheckHelp(root)
	return root
}

func add(parent *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		parent.AddCommand(c)
	}
}

// globalFlags adds the flags of SPEC 4.5, and also --org and --utc. The --org of share and unshare
// is a different flag, which names the recipient.
func (a *app) globalFlags(f *pflag.FlagSet) {
	f.StringVar(&a.flags.config, "config", "", "path to the config file (default <config-dir>/config.yaml)")
	f.BoolVar(&a.flags.debug, "debug", false, "enable debug logging")
	f.StringVar(&a.flags.org, "org", "", "use your login session in the organization with this slug")
	f.BoolVar(&a.flags.quiet, "quiet", false, "suppress non-essential output")
	f.BoolVar(&a.flags.utc, "utc", false, "print times in UTC instead of your time zone")
	f.IntVar(&a.flags.width, "width", 0, "table width; 0 means auto-detect the terminal width")
}

// begin runs before every command, after its flags are parsed.
func (a *app) begin(cmd *cobra.Command) error {
	if a.flags.debug {
		a.log = a.debugLog()
	}
	if a.flags.width < 0 {
		return snap.Usage(fmt.Sprintf("the table width %d is less than zero", a.flags.width),
			"give a number of columns, or 0 for the width of the terminal")
	}
	// These flags may be empty: --scope is empty by default (SPEC 4.5), and an empty description or
	// label removes the old text.
	return command.CheckFlags(cmd, "scope", "description", "label")
}

// examples formats the examples of a help text. lines holds pairs of a description and a command.
func examples(lines ...string) string {
	var parts []string
	for pair := range slices.Chunk(lines, 2) {
		parts = append(parts, fmt.Sprintf("  # %s\n  %s", pair[0], pair[1]))
	}
	return strings.Join(parts, "\n\n")
}

const introduction = `snapcli takes snapshots of databases, masks them, shares them through the
cloud service and loads them elsewhere.

To begin, run ` + "`snapcli init`" + `, which asks for your databases, or these commands:

  snapcli targets add shop --source postgres://me@localhost/shop \
      --destination postgres://me@localhost/shop_dev
  snapcli build shop                     # take a snapshot
  snapcli sanitize shop --init           # draft masking rules; review them
  snapcli sanitize shop                  # make a masked copy
  snapcli load shop --type sanitized     # load it into the destination

  snapcli login https://cloud.example    # sign in with your browser
  snapcli push shop --cloud              # upload it; it starts private
  snapcli cloud snapshots                # list the snapshots you can see
  snapcli cloud snapshots share ID       # share one with your organization`

const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

More:{{range $cmds}}{{if (and (eq .GroupID "") .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Global flags:
{{.InheritedFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

Help pages ({{.CommandPath}} help PAGE):{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name 12}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableSubCommands}}

More about a command: {{.CommandPath}} COMMAND --help{{end}}
`
