package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) pullCommand() *cobra.Command {
	var o local.PullOptions
	var from placeFlags
	cmd := &cobra.Command{
		Use:   "pull TARGET [--cloud]",
		Short: "Pull a snapshot from the cloud service, or from a storage profile",
		Long: `Pull downloads a cloud snapshot through a presigned URL, verifies every byte and
keeps it on this machine. It pulls the newest snapshot of the target that you
can see; --snapshot-id selects another one by its ID or the start of it. Without
--cloud, it pulls from a storage profile in the config file. There, the ID of a
snapshot is its name.

If this machine has an earlier snapshot of the target from the cloud, only the
difference is fetched, and the file is rebuilt from it and the earlier snapshot.
A storage profile has the whole file and the difference from one earlier
snapshot: if this machine has that snapshot, only the difference is fetched.
--full fetches the whole file.

If the config file has no such target, pull adds it. If the file cannot be
written, pull prints what to add. An interrupted pull resumes where it stopped.

By default, ` + "`snapcli load`" + ` reads only tables and rows from a snapshot of another
organization. Loaded in this way, the snapshot cannot run code that its author
wrote, and it cannot read or change other databases, other files, user accounts
or server settings. A snapshot of your own organization, or from a storage
profile, is loaded with its programs, confined to the destination database.`,
		Example: examples(
			"pull the newest snapshot of shop", "snapcli pull shop --cloud",
			"pull exactly this one", "snapcli pull shop --cloud --snapshot-id snap_7h2k9m"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			if from.cloud {
				return a.pull(ctx, agent, args[0], o)
			}
			return a.pullProfile(ctx, agent, from.profile, args[0], o)
		}),
	}
	a.placeFlags(cmd, &from, "pull from the cloud service")
	cmd.Flags().StringVar(&o.SnapshotID, "snapshot-id", "",
		"ID of the snapshot, or the start of it (default: the newest)")
	typeFlag(cmd, &o.Type, "type of snapshot to pull")
	jobsFlag(cmd, &o.Jobs, "number of connections at once; 0 means automatic")
	cmd.Flags().BoolVar(&o.Full, "full", false, "fetch the whole file, not only what changed")
	_ = cmd.RegisterFlagCompletionFunc("snapshot-id", a.completeIDs)
	a.jsonFlag(cmd)
	return cmd
}

// pullView is the JSON output of pull.
type pullView struct {
	ID            string    `json:"id"`
	Name          string    `json:"name"`
	Target        string    `json:"target"`
	Type          snap.Type `json:"type"`
	Bytes         int64     `json:"bytes" doc:"bytes of the file"`
	Moved         int64     `json:"moved" doc:"bytes that were fetched"`
	Here          bool      `json:"here" doc:"the snapshot was already on this machine"`
	CreatedTarget bool      `json:"created_target" doc:"the target was missing and was added to the config file"`
	Unsaved       string    `json:"target_unsaved,omitempty" doc:"why the target could not be written to the config"`

	Provenance provenanceView `json:"provenance"`
}

func (a *app) pull(ctx context.Context, agent *local.Agent, target string, o local.PullOptions) error {
	conn, err := a.cloud(agent)
	if err != nil {
		return err
	}
	report, end := a.progress()
	r, err := agent.Pull(ctx, conn.Client, target, o, report)
	end()
	if err != nil {
		return err
	}
	return a.printPulled(target, r)
}

func (a *app) pullProfile(ctx context.Context, agent *local.Agent, profile, target string,
	o local.PullOptions) error {
	report, end := a.progress()
	r, err := agent.PullProfile(ctx, profile, target, o, report)
	end()
	if err != nil {
		return err
	}
	return a.printPulled(target, r)
}

func (a *app) printPulled(target string, r local.PullResult) error {
	s := r.Snapshot
	if a.flags.json {
		unsaved := ""
		if r.Unsaved != nil {
			unsaved = r.Unsaved.Error()
		}
		return a.printJSON(pullView{r.ID, s.Name, s.Target, s.Type, s.Size, r.Moved, r.Here, r.CreatedTarget, unsaved,
			provenanceView(s.From)})
	}
	if r.CreatedTarget {
		a.note("created the target %s; give it a database with `snapcli targets add %s --destination URL`", target,
			snap.ShellWord(target))
	}
	if r.Here {
		a.done(s.Name, "%s is already here, with the same checksum: nothing was fetched", s.Name)
	} else {
		a.done(s.Name, "pulled %s (%s, %s), every byte verified", s.Name, string(s.Type), size(s.Size))
	}
	if s.From.Origin == local.Theirs {
		a.note("the snapshot comes from the organization %s: `snapcli load` loads only its tables and rows",
			s.From.Organization)
	}
	if r.Unsaved != nil {
		a.warn("the target %s could not be saved: %s\nadd it to the config file by hand:\n\ntargets:\n  %s:\n    "+
			"destination: URL", target, r.Unsaved, strconv.Quote(target))
	} else if !r.CreatedTarget {
		a.next("load it with `snapcli load %s`", snap.ShellWord(target))
	}
	return nil
}
