package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/clone"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) clonesCommand() *cobra.Command {
	cmd := a.clonesListCommand("clones")
	cmd.Short = "List, drop and warm up clones"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.clonesListCommand("list"), a.clonesDropCommand(), a.clonesWarmCommand())
	return cmd
}

func (a *app) clonesListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the clones",
		Long: `List shows your clones, oldest first, with their age, expiry, size and current
connections. It includes the clones that ` + "`snapcli run`" + ` uses, and the copies that
` + "`snapcli clones warm`" + ` prepared.`,
		Example: examples("list them", "snapcli clones", "for a script", "snapcli clones --json"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			agent, err := a.sweptAgent(cmd.Context())
			if err != nil {
				return err
			}
			all, err := agent.Clones(cmd.Context())
			if err != nil {
				return err
			}
			return a.printClones(all)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printClones(all []clone.Listed) error {
	views := viewAll(all, viewListed)
	switch {
	case a.flags.json:
		return a.printJSON(views)
	case a.flags.quiet:
		for _, v := range views {
			if v.Kind != clone.Warm {
				a.result("%s", v.Name)
			}
		}
		return nil
	case len(views) == 0:
		a.note("there are no clones; make one with `snapcli clone TARGET`")
		return nil
	}
	t := a.newTable(column{title: "Name", least: 8}, column{title: "Target", least: 5, weight: 3},
		column{title: "Snapshot", least: 9, weight: 1, cut: keepEnd}, column{title: "State", least: 5, weight: 2},
		column{title: "Size", right: true}, column{title: "Connections", right: true}, column{title: "Age"},
		momentColumn("Expires", 1))
	for _, v := range views {
		t.row(v.Name, v.Target, v.Snapshot, stateOf(v), sizeOf(v), fmt.Sprint(len(v.Connections)),
			snap.Span(a.now().Sub(v.CreatedAt)), a.moment(v.ExpiresAt))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, v := range views {
		if v.Error != "" {
			a.warn("%s: %s", v.Name, v.Error)
		}
	}
	return nil
}

// viewListed returns the JSON form of a clone with the state of its database.
func viewListed(c clone.Listed) cloneView {
	v := viewClone(c.Clone, c.URL)
	v.Size, v.Connections = c.Size, c.Connections
	if c.Err != nil {
		v.Error = c.Err.Error()
	}
	return v
}

// stateOf describes a clone in one word: for a ready clone of kind run or warm, its kind;
// otherwise, its state.
func stateOf(v cloneView) string {
	if v.State == clone.Ready && v.Kind != clone.Named {
		return string(v.Kind)
	}
	return string(v.State)
}

func sizeOf(v cloneView) string {
	if v.Error != "" {
		return "?"
	}
	return size(v.Size)
}

func (a *app) clonesDropCommand() *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use:   "drop NAME...",
		Short: "Drop clones and their databases",
		Long: `Drop ends the connections to a clone and drops its database. Snapshots and
templates stay. A copy that ` + "`snapcli clones warm`" + ` prepared can be dropped too,
by the name in the list. With --forget, drop leaves the database alone and only
removes the clone from the list. Use this if the server no longer exists.`,
		Example:           examples("drop one", "snapcli clones drop pr-12"),
		Args:              command.SomeArgs("name"),
		ValidArgsFunction: a.completeClones,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			for _, name := range args { // check all first, so that a mistyped name drops nothing
				if _, err := agent.FindClone(name); err != nil {
					return err
				}
			}
			return a.dropClones(ctx, agent, distinct(args), forget)
		}),
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&forget, "forget", false, "remove the clone from the list without dropping its database")
	return cmd
}

// droppedView is the JSON form of a clone that was dropped.
type droppedView struct {
	Name      string `json:"name"`
	Forgotten bool   `json:"forgotten" doc:"only removed from the list (--forget); the database remains"`
}

// dropClones drops clones one after another. With --json it prints the dropped clones, even if
// dropping another one fails.
func (a *app) dropClones(ctx context.Context, agent *local.Agent, names []string, forget bool) error {
	dropped := []droppedView{}
	var err error
	for _, name := range names {
		if err = a.dropClone(ctx, agent, name, forget); err != nil {
			break
		}
		dropped = append(dropped, droppedView{name, forget})
	}
	if a.flags.json {
		err = errors.Join(err, a.printJSON(dropped))
	}
	return err
}

func (a *app) dropClone(ctx context.Context, agent *local.Agent, name string, forget bool) error {
	if forget {
		c, err := agent.ForgetClone(name)
		if err == nil && !a.flags.json {
			a.done("", "removed %s from the list; its database was %s", name, c.Database())
		}
		return err
	}
	err := agent.DropClone(ctx, name)
	if err == nil && !a.flags.json {
		a.done("", "dropped %s", name)
	}
	return err
}

func (a *app) clonesWarmCommand() *cobra.Command {
	var f cloneFlags
	var count int
	cmd := &cobra.Command{
		Use:   "warm TARGET",
		Short: "Prepare copies for `snapcli run`",
		Long: `Warm makes copies of a snapshot ahead of time, so that ` + "`snapcli run`" + ` can use one
and start without waiting. Warm adds copies until the number in --count is
ready; the default is the target's clones.warm. When ` + "`snapcli run`" + ` uses a copy,
it makes another one while its command runs. Warm copies expire like clones.`,
		Example:           examples("keep two ready", "snapcli clones warm shop --count 2"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			n := -1
			if cmd.Flags().Changed("count") {
				if n = count; n < 1 {
					return countTooSmall(n)
				}
			}
			return a.warmClones(cmd.Context(), args[0], n, o, f.pull)
		},
	}
	f.add(a, cmd)
	f.addTTL(cmd)
	cmd.Flags().IntVar(&count, "count", 0, "how many copies to keep ready (default: clones.warm of the target)")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) warmClones(ctx context.Context, target string, n int, o local.CloneOptions, pull bool) error {
	agent, err := a.agent()
	if err != nil {
		return err
	}
	if t, err := agent.Target(target); err == nil && n < 0 && t.Clones.Warm == 0 {
		return snap.Usage(fmt.Sprintf("clones.warm of the target %q is not set, so warm needs --count", target),
			"use it as: snapcli clones warm "+snap.ShellWord(target)+" --count 2")
	}
	if err := a.ensureSnapshot(ctx, agent, target, &o, pull); err != nil {
		return err
	}
	report, pausing, end := a.pausableProgress()
	o.Trust = pausing(func(p local.Preflight) error { return a.confirmTrust(ctx, p) })
	made, err := agent.WarmClones(ctx, target, n, o, report)
	end()
	if err != nil {
		return stopped(ctx, err, "preparing the copies", "copies that were finished stay; run the same command again")
	}
	if a.flags.json {
		return a.printJSON(warmView{target, o.Snapshot, made})
	}
	if made == 0 {
		a.done("", "enough copies of %s are ready", o.Snapshot)
		return nil
	}
	a.done("", "made %s of %s", snap.Plural(made, "copy", "copies"), o.Snapshot)
	return nil
}

// warmView is the JSON output of clones warm.
type warmView struct {
	Target   string `json:"target"`
	Snapshot string `json:"snapshot"`
	Made     int    `json:"made" doc:"number of copies that were made"`
}

// completeClones offers the names of the clones.
func (a *app) completeClones(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if agent, err := a.agent(); err == nil {
		names = agent.CloneNames()
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// sweptAgent returns the agent for a command that works with clones, after dropping the expired
// ones. If they cannot be dropped, it only warns, so that a server that does not answer does not
// stop the command.
func (a *app) sweptAgent(ctx context.Context) (*local.Agent, error) {
	agent, err := a.agent()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, a.timeouts.sweep)
	defer cancel()
	swept, err := agent.SweepClones(limited)
	for _, c := range swept.Clones {
		a.log.Debug("dropped a clone", "name", c.Name, "expires", c.Expires)
	}
	if err != nil && ctx.Err() == nil {
		a.warn("cannot drop expired clones: %s", err)
	}
	return agent, ctx.Err()
}

// sweepAfter drops expired clones after a command and, if the command used the service, the
// templates of snapshots that the user can no longer see. Failures are only logged: the next command
// tries again.
func (a *app) sweepAfter(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	agent, err := local.Open(local.Options{ConfigFile: a.flags.config, Env: a.env, Now: a.now, Log: a.log})
	if err != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, a.timeouts.sweep)
	defer cancel()
	if _, err := agent.SweepClones(limited); err != nil {
		a.log.Debug("expired clones could not be dropped", "err", err)
	}
	if a.contacted != nil && ctx.Err() == nil {
		a.dropRevoked(ctx, agent)
	}
}

func (a *app) dropRevoked(ctx context.Context, agent *local.Agent) {
	ctx, cancel := context.WithTimeout(ctx, a.timeouts.sweep)
	defer cancel()
	revoked, err := agent.DropRevoked(ctx, a.contacted)
	for _, r := range revoked {
		a.note("%s is no longer visible to you, so its template was dropped; you keep the pulled file and %s",
			r.Snapshot, snap.Plural(r.Clones, "clone", "clones"))
	}
	if err != nil {
		a.log.Debug("templates of revoked snapshots could not be dropped", "err", err)
	}
}
