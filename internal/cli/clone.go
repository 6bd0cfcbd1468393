package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/clone"
	"snap/internal/command"
	"snap/internal/local"
)

// cloneFlags are the flags of the commands that make clones.
type cloneFlags struct {
	local.CloneOptions
	ttl  string
	pull bool
}

// add adds the flags that choose the snapshot and say how to load it.
func (f *cloneFlags) add(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Snapshot, "snapshot", "",
		"name of the snapshot, or its ID in the cloud (default: the latest one built, sanitized or pulled here)")
	typeFlag(cmd, &f.Type, "type of snapshot to use")
	cmd.Flags().BoolVar(&f.pull, "pull", false, "if the snapshot is not on this machine, pull it from the "+
		"cloud: the newest, or the one with the ID in --snapshot")
	cmd.Flags().BoolVar(&f.WithPrograms, "with-programs", false,
		"also load the functions, triggers, views and other programs of another organization's snapshot")
	jobsFlag(cmd, &f.Jobs, "number of tables written at once; 0 uses the target's setting")
	identityFlag(cmd, &f.Identity)
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
}

func (f *cloneFlags) addTTL(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.ttl, "ttl", "", "how long the clone lives, such as 2h or 7d (default: clones.ttl of the "+
		"target, otherwise 24h)")
}

func (f *cloneFlags) options(cmd *cobra.Command) (o local.CloneOptions, err error) {
	o = f.CloneOptions
	if cmd.Flags().Changed("ttl") {
		o.TTL, err = snap.ParseDuration(f.ttl)
	}
	return o, err
}

func (a *app) cloneCommand() *cobra.Command {
	var f cloneFlags
	var from string
	var terminate, withPassword bool
	cmd := &cobra.Command{
		Use:   "clone [TARGET]",
		Short: "Make a database of your own from a snapshot",
		Long: `Clone makes a new database from a snapshot of a target and prints its URL. The
first clone of a snapshot loads it once into a template on the server of the
target's destination, or on its scratch server if it has no destination (SQLite:
into a file in the data folder). Each clone is a copy of the template. With
--from, clone makes a branch: a copy of the current content of another clone.

When a clone has expired, the next snapcli command drops it; to drop it earlier,
use ` + "`snapcli clones drop`" + `. Clone refuses to use the server of a destination that
is marked as production, that has a name like a production database, or that is
the target's own source. Snapshots of other organizations are loaded as
` + "`snapcli load`" + ` loads them: as data, without their programs.

The URL has no password unless you add --with-password.`,
		Example: examples(
			"make a database for a pull request", "snapcli clone shop --name pr-12 --type sanitized --ttl 2d",
			"make four, named test-1 to test-4", "snapcli clone shop --name test --count 4",
			"branch a clone", "snapcli clone --from pr-12 --name pr-12b"),
		Args:              command.AtMostOneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			if from != "" {
				return a.branch(cmd, args, from, o, terminate, withPassword)
			}
			if terminate {
				return snap.Usage("--terminate works only with --from",
					"omit it, or name the clone to branch with --from")
			}
			if len(args) == 0 {
				return snap.Usage("clone needs a target, or a clone to branch", command.UsageHint(cmd))
			}
			return a.clone(cmd.Context(), args[0], o, f.pull, withPassword)
		},
	}
	f.add(a, cmd)
	f.addTTL(cmd)
	cmd.Flags().StringVar(&f.Name, "name", "", "name of the clone (default: the target's name and a number)")
	cmd.Flags().IntVar(&f.Count, "count", 1, "how many clones to make; several are named NAME-1, NAME-2 and so on")
	cmd.Flags().StringVar(&from, "from", "", "name of the clone to branch from, instead of loading a snapshot")
	cmd.Flags().BoolVar(&terminate, "terminate", false, "with --from: end other connections to that clone")
	cmd.Flags().BoolVar(&withPassword, "with-password", false, "print the URL with its password")
	_ = cmd.RegisterFlagCompletionFunc("from", a.completeClones)
	a.jsonFlag(cmd)
	return cmd
}

// cloneView is the JSON form of a clone.
type cloneView struct {
	Name      string      `json:"name" doc:"for a copy of kind warm, its ID"`
	Target    string      `json:"target"`
	Snapshot  string      `json:"snapshot"`
	Type      snap.Type   `json:"type"`
	Engine    snap.Engine `json:"engine"`
	URL       string      `json:"url" doc:"without its password, unless --with-password is given"`
	From      string      `json:"from,omitempty" doc:"clone that it was branched from"`
	Kind      clone.Kind  `json:"kind" doc:"named, run (belongs to a running snapcli run) or warm (kept ready for one)"`
	State     clone.State `json:"state" doc:"making, ready, resetting or dropping"`
	CreatedAt time.Time   `json:"created_at"`
	ExpiresAt time.Time   `json:"expires_at"`
	LeftOut   string      `json:"left_out,omitempty" doc:"programs of somebody else's snapshot that the clone lacks"`

	Size        int64    `json:"size" doc:"bytes of the database, in the output of clones and reset; 0 if unknown"`
	Connections []string `json:"connections,omitempty" doc:"who is connected; only in the output of clones and reset"`
	Error       string   `json:"error,omitempty" doc:"why the database could not be inspected, for clones and reset"`
}

func viewClone(c clone.Clone, url string) cloneView {
	return cloneView{Name: c.Label(), Target: c.Source.Target, Snapshot: c.Source.Snapshot, Type: c.Source.Type,
		Engine: c.Source.Engine, URL: url, From: c.From, Kind: c.Kind, State: c.State, CreatedAt: c.Created,
		ExpiresAt: c.Expires}
}

func countTooSmall(count int) error {
	return snap.Usage(fmt.Sprintf("--count %d is less than one", count), "use a number like 4, or omit it")
}

func (a *app) clone(ctx context.Context, target string, o local.CloneOptions, pull, withPassword bool) error {
	if o.Count < 1 {
		return countTooSmall(o.Count)
	}
	agent, err := a.sweptAgent(ctx)
	if err != nil {
		return err
	}
	if err := a.ensureSnapshot(ctx, agent, target, &o, pull); err != nil {
		return err
	}
	report, pausing, end := a.pausableProgress()
	o.Trust = pausing(func(p local.Preflight) error { return a.confirmTrust(ctx, p) })
	all, err := agent.Clone(ctx, target, o, report)
	end()
	if err != nil {
		return stopped(ctx, err, "the clone", "nothing is left behind; run the same command again")
	}
	return a.printCloned(ctx, agent, all, withPassword)
}

// ensureSnapshot sets o.Snapshot to the name of the snapshot to clone. If that snapshot is not on
// this machine, ensureSnapshot pulls it; without --pull it asks a person on the terminal first, or
// fails.
func (a *app) ensureSnapshot(ctx context.Context, agent *local.Agent, target string, o *local.CloneOptions,
	pull bool) error {
	s, err := agent.ToClone(target, *o)
	if err == nil {
		o.Snapshot = s.Name
		return nil
	}
	_, targetErr := agent.Target(target)
	connected := agent.Config().Cloud.URL != ""
	if snap.CodeOf(err) != snap.CodeNotFound || !pull && (targetErr != nil || !connected) {
		return err
	}
	if !pull {
		_, maybeID := snap.CleanIDPrefix(o.Snapshot)
		if o.Snapshot != "" && !maybeID || !a.canAsk() { // names are not resolved in the cloud
			return err
		}
		if agreed, askErr := a.askYesNo(ctx, err.Error()+". Pull it?", "It comes from "+agent.Config().Cloud.URL+
			"."); askErr != nil || !agreed {
			return err
		}
	}
	return a.pullToClone(ctx, agent, target, o)
}

func (a *app) pullToClone(ctx context.Context, agent *local.Agent, target string, o *local.CloneOptions) error {
	conn, err := a.cloud(agent)
	if err != nil {
		return err
	}
	report, end := a.progress()
	r, err := agent.Pull(ctx, conn.Client, target, local.PullOptions{SnapshotID: o.Snapshot, Type: o.Type}, report)
	end()
	if err != nil {
		return err
	}
	a.note("pulled %s (%s, %s), every byte verified", r.Snapshot.Name, string(r.Snapshot.Type), size(r.Snapshot.Size))
	o.Snapshot = r.Snapshot.Name
	return nil
}

func (a *app) branch(cmd *cobra.Command, args []string, from string, o local.CloneOptions, terminate,
	withPassword bool) error {
	const hint = "use it as: snapcli clone --from NAME --name NEW"
	if len(args) > 0 {
		return snap.Usage("a branch copies another clone, so it takes no target", hint)
	}
	for _, flag := range []string{"snapshot", "type", "pull", "count", "with-programs", "identity"} {
		if cmd.Flags().Changed(flag) {
			return snap.Usage("--"+flag+" does not work with --from", hint)
		}
	}
	ctx := cmd.Context()
	agent, err := a.sweptAgent(ctx)
	if err != nil {
		return err
	}
	c, err := agent.Branch(ctx, from, o, terminate)
	if err != nil {
		return stopped(ctx, err, "the clone", "nothing is left behind; run the same command again")
	}
	return a.printCloned(ctx, agent, []local.Cloned{c}, withPassword)
}

func (a *app) printCloned(ctx context.Context, agent *local.Agent, all []local.Cloned, withPassword bool) error {
	views := []cloneView{}
	for _, c := range all {
		v := viewClone(c.Clone, c.URL)
		if withPassword {
			var err error
			if v.URL, err = agent.SecretURL(ctx, c); err != nil {
				return err
			}
		}
		v.LeftOut = c.LeftOut
		views = append(views, v)
	}
	if a.flags.json {
		return a.printJSON(views)
	}
	for i, v := range views {
		if v.LeftOut != "" && i == 0 {
			a.warn("the snapshot is from somebody else, so the clone does not have %s; add --with-programs "+
				"if you trust its author", v.LeftOut)
		}
		from := v.Snapshot
		if v.From != "" {
			from = v.From
		}
		a.note("cloned %s as %s, until %s", from, v.Name, a.when(v.ExpiresAt))
		a.result("%s", raw(v.URL))
	}
	return nil
}

func (a *app) resetCommand() *cobra.Command {
	var o local.CloneOptions
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Reset a clone to its snapshot",
		Long: `Reset replaces the content of a clone with the snapshot that it was made from.
Its URL and expiry stay the same. Reset ends the connections to the clone. A
SQLite clone that is in use cannot be reset.`,
		Example:           examples("undo everything a test did", "snapcli reset pr-12"),
		Args:              command.ExactArgs("name"),
		ValidArgsFunction: a.completeClones,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			agent, err := a.sweptAgent(ctx)
			if err != nil {
				return err
			}
			report, end := a.progress()
			c, err := agent.ResetClone(ctx, args[0], o, report)
			end()
			if err != nil {
				return stopped(ctx, err, "the reset", "the clone has its old content or that of the snapshot")
			}
			if a.flags.json {
				return a.printClone(ctx, agent, c)
			}
			a.done("", "reset %s to %s", c.Name, c.Source.Snapshot)
			return nil
		},
	}
	identityFlag(cmd, &o.Identity)
	a.jsonFlag(cmd)
	return cmd
}

// printClone prints a clone and the state of its database as JSON.
func (a *app) printClone(ctx context.Context, agent *local.Agent, c clone.Clone) error {
	all, err := agent.Clones(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.ID == c.ID {
			return a.printJSON(viewListed(one))
		}
	}
	return a.printJSON(viewClone(c, ""))
}
