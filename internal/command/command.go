// Package command holds the rules that the command lines of both programs share: parent commands,
// arguments, flags, the result on standard output and the form of an error.
package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snap"
)

// Parent returns a command that only groups other commands. Without arguments it prints its help.
// It passes any arguments to [RequireKnown].
func Parent(use, short, long string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, RunE: ShowHelp,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return pflag.ErrHelp // returned before required flags are checked
			}
			return RequireKnown(cmd, args)
		}}
}

// ShowHelp prints the help of a command.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// RequireKnown rejects a word that is not a subcommand and suggests the closest one, so that a
// script with a typo fails.
func RequireKnown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := seeHelp(cmd)
	if c := snap.Closest(args[0], names); c != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), c)
	}
	return snap.Usage(fmt.Sprintf("there is no command %q", Path(cmd, args[0])), hint)
}

// CheckHelp makes a program's command `help` reject words that are neither a command nor a help
// page. It must be called after all commands were added.
func CheckHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args = func(_ *cobra.Command, words []string) error {
				found, rest, err := root.Find(words)
				if err != nil {
					return err
				}
				return RequireKnown(found, rest)
			}
		}
	}
}

// Path returns a command's path without the program's name, followed by words. For the root command
// without words, it returns the program's name.
func Path(cmd *cobra.Command, words ...string) string {
	all := strings.Fields(cmd.CommandPath())
	if len(all)+len(words) > 1 {
		all = all[1:]
	}
	return strings.Join(append(all, words...), " ")
}

// NoArgs rejects all arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return snap.Usage(fmt.Sprintf("%s takes no arguments, but there is %q", Path(cmd), args[0]), UsageHint(cmd))
}

// ExactArgs requires one argument per name, none of them empty. The names are used in messages.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, name := range names {
			if i >= len(args) || args[i] == "" {
				return snap.Usage(fmt.Sprintf("%s needs %s", Path(cmd), withArticle(name)), UsageHint(cmd))
			}
		}
		if len(args) > len(names) {
			return snap.Usage(fmt.Sprintf("%s takes one %s, but there is also %q", Path(cmd),
				strings.Join(names, " and one "), args[len(names)]), UsageHint(cmd)+"; quote a name that has spaces")
		}
		return nil
	}
}

// withArticle puts a or an before the name of an argument.
func withArticle(name string) string {
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	return "a " + name
}

// AtMostOneArg accepts at most one argument. The name is used in messages.
func AtMostOneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return ExactArgs(name)(cmd, args)
	}
}

// SomeArgs requires at least one argument. The name is used in messages.
func SomeArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		return ExactArgs(name)(cmd, args[:min(len(args), 1)])
	}
}

// UsageHint returns the hint that shows a command's usage line.
func UsageHint(cmd *cobra.Command) string { return "use it as: " + cmd.UseLine() }

func seeHelp(cmd *cobra.Command) string { return fmt.Sprintf("see `%s --help`", cmd.CommandPath()) }

// Fault converts any error to a [snap.Error]. An error that wraps a [snap.Error] keeps its code and
// its whole message; any other error gets the code internal.
func Fault(err error) *snap.Error {
	e, ok := errors.AsType[*snap.Error](err)
	if !ok {
		return &snap.Error{Code: snap.CodeInternal, Detail: err.Error()}
	}
	copied := *e
	copied.Detail = err.Error()
	return &copied
}
