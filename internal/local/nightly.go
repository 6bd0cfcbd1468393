package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
	"snap/internal/engine"
	"snap/internal/nightly"
)

// keptNights is how long the masked copies of the nightly job stay on this machine, so that clones
// of them can be reset. The newest copy always stays.
const keptNights = 7 * 24 * time.Hour

// Runs returns the records of the nightly jobs.
func (a *Agent) Runs() nightly.Records { return nightly.Records{Dir: filepath.Join(a.data, "agent")} }

// Scheduled returns the targets that have a schedule, sorted by name.
func (a *Agent) Scheduled() (all []Target) {
	for _, t := range a.Targets() {
		if t.Schedule != "" {
			all = append(all, t)
		}
	}
	return all
}

// Nightly returns the nightly job of a target: it builds a snapshot, masks it, proves the masked
// copy by loading it into a scratch database, pushes it and removes what it no longer needs. An
// unmasked snapshot is never pushed and never kept. service connects to the cloud service. If no
// cloud service is configured, service is not called, and the copy goes to the only storage
// profile.
func (a *Agent) Nightly(t Target, service func() (*api.Client, error)) (nightly.Task, error) {
	times, err := nightly.Parse(t.Schedule, t.TimeZone)
	if err != nil {
		return nightly.Task{}, err
	}
	n := night{agent: a, target: t, service: service}
	return nightly.Task{Target: t.Name, Times: times, Failed: n.failed, Steps: []nightly.Step{
		{Name: "build", Do: n.build}, {Name: "sanitize", Do: n.sanitize}, {Name: "prove", Do: n.prove},
		{Name: "push", Do: n.push}, {Name: "clean up", Do: n.cleanUp},
	}}, nil
}

// scheduleFlaws adds the settings that would make the nightly job of a target fail.
func (a *Agent) scheduleFlaws(t Target, f *flaws) {
	at := "targets." + t.Name
	f.add(Flaw{Key: at + ".checks", Err: checkChecks(t.Checks)})
	_, err := nightly.Parse("", t.TimeZone)
	f.add(Flaw{Key: at + ".time_zone", Err: err})
	if t.Schedule == "" {
		return
	}
	if _, err = nightly.Parse(t.Schedule, ""); err == nil {
		err = checkCanMask(t)
	}
	f.add(Flaw{Key: at + ".schedule", Err: err})
	f.add(Flaw{Key: at + ".schedule", Err: a.checkCanPush(), Doubt: true}) // the environment may set cloud.url
}

// checkCanMask returns an error if a target lacks the source or the masking rules that the nightly
// job needs.
func checkCanMask(t Target) error {
	switch {
	case t.Source == "":
		return snap.Usage(fmt.Sprintf("the target %q has no source to build from", t.Name),
			fmt.Sprintf("give it one with `snapcli targets add %s --source URL`", snap.ShellWord(t.Name)))
	case t.Sanitize == SanitizeSpec{}:
		return snap.Usage(fmt.Sprintf("the target %q has no masking rules, and the agent pushes only masked "+
			"snapshots", t.Name), fmt.Sprintf("draft rules with `snapcli sanitize %s --init`", snap.ShellWord(t.Name)))
	}
	return nil
}

// checkCanPush returns an error unless a cloud service or exactly one storage profile is
// configured.
func (a *Agent) checkCanPush() error {
	if c := a.Config(); c.Cloud.URL == "" && len(c.StorageProfiles) != 1 {
		return snap.Usage("to push snapshots, the agent needs a cloud service or exactly one storage profile",
			"set cloud.url with `snapcli config set cloud.url URL`, or edit the profiles with `snapcli config edit`")
	}
	return nil
}

func checkChecks(all []Check) error {
	for _, c := range all {
		if strings.TrimSpace(c.SQL) == "" {
			return snap.Usage("a check has no sql",
				"write it as: - {sql: SELECT count(*) > 0 FROM orders, expect: true}")
		}
	}
	return nil
}

// night has the steps of one target's job.
type night struct {
	agent   *Agent
	target  Target
	service func() (*api.Client, error)
}

// build takes the snapshot, unless a killed run already did.
func (n night) build(ctx context.Context, r *nightly.Run, save func() error) error {
	if err := cmp.Or(checkCanMask(n.target), n.agent.checkCanPush()); err != nil {
		return err
	}
	if done, err := n.agent.salvage(n.target.Name, r.Original); done || err != nil {
		return err
	}
	_, err := n.agent.Build(ctx, n.target.Name, BuildOptions{Named: saveNameTo(&r.Original, save)}, nil)
	return err
}

// sanitize masks the snapshot, unless a killed run already did.
func (n night) sanitize(ctx context.Context, r *nightly.Run, save func() error) error {
	if done, err := n.agent.salvage(n.target.Name, r.Masked); done || err != nil {
		return err
	}
	o := SanitizeOptions{Snapshot: r.Original, Named: saveNameTo(&r.Masked, save)}
	_, err := n.agent.Sanitize(ctx, n.target.Name, o, nil)
	return err
}

// saveNameTo returns a function for the option Named, which saves the name of a snapshot in a run.
func saveNameTo(field *string, save func() error) func(string) error {
	return func(name string) error {
		*field = name
		return save()
	}
}

// salvage reports whether a snapshot that a killed run named is complete. If it is not, salvage
// removes its remains.
func (a *Agent) salvage(target, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	path, err := a.snapshotFile(target, name)
	if err != nil {
		return false, err
	}
	_, noFile := os.Stat(path)
	_, noRecord := os.Stat(recordPath(path))
	if noFile == nil && noRecord == nil {
		return true, nil
	}
	for _, left := range []string{path, recordPath(path)} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("remove an incomplete snapshot: %w", err)
		}
	}
	return false, nil
}

// prove loads the masked copy into a scratch database and runs the target's checks there.
func (n night) prove(ctx context.Context, r *nightly.Run, _ func() error) error {
	a := n.agent
	s, err := a.ToDelete(r.Masked) // by its full name
	if err != nil {
		return err
	}
	reader, err := a.openVerified(ctx, s, nil)
	if err != nil {
		return err
	}
	defer reader.Close()
	d, err := a.dumpOf(s, reader)
	if err != nil {
		return err
	}
	dir, done, err := a.workDir()
	if err != nil {
		return err
	}
	defer done()
	on, err := a.scratchServer(n.target, s.Engine, dir)
	if err != nil {
		return err
	}
	scratch, err := on.engine.Restore(ctx, on.url, d, engine.Options{Jobs: jobsOf(n.target.Jobs), TempDir: dir})
	if err != nil {
		return diskError(err, "load the masked copy into a scratch database")
	}
	defer scratch.Drop(context.WithoutCancel(ctx))
	for _, c := range n.target.Checks {
		if err := c.run(ctx, scratch); err != nil {
			return err
		}
	}
	return nil
}

// run returns an error if the check does not hold in a scratch database.
func (c Check) run(ctx context.Context, scratch engine.Scratch) error {
	value, err := scratch.Ask(ctx, c.SQL)
	var known *snap.Error
	if errors.As(err, &known) {
		return &snap.Error{Code: known.Code, Detail: fmt.Sprintf("the check %q cannot be run: %s", c.short(), known),
			Hint: "correct it in the target's checks", Cause: err}
	}
	if err != nil || sameValue(value, c.Expect) {
		return err
	}
	return snap.Invalid(fmt.Sprintf("the check %q returned %q instead of %q", c.short(), shorten(value),
		shorten(c.Expect)), "nothing was pushed; look at the masked copy, the rules and the source")
}

func (c Check) short() string { return shorten(strings.Join(strings.Fields(c.SQL), " ")) }

func shorten(text string) string {
	const limit = 120
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// sameValue compares a value with the expected one as text, as numbers, or as true and false, which
// some databases return as t and f or 1 and 0.
func sameValue(got, want string) bool {
	if got == want {
		return true
	}
	_, errX := strconv.ParseFloat(got, 64) // also limits exponents
	_, errY := strconv.ParseFloat(want, 64)
	if errX == nil && errY == nil {
		x, _, errX := big.ParseFloat(got, 10, 512, big.ToNearestEven)
		y, _, errY := big.ParseFloat(want, 10, 512, big.ToNearestEven)
		return errX == nil && errY == nil && x.Cmp(y) == 0
	}
	p, errP := strconv.ParseBool(got)
	q, errQ := strconv.ParseBool(want)
	return errP == nil && errQ == nil && p == q
}

// push sends the masked copy to the service, or to the only storage profile. Both recognize a copy
// that a killed run has already sent.
func (n night) push(ctx context.Context, r *nightly.Run, _ func() error) error {
	o := PushOptions{Snapshot: r.Masked, Type: snap.TypeSanitized}
	var result PushResult
	var err error
	if n.agent.Config().Cloud.URL == "" {
		result, err = n.agent.PushProfile(ctx, "", n.target.Name, o, nil)
	} else {
		var client *api.Client
		if client, err = n.service(); err == nil {
			result, err = n.agent.Push(ctx, client, n.target.Name, o, nil)
		}
	}
	if err == nil {
		r.Pushed = result.ID
	}
	return err
}

// failed cleans up after a run that failed. The run's masked copy stays for inspection.
func (n night) failed(*nightly.Run) {
	if err := n.removeOld(); err != nil {
		n.agent.log.Warn("old snapshots of the job could not be removed", "target", n.target.Name, "err", err)
	}
}

// cleanUp is the last step.
func (n night) cleanUp(context.Context, *nightly.Run, func() error) error { return n.removeOld() }

// removeOld removes the unmasked snapshots of all runs, and the masked copies of runs that are
// older than [keptNights], except the newest copy.
func (n night) removeOld() error {
	record, err := n.agent.Runs().Read(n.target.Name)
	newest := true
	for _, old := range slices.Backward(record.Runs) {
		err = errors.Join(err, n.remove(old.Original)) // abandoned runs may have left theirs
		if !newest && n.agent.now().Sub(old.Began) >= keptNights {
			err = errors.Join(err, n.remove(old.Masked))
		}
		newest = newest && !n.exists(old.Masked)
	}
	return err
}

// exists reports whether a snapshot that the job created still exists.
func (n night) exists(name string) bool {
	path, err := n.agent.snapshotFile(n.target.Name, name)
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}

// remove deletes a snapshot that the job created, if it still exists.
func (n night) remove(name string) error {
	if !n.exists(name) {
		return nil
	}
	return n.agent.DeleteSnapshot(name)
}
