package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) targetsCommand() *cobra.Command {
	cmd := a.targetListCommand("targets")
	cmd.Short = "List, add, show, check and remove targets"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.targetListCommand("list"), a.targetAddCommand(), a.targetShowCommand(), a.targetCheckCommand(),
		a.targetRemoveCommand())
	return cmd
}

func (a *app) targetListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the targets",
		Long: `A target names the database that snapshots are taken from (its source) and the
database that they are loaded into (its destination). Targets are in the config
file.`,
		Example: examples("list them", "snapcli targets"),
		Args:    command.NoArgs,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, _ []string) error {
			return a.printTargets(agent.Targets())
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

// addTargetHint says how to add a target.
const addTargetHint = "add one with `snapcli targets add NAME --source URL`"

// targetView is the output form of a target, without passwords.
type targetView struct {
	Name        string `json:"name"`
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination,omitempty"`
	Scratch     string `json:"scratch,omitempty" doc:"server where SQL masks run, instead of the destination's"`
	Jobs        int    `json:"jobs"`
	Production  bool   `json:"production"`
	Rules       string `json:"sanitize_rules,omitempty"`
	SQL         string `json:"sanitize_sql,omitempty"`
	Prove       *bool  `json:"sanitize_prove,omitempty" doc:"load masked copies as a test; absent means if possible"`

	EncryptTo []string    `json:"encrypt_to,omitempty" doc:"public keys, or files of them"`
	Subset    *limitsView `json:"subset,omitempty" doc:"limits on the rows of its snapshots"`
	AfterLoad string      `json:"after_load,omitempty" doc:"SQL that a load runs before it replaces the destination"`
	Grants    []string    `json:"grants,omitempty" doc:"GRANT statements that a load runs at its end"`
	Clones    *clonesView `json:"clones,omitempty" doc:"limits on its clones"`
	Schedule  string      `json:"schedule,omitempty" doc:"when the agent takes a snapshot, in the syntax of cron"`
	TimeZone  string      `json:"time_zone,omitempty" doc:"of the schedule; absent means UTC"`
	Checks    []checkView `json:"checks,omitempty" doc:"queries that must hold before the agent pushes a masked copy"`

	choiceView
	reachView
}

func viewTarget(t local.Target) targetView {
	v := targetView{t.Name, hidePassword(t.Source), hidePassword(t.Destination), hidePassword(t.Scratch), t.Jobs,
		t.Production, t.Sanitize.Rules, t.Sanitize.SQL, t.Sanitize.Prove, t.EncryptTo, nil, t.AfterLoad, t.Grants,
		nil, t.Schedule, t.TimeZone, nil, viewChoice(t.Choice()), viewReach(t)}
	if limits(t.Subset) != "" {
		v.Subset = &limitsView{Where: t.Subset.Where, Percent: t.Subset.Percent, Rows: t.Subset.Rows,
			MaxSize: t.Subset.MaxSize}
	}
	if t.Clones != (local.ClonesSpec{}) {
		v.Clones = &clonesView{t.Clones.Max, t.Clones.TTL, t.Clones.Warm}
	}
	for _, c := range t.Checks {
		v.Checks = append(v.Checks, checkView{c.SQL, c.Expect})
	}
	return v
}

func (a *app) printTargets(list []local.Target) error {
	if a.flags.json {
		return a.printJSON(viewAll(list, viewTarget))
	}
	if a.flags.quiet {
		for _, t := range list {
			a.result("%s", t.Name)
		}
		return nil
	}
	if len(list) == 0 {
		a.note("there are no targets yet; " + addTargetHint)
		return nil
	}
	t := a.newTable(column{title: "Target", least: 8, weight: 2}, column{title: "Source", least: 12},
		column{title: "Destination", least: 12})
	for _, target := range list {
		v := viewTarget(target)
		t.row(v.Name, v.Source, v.Destination)
	}
	return t.flush()
}

// limitsView is the JSON form of the subset limits in a target's configuration.
type limitsView struct {
	Where   map[string]string `json:"where,omitempty" doc:"SQL condition of the starting rows by table"`
	Percent float64           `json:"percent,omitempty" doc:"percentage taken from tables without a condition"`
	Rows    int64             `json:"rows,omitempty" doc:"maximum number of rows, instead of where and percent"`
	MaxSize string            `json:"max_size,omitempty" doc:"maximum size, instead of where and percent"`
}

// clonesView limits the clones of a target.
type clonesView struct {
	Max  int    `json:"max,omitempty" doc:"how many may exist at once"`
	TTL  string `json:"ttl,omitempty" doc:"default lifetime of a clone, such as 2h"`
	Warm int    `json:"warm,omitempty" doc:"copies that are kept ready for snapcli run"`
}

// checkView is a check of a masked copy.
type checkView struct {
	SQL    string `json:"sql"`
	Expect string `json:"expect" doc:"value that the query must return"`
}
