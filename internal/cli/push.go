package cli

import (
	"context"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) pushCommand() *cobra.Command {
	var o local.PushOptions
	var to placeFlags
	cmd := &cobra.Command{
		Use:   "push TARGET [--cloud]",
		Short: "Push a snapshot to the cloud service, or to a storage profile",
		Long: `Push uploads the target's newest snapshot that was built or sanitized on this
machine, or the one that --snapshot names, and prints which one it chose. A
snapshot that you pulled is pushed only if you name it. A pushed snapshot is
private unless a channel shares it: only you, the owners and admins of your
organization, and the organization's API keys with the scope private see it.
Without --cloud, push writes to a storage profile from the config file: a bucket
or folder of your own.

If an earlier snapshot of the target is both in the cloud and on this machine,
push sends only the difference. The service rebuilds the same file from it and
verifies the checksum. --full sends the whole file. A storage profile always
gets the whole file. It also gets the difference, which makes later pulls
smaller. The cloud service cannot rebuild an encrypted snapshot, so push always
sends it the whole file. If a key in the configuration opens the snapshot
without a passphrase, push also sends the difference, which makes later pulls
smaller.

The snapshot's card is published with it: the names, types, keys and masks of
its columns, the names of its indexes, constraints and programs, and the row
count and size of each table, but no data. The people who can see the snapshot
can see its card. Other organizations see the card only if you share the
snapshot with --with-schema. The card of an encrypted snapshot is published only
if you ask for it with --card.

An interrupted push resumes where it stopped when you run it again. A snapshot
that is already in the cloud is not sent again.`,
		Example: examples(
			"push the newest snapshot", "snapcli push shop --cloud",
			"push the newest masked one and keep its ID", "id=$(snapcli push shop --cloud --type sanitized --quiet)"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			o.Chosen = a.reportChoice("the latest one built or sanitized here")
			if to.cloud {
				return a.push(ctx, agent, args[0], o)
			}
			return a.pushProfile(ctx, agent, to.profile, args[0], o)
		}),
	}
	a.placeFlags(cmd, &to, "push to the cloud service")
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "",
		"name of the local snapshot to push (default: the newest built or sanitized here)")
	typeFlag(cmd, &o.Type, "type of snapshot to push")
	jobsFlag(cmd, &o.Jobs, "number of connections at once; 0 means automatic")
	cmd.Flags().BoolVar(&o.Full, "full", false, "send the whole file, not only what changed")
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
	cmd.Flags().Var(&cardChoice{&o.Card}, "card",
		"card to publish: full, tables or none (default: full; none for an encrypted snapshot)")
	identityFlag(cmd, &o.Identity)
	a.jsonFlag(cmd)
	return cmd
}

// reportChoice returns a function that reports which snapshot a command chose because none was
// named, and why.
func (a *app) reportChoice(why string) func(local.Snapshot) {
	return func(s local.Snapshot) { a.note("using %s, %s", s.Name, why) }
}

// pushView is the JSON output of push.
type pushView struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Target  string  `json:"target"`
	Bytes   int64   `json:"bytes" doc:"bytes of the file"`
	Moved   int64   `json:"moved" doc:"bytes that were sent"`
	Exists  bool    `json:"exists" doc:"the snapshot was already there"`
	Seconds float64 `json:"seconds"`

	Base      string `json:"base,omitempty" doc:"name of the snapshot that the difference is relative to"`
	Unchanged bool   `json:"unchanged" doc:"the data is the same as that of the base"`
}

func (a *app) printPushed(target string, r local.PushResult) error {
	return a.printJSON(pushView{r.ID, r.Name, target, r.Bytes, r.Moved, r.Exists, r.Elapsed.Seconds(),
		r.Base, r.Unchanged})
}

func (a *app) push(ctx context.Context, agent *local.Agent, target string, o local.PushOptions) error {
	conn, err := a.cloud(agent)
	if err != nil {
		return err
	}
	report, end := a.progress()
	r, err := agent.Push(ctx, conn.Client, target, o, report)
	end()
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.printPushed(target, r)
	}
	a.reportPushed(ctx, conn, r)
	return nil
}

// reportPushed reports the pushed snapshot and who can see it. With an API key that may only push,
// it omits who can see the snapshot.
func (a *app) reportPushed(ctx context.Context, conn *connection, r local.PushResult) {
	s, err := conn.Snapshot(ctx, r.ID)
	switch {
	case r.Exists:
		a.done(r.ID, "%s is already in the cloud as %s: nothing was sent", r.Name, r.ID)
	case err != nil:
		a.log.Debug("cannot read back the pushed snapshot", "error", err)
		a.done(r.ID, "pushed %s as %s (%s in %s)", r.Name, r.ID, size(r.Moved), brief(r.Elapsed))
	default:
		a.done(r.ID, "pushed %s as %s (%s in %s): %s", r.Name, r.ID, size(r.Moved), brief(r.Elapsed), seenBy(s))
	}
	switch {
	case r.Unchanged:
		a.note("nothing changed since %s", r.Base)
	case r.Base != "" && r.Moved < r.Bytes:
		a.note("sent only what changed since %s", r.Base)
	}
	if s.Can != nil && s.Can.Share {
		a.next("share it with `snapcli cloud snapshots share %s`", r.ID)
	}
}

// seenBy describes who can see a newly pushed snapshot. A new snapshot starts out private, but a
// channel may have shared it already.
func seenBy(s api.Snapshot) string {
	switch {
	case s.Shared:
		return "a channel shares it org-wide"
	case s.Groups > 0:
		return "a channel shares it with " + snap.Plural(s.Groups, "group", "groups")
	case s.Owner == "":
		return "it belongs to your organization, whose owners and admins see it"
	}
	return "private to you and the admins of your organization"
}

// pushProfile pushes to a storage profile. Only the object store itself checks permissions there.
func (a *app) pushProfile(ctx context.Context, agent *local.Agent, profile, target string,
	o local.PushOptions) error {
	report, end := a.progress()
	r, err := agent.PushProfile(ctx, profile, target, o, report)
	end()
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.printPushed(target, r)
	case r.Exists:
		a.done(r.Name, "%s is already in the storage profile: nothing was sent", r.Name)
	default:
		a.done(r.Name, "pushed %s to the storage profile (%s in %s)", r.Name, size(r.Moved), brief(r.Elapsed))
	}
	if r.Unchanged {
		a.note("nothing changed since %s", r.Base)
	}
	return nil
}
