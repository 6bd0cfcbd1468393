package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snap"
	"snap/internal/given"
	"snap/internal/near"
)

// The groups that --help shows commands in.
const (
	groupMain  = "main"
	groupCloud = "cloud"
	groupHere  = "here"
)

// root is the whole tree of commands.
func (a *app) root() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:               "snapcli",
		Short:             "Take, mask, share and load database snapshots",
		Long:              firstMinutes,
		Args:              knownCommand,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if version {
				return a.printVersion()
			}
			return showHelp(cmd, args)
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := a.unknownCommand(cmd); unknown != nil {
			return unknown
		}
		return flagError(cmd, err)
	})
	root.SetUsageTemplate(usageTemplate)
	a.globalFlags(root.PersistentFlags())
	root.Flags().BoolVar(&version, "version", false, "print the version")
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Take, mask, move and load snapshots:"},
		&cobra.Group{ID: groupCloud, Title: "Sign in and share:"},
		&cobra.Group{ID: groupHere, Title: "This machine:"},
	)
	add(root, groupMain, a.buildCommand(), a.sanitizeCommand(), a.pushCommand(), a.pullCommand(), a.loadCommand())
	add(root, groupCloud, a.cloudCommand(), a.loginCommand(), a.logoutCommand(), a.whoamiCommand())
	add(root, groupHere, a.targetsCommand(), a.snapshotsCommand(), a.trustCommand(), a.configCommand(),
		a.serveCommand(),
		a.doctorCommand())
	add(root, "", a.completionCommand(), a.versionCommand())
	root.AddCommand(topics()...)
	return root
}

func add(parent *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		parent.AddCommand(c)
	}
}

// globalFlags are those of SPEC 4.5, and --utc.
func (a *app) globalFlags(f *pflag.FlagSet) {
	f.StringVar(&a.flags.config, "config", "", "path to the config file (default <config-dir>/config.yaml)")
	f.BoolVar(&a.flags.debug, "debug", false, "enable debug logging")
	f.BoolVar(&a.flags.quiet, "quiet", false, "suppress non-essential output")
	f.BoolVar(&a.flags.utc, "utc", false, "print times in UTC instead of your time zone")
	f.IntVar(&a.flags.width, "width", 0, "table width; 0 means auto-detect the terminal width")
}

// begin runs before every command, when its flags are known.
func (a *app) begin(cmd *cobra.Command) error {
	if a.flags.debug {
		a.log = a.debugLog()
	}
	if a.flags.width < 0 {
		return snap.Usage(fmt.Sprintf("the table width %d is less than zero", a.flags.width),
			"use a number of columns, or 0 for the terminal's")
	}
	if err := cmd.ValidateFlagGroups(); err != nil {
		return excluding(cmd, err)
	}
	return given.Something(cmd.Flags(), "scope") // the default of --scope is empty: SPEC 4.5
}

var flagsTogether = regexp.MustCompile(`\[([^\]]*)\] were all set`)

// excluding says which flags exclude each other.
func excluding(cmd *cobra.Command, err error) error {
	detail := err.Error()
	if m := flagsTogether.FindStringSubmatch(detail); m != nil {
		detail = "--" + strings.ReplaceAll(m[1], " ", " and --") + " exclude each other"
	}
	return snap.Usage(detail, fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
}

// parent makes a command that only holds others.
func parent(use, short, long string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Args: knownCommand, RunE: showHelp}
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// knownCommand refuses words that are no subcommand, and suggests one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if c := near.Closest(args[0], names); c != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), c)
	}
	return snap.Usage(fmt.Sprintf("there is no command %q", path(cmd, args[0])), hint)
}

// path writes a command, and perhaps words after it, as a person types it
// after the program's name.
func path(cmd *cobra.Command, words ...string) string {
	all := strings.Fields(cmd.CommandPath())
	if len(all)+len(words) > 1 {
		all = all[1:]
	}
	return strings.Join(append(all, words...), " ")
}

// unknownCommand is the error for a word that is no subcommand, which matters more
// than the flags after it.
func (a *app) unknownCommand(cmd *cobra.Command) error {
	if !cmd.HasSubCommands() {
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(a.args), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	words = words[min(len(words), len(strings.Fields(cmd.CommandPath()))-1):]
	if len(words) == 0 {
		return nil
	}
	return knownCommand(cmd, words[:1])
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return snap.Usage(fmt.Sprintf("%s takes no arguments, but there is %q", path(cmd), args[0]), usageHint(cmd))
}

// oneArg wants exactly one argument, which it calls by this name.
func oneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return snap.Usage(fmt.Sprintf("%s needs a %s", path(cmd), name), usageHint(cmd))
		case len(args) > 1:
			return snap.Usage(fmt.Sprintf("%s takes one %s, but there is also %q", path(cmd), name, args[1]),
				usageHint(cmd)+`; quote a name that has spaces`)
		}
		return nil
	}
}

// someArgs wants at least one argument of this name.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return snap.Usage(fmt.Sprintf("%s needs a %s", path(cmd), name), usageHint(cmd))
		}
		return nil
	}
}

func usageHint(cmd *cobra.Command) string { return "use it as: " + cmd.UseLine() }

// flagError says what is wrong with a flag, in our words.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		told    *snap.Error
	)
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		return snap.Usage(fmt.Sprintf("--%s needs a value", missing.GetFlag().Name), usageHint(cmd))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return snap.Usage(fmt.Sprintf("%q is not a value for --%s, which takes a %s", invalid.GetValue(), f.Name,
			kindOf(f)),
			fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
	}
	return snap.Usage(err.Error(), fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
}

func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "float64":
		return "number"
	case "bool":
		return "true or false"
	}
	return f.Value.Type()
}

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	name := e.GetSpecifiedName()
	dashes := "--"
	if e.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if c := near.Closest(name, names); c != "" {
		hint = "did you mean --" + c + "?"
	}
	return snap.Usage(fmt.Sprintf("%s has no flag %s%s", path(cmd), dashes, name), hint)
}

// examples writes one example a line, each with what it does.
func examples(lines ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(lines); i += 2 {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "  # %s\n  %s", lines[i], lines[i+1])
	}
	return b.String()
}

const firstMinutes = `snapcli takes snapshots of databases, masks them, shares them through the
cloud service and loads them elsewhere.

The first five minutes:

  snapcli targets add shop --source postgres://me@localhost/shop \
      --destination postgres://me@localhost/shop_dev
  snapcli build shop                     # take a snapshot
  snapcli sanitize shop --init           # suggest what to mask: read it
  snapcli sanitize shop                  # make a masked copy
  snapcli load shop --type sanitized     # load it into the destination

  export SNAPCLI_CLOUD__URL=https://cloud.example
  snapcli login                          # a code, a browser
  snapcli push shop --cloud              # private at first
  snapcli cloud snapshots                # what you may see
  snapcli cloud snapshots share ID       # now the whole organization may`

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

Pages of help, as {{.CommandPath}} help PAGE:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name 12}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableSubCommands}}

More about a command: {{.CommandPath}} COMMAND --help{{end}}
`
