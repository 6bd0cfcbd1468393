package command

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snap"
)

// CheckFlags returns an error if required flags are missing, flags exclude each other, or a flag is
// empty and not listed in mayBeEmpty. An empty flag is an error because a script that passes
// --group "$TEAM" with TEAM unset would otherwise share with everybody.
func CheckFlags(cmd *cobra.Command, mayBeEmpty ...string) error {
	if err := cmd.ValidateFlagGroups(); err != nil {
		return flagGroupError(cmd, err)
	}
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, required := f.Annotations[cobra.BashCompOneRequiredFlag]
		if required && !f.Changed && err == nil {
			err = snap.Usage(Path(cmd)+" needs --"+f.Name, UsageHint(cmd))
		}
	})
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if empty(f.Value) && !slices.Contains(mayBeEmpty, f.Name) {
			err = snap.Usage(fmt.Sprintf("--%s is empty", f.Name), "give it a value, or omit it")
		}
	})
	return err
}

func empty(v pflag.Value) bool {
	if several, is := v.(pflag.SliceValue); is {
		return !slices.ContainsFunc(several.GetSlice(), func(s string) bool { return s != "" })
	}
	return v.String() == ""
}

var (
	flagsTogether = regexp.MustCompile(`\[([^\]]*)\] were all set`)
	oneRequired   = regexp.MustCompile(`in the group \[([^\]]*)\] is required`)
)

// flagGroupError rewords cobra's errors about flags that exclude each other, and about a group of
// which one flag is required.
func flagGroupError(cmd *cobra.Command, err error) error {
	detail := err.Error()
	if m := flagsTogether.FindStringSubmatch(detail); m != nil {
		detail = "--" + strings.ReplaceAll(m[1], " ", " and --") + " cannot be combined"
	} else if m := oneRequired.FindStringSubmatch(detail); m != nil {
		detail = Path(cmd) + " needs --" + strings.ReplaceAll(m[1], " ", " or --")
	}
	return snap.Usage(detail, seeHelp(cmd))
}

// FlagError is the function for [cobra.Command.SetFlagErrorFunc]. It describes what is wrong with a
// flag. If an unknown command precedes the flag, it reports the command instead.
func FlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		ours    *snap.Error
	)
	if cmd.HasSubCommands() {
		if e := RequireKnown(cmd, cmd.Flags().Args()); e != nil {
			return e
		}
	}
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &missing):
		return snap.Usage(fmt.Sprintf("--%s needs a value", missing.GetFlag().Name), UsageHint(cmd))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return snap.Usage(fmt.Sprintf("--%s needs %s, not %q", f.Name, kindOf(f), invalid.GetValue()), seeHelp(cmd))
	}
	return snap.Usage(err.Error(), seeHelp(cmd))
}

func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "int64", "float64":
		return "a number"
	case "bool":
		return "true or false"
	}
	return "a " + f.Value.Type()
}

func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	name := e.GetSpecifiedName()
	dashes := "--"
	if e.GetSpecifiedShortnames() != "" {
		dashes = "-"
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	hint := seeHelp(cmd)
	if c := snap.Closest(name, names); c != "" {
		hint = "did you mean --" + c + "?"
	}
	return snap.Usage(fmt.Sprintf("%s has no flag %s%s", Path(cmd), dashes, name), hint)
}
