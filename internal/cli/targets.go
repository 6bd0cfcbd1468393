package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"snap/internal/local"
)

func (a *app) targetsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "targets",
		Short: "List, add, show and remove targets",
		Long: `A target is a database that snapshots are taken of (its source) and the one they
are loaded into (its destination). Targets stand in the config file.`,
		Example: examples("list them", "snapcli targets"),
		Args:    knownCommand,
		RunE: func(*cobra.Command, []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			return a.printTargets(agent.Targets())
		},
	}
	cmd.AddCommand(a.targetAddCommand(), a.targetShowCommand(), a.targetRemoveCommand())
	a.jsonFlag(cmd)
	return cmd
}

// targetView is a target as it is shown: without passwords.
type targetView struct {
	Name        string `json:"name"`
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	Jobs        int    `json:"jobs"`
	Production  bool   `json:"production"`
	Rules       string `json:"sanitize_rules,omitempty"`
	SQL         string `json:"sanitize_sql,omitempty"`
}

func viewTarget(t local.Target) targetView {
	return targetView{t.Name, hidePassword(t.Source), hidePassword(t.Destination), t.Jobs, t.Production, t.Sanitize.Rules, t.Sanitize.SQL}
}

func (a *app) printTargets(list []local.Target) error {
	if a.flags.json {
		views := []targetView{}
		for _, t := range list {
			views = append(views, viewTarget(t))
		}
		return a.printJSON(views)
	}
	if a.flags.quiet {
		for _, t := range list {
			a.result("%s", t.Name)
		}
		return nil
	}
	if len(list) == 0 {
		a.note("there is no target yet; add one with `snapcli targets add NAME --source URL`")
		return nil
	}
	t := a.newTable(column{title: "Target", least: 8, weight: 2}, column{title: "Source", least: 12}, column{title: "Destination", least: 12})
	for _, target := range list {
		v := viewTarget(target)
		t.row(v.Name, v.Source, v.Destination)
	}
	return t.flush()
}

func (a *app) targetAddCommand() *cobra.Command {
	var t local.Target
	cmd := &cobra.Command{
		Use:   "add NAME --source URL [--destination URL]",
		Short: "Add a target, or change one",
		Long: `Add writes a target into the config file, and keeps the comments there. For one
that exists, it changes what the flags give.

URLs: postgres://user@host/database, mysql://user@host/database,
sqlite:///path/to/file. Write secrets as ${NAME}: they are taken from the
environment when they are needed.`,
		Example: examples(
			"a PostgreSQL database", "snapcli targets add shop --source postgres://me@db.example/shop --destination postgres://me@localhost/shop_dev",
			"an SQLite file", "snapcli targets add notes --source sqlite:///home/me/notes.db"),
		Args:              oneArg("name"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			t.Name = args[0]
			verb := "added"
			if old, err := agent.Target(t.Name); err == nil {
				verb = "changed"
				keepUnchanged(cmd, &t, old)
			}
			if err := agent.AddTarget(t); err != nil {
				return err
			}
			a.done(t.Name, "%s the target %s in %s", verb, t.Name, agent.ConfigPath())
			a.next("take a snapshot with `snapcli build %s`", word(t.Name))
			return nil
		},
	}
	cmd.Flags().StringVar(&t.Source, "source", "", "URL of the database to build from")
	cmd.Flags().StringVar(&t.Destination, "destination", "", "URL of the database that load replaces")
	cmd.Flags().IntVar(&t.Jobs, "jobs", 0, "tables at once; 0 is the number of cores")
	cmd.Flags().BoolVar(&t.Production, "production", false, "the destination is production: load refuses it unless forced")
	cmd.Flags().StringVar(&t.Sanitize.SQL, "sanitize-sql", "", "SQL file that masks a copy")
	cmd.Flags().StringVar(&t.Sanitize.Rules, "sanitize-rules", "", "file of column rules that mask a copy")
	return cmd
}

// keepUnchanged takes from the old target what no flag gives.
func keepUnchanged(cmd *cobra.Command, t *local.Target, old local.Target) {
	keep := func(flag string, take func()) {
		if !cmd.Flags().Changed(flag) {
			take()
		}
	}
	keep("source", func() { t.Source = old.Source })
	keep("destination", func() { t.Destination = old.Destination })
	keep("jobs", func() { t.Jobs = old.Jobs })
	keep("production", func() { t.Production = old.Production })
	keep("sanitize-sql", func() { t.Sanitize.SQL = old.Sanitize.SQL })
	keep("sanitize-rules", func() { t.Sanitize.Rules = old.Sanitize.Rules })
}

func (a *app) targetShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show one target",
		Long:              "Show prints a target's settings. Passwords in its URLs are hidden.",
		Example:           examples("show one", "snapcli targets show shop"),
		Args:              oneArg("name"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			t, err := agent.Target(args[0])
			if err != nil {
				return err
			}
			v := viewTarget(t)
			if a.flags.json {
				return a.printJSON(v)
			}
			jobs := strconv.Itoa(v.Jobs)
			if v.Jobs == 0 {
				jobs = "as many as cores"
			}
			production := ""
			if v.Production {
				production = "yes: load refuses the destination unless forced"
			}
			a.fields("Name", v.Name, "Source", v.Source, "Destination", v.Destination, "Jobs", jobs, "Production", production,
				"Rules", v.Rules, "SQL", v.SQL)
			return nil
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) targetRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a target from the config file",
		Long:              "Remove takes a target out of the config file. Its snapshots and its databases stay.",
		Example:           examples("remove one", "snapcli targets remove shop"),
		Args:              oneArg("name"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			if err := agent.RemoveTarget(args[0]); err != nil {
				return err
			}
			a.done("", "removed the target %s from %s", args[0], agent.ConfigPath())
			return nil
		},
	}
}
