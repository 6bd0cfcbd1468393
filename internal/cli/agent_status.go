package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
	"snap/internal/nightly"
)

// runView is the JSON form of a run of the agent.
type runView struct {
	Due      string    `json:"due" doc:"scheduled time, in the schedule's time zone"`
	State    string    `json:"state" doc:"running (or killed, and about to be resumed), stopped, done or failed"`
	Step     string    `json:"step,omitempty" doc:"step that is in progress or that failed"`
	BeganAt  time.Time `json:"began_at"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
	Snapshot string    `json:"snapshot,omitempty" doc:"name of the masked copy"`
	Pushed   string    `json:"pushed,omitempty" doc:"ID of the copy in the cloud, or its name in the storage profile"`
	Missed   int       `json:"missed,omitempty" doc:"how many missed times this run makes up for"`
	Problem  string    `json:"problem,omitempty" doc:"why the run failed"`
	Hint     string    `json:"hint,omitempty"`
}

func viewRun(r nightly.Run) runView {
	return runView{Due: string(r.Slot), State: string(r.State), Step: r.Step, BeganAt: r.Began, EndedAt: r.Ended,
		Snapshot: r.Masked, Pushed: r.Pushed, Missed: r.Missed, Problem: r.Problem, Hint: r.Hint}
}

// agentView is the JSON form of a scheduled target.
type agentView struct {
	Target   string    `json:"target"`
	Schedule string    `json:"schedule"`
	TimeZone string    `json:"time_zone"`
	NextAt   time.Time `json:"next_at,omitzero"`
	Error    string    `json:"error,omitempty" doc:"why the target's job cannot run"`
	Runs     []runView `json:"runs" doc:"newest first"`
}

func (a *app) agentStatusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [TARGET]",
		Short: "Show the schedules and their last runs",
		Long: `Status lists the targets that have a schedule, with their next and last runs.
With a target, it lists that target's runs, newest first, and says why each
failed run failed.`,
		Example: examples("all targets", "snapcli agent status", "the latest runs of one target",
			"snapcli agent status shop"),
		Args:              command.AtMostOneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			targets := agent.Scheduled()
			if len(args) == 1 {
				t, err := agent.Target(args[0])
				if err != nil {
					return err
				}
				targets = []local.Target{t}
			}
			views, err := a.agentViews(agent, targets)
			if err != nil {
				return err
			}
			return a.printAgentStatus(views, len(args) == 1)
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) agentViews(agent *local.Agent, targets []local.Target) ([]agentView, error) {
	views := []agentView{}
	for _, t := range targets {
		v := agentView{Target: t.Name, Schedule: t.Schedule, TimeZone: t.TimeZone, Runs: []runView{}}
		if t.Schedule != "" {
			times, err := nightly.Parse(t.Schedule, t.TimeZone)
			if err == nil {
				_, v.NextAt = times.Next(a.now())
			} else {
				v.Error = err.Error()
			}
		}
		record, err := agent.Runs().Read(t.Name)
		if err != nil {
			return nil, err
		}
		for n := range min(nightly.MinRuns, len(record.Runs)) {
			v.Runs = append(v.Runs, viewRun(record.Runs[len(record.Runs)-1-n]))
		}
		views = append(views, v)
	}
	return views, nil
}

func (a *app) printAgentStatus(views []agentView, single bool) error {
	switch {
	case a.flags.json:
		return a.printJSON(views)
	case len(views) == 0:
		a.note("no target has a schedule; add one with `snapcli config edit`")
		return nil
	case single:
		return a.printRuns(views[0])
	}
	t := a.newTable(column{title: "Target", least: 8, weight: 2}, column{title: "Schedule", least: 8},
		momentColumn("Next", 1), column{title: "Last run", least: 10}, column{title: "Result", least: 6, weight: 1})
	for _, v := range views {
		last, result, next := "", "not yet", v.Error
		if v.Error == "" {
			next = a.moment(v.NextAt)
		}
		if len(v.Runs) > 0 {
			last, result = v.Runs[0].Due, resultOf(v.Runs[0])
		}
		t.row(v.Target, v.Schedule, next, last, result)
	}
	return t.flush()
}

func (a *app) printRuns(v agentView) error {
	if len(v.Runs) == 0 {
		a.note("%s has no runs yet", v.Target)
		return nil
	}
	t := a.newTable(column{title: "Run", least: 16}, momentColumn("Began", 1), column{title: "Took"},
		column{title: "Result", least: 12, weight: 1})
	for _, r := range v.Runs {
		took := ""
		if !r.EndedAt.IsZero() {
			took = brief(r.EndedAt.Sub(r.BeganAt))
		}
		t.row(r.Due, a.moment(r.BeganAt), took, resultOf(r))
	}
	return t.flush()
}

// resultOf describes how a run ended, or the step that it is in.
func resultOf(r runView) string {
	result := r.State
	switch nightly.State(r.State) {
	case nightly.Done:
		result = "pushed " + r.Pushed
	case nightly.Failed:
		result = fmt.Sprintf("failed in %s: %s", r.Step, r.Problem)
	case nightly.Running, nightly.Stopped:
		result = r.State + " in " + r.Step
	}
	if r.Missed > 0 {
		result += fmt.Sprintf(" (%d missed before)", r.Missed)
	}
	return result
}
