package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
	"snap/internal/local"
	"snap/internal/nightly"
)

func (a *app) agentCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Build, mask, check and push snapshots on a schedule",
		Long: `Agent runs until you stop it. At each scheduled time of a target, it builds a
snapshot, masks it, loads the masked copy into a scratch database, runs the
target's checks there, and pushes the copy to the cloud service, or to the only
storage profile if no cloud service is configured. Then it deletes the unmasked
snapshot. The agent also drops expired clones.

A target with a schedule looks like this in the config file:

  targets:
    shop:
      source: postgres://me@db/shop
      destination: postgres://me@localhost/shop_dev
      sanitize: {rules: shop.rules.yaml}
      schedule: 17 3 * * *
      time_zone: Europe/Berlin
      checks:
        - {sql: SELECT count(*) > 1000 FROM customers, expect: true}

A target has one run at a time, even with several agents. A run that was killed
resumes at the step where it stopped, unless the next scheduled time has come.
If no agent was running at one or more scheduled times, one run makes up for
them. The config file is read again when it changes.`,
		Example: examples("run it in a terminal; docs/agent.md has a systemd unit", "snapcli agent"),
		Args:    command.RequireKnown,
		RunE:    a.withAgent(a.serveAgent),
	}
	a.jsonFlag(cmd)
	cmd.Flags().Lookup("json").Usage = "print each event as one line of JSON"
	cmd.AddCommand(a.agentRunCommand(), a.agentStatusCommand())
	return cmd
}

// agentTick is how often the agent checks the schedules and the clones.
const agentTick = 15 * time.Second

// serveAgent runs until ctx ends, which is not an error.
func (a *app) serveAgent(ctx context.Context, agent *local.Agent, _ []string) error {
	p := agentPrinter{app: a, lastErrors: map[string]string{}}
	for _, t := range agent.Scheduled() {
		p.target(t)
	}
	if len(agent.Scheduled()) == 0 {
		a.warn("no target has a schedule yet; add one with `snapcli config edit`")
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // keep running if the reader of the log ends
	ticker := time.NewTicker(agentTick)
	defer ticker.Stop()
	n := nightly.Agent{Records: agent.Runs(), Now: a.now, Report: p.event}
	n.Serve(ctx, ticker.C, func() []nightly.Task {
		if err := agent.Reload(); err != nil {
			p.printError("config.yaml", err)
		}
		p.sweep(ctx, agent)
		return p.tasks(agent)
	}, p.printError)
	return nil
}

// agentPrinter prints what the agent does. It is safe for concurrent use.
type agentPrinter struct {
	*app
	mu         sync.Mutex
	lastErrors map[string]string // by subject, so that an error is not repeated
}

// agentEvent is the line that agent --json prints.
type agentEvent struct {
	At       time.Time `json:"at"`
	Target   string    `json:"target" doc:"if the event is trouble, it can also be clones or config.yaml"`
	Event    string    `json:"event" doc:"began, resumed, interrupted, ended, clock back or trouble"`
	Run      *runView  `json:"run,omitempty"`
	Detail   string    `json:"detail,omitempty" doc:"if the event is trouble: the error"`
	Hint     string    `json:"hint,omitempty"`
	Sentence string    `json:"-"`
}

// tasks returns the jobs of the targets that have a schedule. It prints an error for a target whose
// job cannot run.
func (p *agentPrinter) tasks(agent *local.Agent) (all []nightly.Task) {
	for _, t := range agent.Scheduled() {
		task, err := agent.Nightly(t, p.service(agent))
		p.printError(t.Name, err)
		if err == nil {
			all = append(all, task)
		}
	}
	return all
}

// service returns a function that connects to the cloud service. Runs of several targets call it
// at the same time.
func (p *agentPrinter) service(agent *local.Agent) func() (*api.Client, error) {
	return func() (*api.Client, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		conn, err := p.cloud(agent)
		if err != nil {
			return nil, err
		}
		return conn.Client, nil
	}
}

// sweep drops expired clones. It takes at most one tick, even if a server does not respond.
func (p *agentPrinter) sweep(ctx context.Context, agent *local.Agent) {
	ctx, cancel := context.WithTimeout(ctx, agentTick)
	defer cancel()
	_, err := agent.SweepClones(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	p.printError("clones", err)
}

// printError prints an error about a subject, unless the previous error about that subject was the
// same. After a nil error, the next error is printed even if it is the same.
func (p *agentPrinter) printError(about string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.lastErrors[about] != text
	p.lastErrors[about] = text
	if err == nil || !changed {
		return
	}
	e := asError(err)
	p.print(agentEvent{Target: about, Event: "trouble", Detail: p.secrets.redact(e.Error()), Hint: e.Hint,
		Sentence: p.secrets.redact(e.Error()) + withPrefix("; ", e.Hint)})
}

// event prints what happened to a run, or that the clock was set back.
func (p *agentPrinter) event(e nightly.Event) {
	v := agentEvent{Target: e.Target, Event: string(e.Kind)}
	switch e.Kind {
	case nightly.ClockBack:
		v.Sentence = "the clock was set back by more than a day; runs continue from now"
	case nightly.Interrupted:
		v.Sentence = fmt.Sprintf("the run of %s stops in the step %s; it resumes when the agent starts again",
			e.Run.Slot, e.Run.Step)
	default:
		v.Sentence = p.sentence(e.Kind, e.Run)
	}
	if e.Kind != nightly.ClockBack {
		run := viewRun(e.Run)
		run.Problem, run.Hint = p.secrets.redact(run.Problem), p.secrets.redact(run.Hint)
		v.Run = &run
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.print(v)
}

// sentence describes a run that began, was resumed or ended.
func (p *agentPrinter) sentence(kind nightly.Kind, r nightly.Run) string {
	switch {
	case kind == nightly.Resumed:
		return fmt.Sprintf("resumed the run of %s at the step %s", r.Slot, r.Step)
	case kind == nightly.Began && r.Missed > 0:
		return fmt.Sprintf("the run of %s begins; it also makes up for %s that no agent ran", r.Slot,
			snap.Plural(r.Missed, "earlier one", "earlier ones"))
	case kind == nightly.Began:
		return fmt.Sprintf("the run of %s begins", r.Slot)
	case r.State == nightly.Failed:
		return fmt.Sprintf("the run of %s failed in the step %s: %s%s", r.Slot, r.Step, p.secrets.redact(r.Problem),
			withPrefix("; ", p.secrets.redact(r.Hint)))
	}
	return fmt.Sprintf("pushed %s as %s, after %s", r.Masked, r.Pushed, brief(r.Ended.Sub(r.Began)))
}

// print prints a line. The caller holds the lock. A log that cannot be written to does not stop the
// agent: the record of runs has everything.
func (p *agentPrinter) print(e agentEvent) {
	e.At = p.now().UTC()
	if p.flags.json {
		_ = p.printEvent(e)
		return
	}
	failed := e.Event == "trouble" || e.Run != nil && e.Run.State == string(nightly.Failed)
	if failed || !p.flags.quiet {
		p.say("%s %s: %s", p.moment(e.At), e.Target, strings.TrimSpace(e.Sentence))
	}
}

// target prints the next run of a target when the agent starts.
func (p *agentPrinter) target(t local.Target) {
	times, err := nightly.Parse(t.Schedule, t.TimeZone)
	if err != nil || p.flags.json || p.flags.quiet {
		return // tasks reports a bad schedule
	}
	_, next := times.Next(p.now())
	p.note("%s: next run %s", t.Name, p.when(next))
}

func (a *app) agentRunCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run TARGET",
		Short: "Run the job of a target now",
		Long: `Run does the job that the agent does on the target's schedule, but at once, and
records the run. It fails if an agent is working on the target.`,
		Example:           examples("try the job before its first scheduled run", "snapcli agent run shop"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE:              a.withAgent(a.runAgentNow),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) runAgentNow(ctx context.Context, agent *local.Agent, args []string) error {
	t, err := agent.Target(args[0])
	if err != nil {
		return err
	}
	p := agentPrinter{app: a}
	task, err := agent.Nightly(t, p.service(agent))
	if err != nil {
		return err
	}
	n := nightly.Agent{Records: agent.Runs(), Now: a.now, Report: func(nightly.Event) {}}
	run, err := n.RunNow(ctx, task)
	if err != nil {
		return stopped(ctx, a.cannotRun(err, t.Name), "the run",
			"if the target has a schedule, the agent resumes the run; the same command starts a new run instead")
	}
	if run.State == nightly.Failed {
		return &snap.Error{Code: run.Code, Detail: fmt.Sprintf("the step %s failed: %s", run.Step, run.Problem),
			Hint: run.Hint}
	}
	if a.flags.json {
		return a.printJSON(viewRun(run))
	}
	a.done(run.Pushed, "%s", p.sentence(nightly.Ended, run))
	return nil
}

// cannotRun returns err, or an error with a hint if err says that a run cannot begin now.
func (a *app) cannotRun(err error, target string) error {
	if soon, ok := errors.AsType[nightly.TooSoonError](err); ok {
		return &snap.Error{Code: snap.CodeConflict, Cause: err,
			Detail: "the next run can only begin after " + a.moment(soon.After),
			Hint:   "wait a minute, or see `snapcli agent status`"}
	}
	if !errors.Is(err, nightly.ErrBusy) {
		return err
	}
	return &snap.Error{Code: snap.CodeConflict,
		Detail: fmt.Sprintf("another process is working on the target %q", target),
		Hint:   "wait until its run has ended: `snapcli agent status`", Cause: err}
}
