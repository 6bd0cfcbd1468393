package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) targetAddCommand() *cobra.Command {
	var t local.Target
	cmd := &cobra.Command{
		Use:   "add [NAME] [--source URL] [--destination URL]",
		Short: "Add a target, or change one",
		Long: `Add writes a target into the config file. Comments inside this target's entry
are lost; all other comments are kept. If the target exists, add changes only
the settings given by flags. Without arguments on a terminal, add asks for the
settings, as ` + "`snapcli init`" + ` does.

URLs: postgres://user@host/database, mysql://user@host/database,
sqlite:///path/to/file. Write secrets as ${NAME}, and put the URL in single
quotes, so that your shell does not replace them. Snapcli reads the environment
variable each time it uses the URL.`,
		Example: examples(
			"a PostgreSQL database",
			"snapcli targets add shop --source postgres://me@db.example/shop \\\n      --destination "+
				"postgres://me@localhost/shop_dev",
			"a SQLite file", "snapcli targets add notes --source sqlite:///home/me/notes.db"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().NFlag() == 0 && a.canAsk() {
				return nil
			}
			return command.ExactArgs("name")(cmd, args)
		},
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.askForTarget(cmd.Context(), "")
			}
			t.Name = args[0]
			if err := errors.Join(makeAbsolute(&t.Sanitize.SQL), makeAbsolute(&t.Sanitize.Rules),
				makeKeysAbsolute(t.EncryptTo)); err != nil {
				return err
			}
			return a.addTarget(cmd, t)
		},
	}
	cmd.Flags().StringVar(&t.Source, "source", "", "URL of the database to build from")
	cmd.Flags().StringVar(&t.Destination, "destination", "", "URL of the database that load replaces")
	cmd.Flags().StringVar(&t.Scratch, "scratch", "",
		"URL of a database on the server for scratch copies, in which masking SQL runs (default: the destination)")
	jobsFlag(cmd, &t.Jobs, "number of tables processed at once; 0 uses the number of cores")
	cmd.Flags().BoolVar(&t.Production, "production", false,
		"the destination is production: load refuses it unless forced")
	cmd.Flags().StringArrayVar(&t.EncryptTo, "encrypt-to", nil,
		"recipient of its snapshots: a public key, or a file of public keys; can be repeated")
	cmd.Flags().StringVar(&t.Sanitize.SQL, "sanitize-sql", "", "SQL file that masks a copy")
	cmd.Flags().StringVar(&t.Sanitize.Rules, "sanitize-rules", "", "file of column rules that mask a copy")
	return cmd
}

func (a *app) addTarget(cmd *cobra.Command, t local.Target) error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	verb, given := "added", []string{t.Source, t.Destination, t.Scratch}
	if _, err := agent.Target(t.Name); err == nil {
		verb = "changed"
	}
	if verb == "added" && t.Source == "" && t.Destination == "" {
		return snap.Usage(fmt.Sprintf("the target %q would have neither a source nor a destination", t.Name),
			"give it one with --source URL or --destination URL")
	}
	if err := agent.ChangeTarget(t.Name, func(old *local.Target) { copyGiven(cmd, old, t) }); err != nil {
		return err
	}
	if t, err = agent.Target(t.Name); err != nil {
		return err
	}
	a.done(t.Name, "%s the target %s in %s", verb, t.Name, agent.ConfigPath())
	a.warnOfPassword(given...)
	a.nextForTarget(agent, t)
	return nil
}

// nextForTarget suggests the next command to run for a target.
func (a *app) nextForTarget(agent *local.Agent, t local.Target) {
	here, _ := agent.Snapshots(t.Name) // an unreadable snapshot is reported by the commands that use it
	switch {
	case t.Source != "":
		a.next("take a snapshot with `snapcli build %s`", snap.ShellWord(t.Name))
	case len(here) > 0:
		a.next("load a local snapshot with `snapcli load %s`", snap.ShellWord(t.Name))
	default:
		a.next("get a snapshot with `snapcli pull %s --cloud`", snap.ShellWord(t.Name))
	}
}

// makeAbsolute makes a path absolute. A path on the command line is relative to the working
// directory, but a path in the config file is relative to that file.
func makeAbsolute(path *string) (err error) {
	if *path != "" {
		*path, err = filepath.Abs(*path)
	}
	return err
}

// makeKeysAbsolute is like makeAbsolute, for the entries that name a file of recipients rather than
// a recipient.
func makeKeysAbsolute(entries []string) error {
	for i := range entries {
		if !local.IsRecipient(entries[i]) {
			if err := makeAbsolute(&entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyGiven copies the settings that flags set.
func copyGiven(cmd *cobra.Command, to *local.Target, given local.Target) {
	for flag, set := range map[string]func(){
		"source":         func() { to.Source = given.Source },
		"destination":    func() { to.Destination = given.Destination },
		"scratch":        func() { to.Scratch = given.Scratch },
		"jobs":           func() { to.Jobs = given.Jobs },
		"production":     func() { to.Production = given.Production },
		"encrypt-to":     func() { to.EncryptTo = given.EncryptTo },
		"sanitize-sql":   func() { to.Sanitize.SQL = given.Sanitize.SQL },
		"sanitize-rules": func() { to.Sanitize.Rules = given.Sanitize.Rules },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
}
