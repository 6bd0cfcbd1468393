package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) runCommand() *cobra.Command {
	var f cloneFlags
	cmd := &cobra.Command{
		Use:   "run [TARGET] [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command with a database of its own",
		Long: `Run makes a clone of a target (or uses a copy that ` + "`snapcli clones warm`" + `
prepared), runs a command with the clone, and drops the clone when the command
ends, even after Ctrl-C. The command's environment has DATABASE_URL and the
variables that psql (PGHOST, PGDATABASE and so on) or mysql reads. Its output
and exit code pass through, and it receives the signals that are sent to
snapcli. If snapcli is killed, the next snapcli command drops the clone.

With a single target in the configuration, TARGET can be omitted.`,
		Example: examples(
			"test against masked production data", "snapcli run shop --type sanitized -- go test ./...",
			"look around", "snapcli run shop -- psql"),
		Args:              checkRunArgs,
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), args[:dash], args[dash:], o, f.pull)
		},
	}
	f.add(a, cmd)
	return cmd
}

func checkRunArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 || dash == len(args) {
		return snap.Usage("run needs a command after --", command.UsageHint(cmd))
	}
	if dash > 1 {
		return snap.Usage(fmt.Sprintf("run takes one target, but there is also %q", args[1]), command.UsageHint(cmd))
	}
	return nil
}

// exited ends snapcli with this exit code and without a further message. It is the exit code of the
// command of `snapcli run`, or that of a comparison.
type exited int

func (e exited) Error() string { return fmt.Sprintf("the command ended with exit code %d", int(e)) }

func (a *app) run(ctx context.Context, targets, words []string, o local.CloneOptions, pull bool) error {
	program, err := exec.LookPath(words[0])
	if errors.Is(err, fs.ErrPermission) {
		return &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf("the program %q is not executable", words[0]),
			Hint: fmt.Sprintf("run `chmod +x %s`", snap.ShellWord(words[0])), Cause: err}
	}
	if err != nil {
		return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no program %q", words[0]),
			Hint: "check the command after --", Cause: err}
	}
	agent, err := a.agent()
	if err != nil {
		return err
	}
	target, err := onlyTarget(agent, targets)
	if err != nil {
		return err
	}
	if err := a.ensureSnapshot(ctx, agent, target, &o, pull); err != nil {
		return err
	}
	report, pausing, end := a.pausableProgress()
	o.Trust = pausing(func(p local.Preflight) error { return a.confirmTrust(ctx, p) })
	b, err := agent.Borrow(ctx, target, o, report)
	end()
	if err != nil {
		return stopped(ctx, err, "the run", "its command was not started, and nothing is left behind")
	}
	if b.LeftOut != "" {
		a.warn("the snapshot is from somebody else, so the database does not have %s", b.LeftOut)
	}
	stopRefill := a.refill(ctx, agent, target, o)
	url, err := agent.SecretURL(ctx, b.Cloned)
	if err == nil {
		err = a.runProgram(ctx, b, url, program, words)
	}
	stopRefill()
	a.dropBorrowed(ctx, b)
	return err
}

// dropBorrowed drops the clone of a run.
func (a *app) dropBorrowed(ctx context.Context, b *local.Borrowed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.timeouts.drop)
	defer cancel()
	if err := b.Return(ctx); err != nil {
		a.warn("cannot drop the clone: %s; the next snapcli command tries again", err)
	}
}

// onlyTarget returns the named target, or else the only target in the configuration.
func onlyTarget(agent *local.Agent, named []string) (string, error) {
	if len(named) > 0 {
		return named[0], nil
	}
	switch all := agent.Targets(); len(all) {
	case 0:
		return "", snap.Usage("there are no targets yet", addTargetHint)
	case 1:
		return all[0].Name, nil
	default:
		return "", snap.Usage(fmt.Sprintf("there are %d targets, so run needs the name of one", len(all)),
			"use it as: snapcli run TARGET -- COMMAND")
	}
}

// refill makes new warm copies in the background. The returned function stops it and waits for it
// to end.
func (a *app) refill(ctx context.Context, agent *local.Agent, target string, o local.CloneOptions) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := agent.WarmClones(ctx, target, -1, o, nil); err != nil {
			a.log.Debug("no warm copies", "err", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// runProgram runs the command. It waits for the command to end, whatever signals arrive.
func (a *app) runProgram(ctx context.Context, b *local.Borrowed, url, program string, words []string) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, words[1:]...)
	cmd.Args[0] = words[0]
	cmd.Env = local.WithEnvironment(os.Environ(), b.Source.Engine, url)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.io.In, a.stdout, a.io.Err
	signals := relaySignals()
	defer signals.stop()
	if err := cmd.Start(); err != nil {
		return &snap.Error{Code: snap.CodeInvalid, Detail: fmt.Sprintf("the program %q cannot be started: %s", words[0],
			err), Hint: "check the command after --", Cause: err}
	}
	signals.pass(cmd.Process, a.io.InTerminal)
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exited(exitCode(exit))
	}
	return err
}
