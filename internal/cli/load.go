package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) loadCommand() *cobra.Command {
	var o local.LoadOptions
	var yes, intoExisting, inPlace bool
	cmd := &cobra.Command{
		Use:   "load TARGET",
		Short: "Load a snapshot into a target's destination database",
		Long: `Load replaces the target's destination database with a snapshot: the latest one
built, sanitized or pulled on this machine, or the one that --snapshot names. It
prints which one it chose. The file is verified first, and the database is
replaced completely or not at all. Load asks before it replaces a database that
has content; scripts confirm with --yes. It does not ask about an empty
database, but it stops if somebody fills that database in the meantime.

If the target's configuration has after_load, that SQL file runs in the loaded
database before it replaces the destination, so that a failure changes nothing.
With --in-place, it runs in the destination itself. With --only, it does not
run.

--into-existing replaces the content of a database that exists, so that the
database user needs no permission to create or drop that database. On
PostgreSQL, load fills new schemas next to the old ones and exchanges them in
one transaction. On MySQL and MariaDB, load exchanges all tables in one
statement; for this, the database user needs permission to create temporary
databases named snapcli_*. A failure changes nothing. Load is refused if the
database user lacks a permission that it needs.

--in-place first removes the old content and then fills the database. If that
fails, the database is left empty or partly filled until a load succeeds.

--only replaces the rows of the tables that match a pattern, in one transaction,
and leaves everything else as it is. The tables must exist in the destination,
and every foreign key must hold at the end. No trigger fires.

If a snapshot comes from another organization or its origin is unknown, load
reads only its tables and rows. It lists the functions, triggers, views and
other programs that it leaves out. Loaded in this way, a snapshot cannot run
code that its author wrote, and it cannot read or change another database, an
account, a setting or a file. --with-programs also loads the programs, if you
trust the author (` + "`snapcli trust add`" + `) or confirm when load asks; --yes does not
confirm that.`,
		Example: examples(
			"load the latest snapshot", "snapcli load shop",
			"load the newest masked one, without asking", "snapcli load shop --type sanitized --yes",
			"replace the rows of one table", "snapcli load shop --only orders --yes",
			"load an encrypted one", "snapcli load shop --identity key.txt"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: a.withAgent(func(ctx context.Context, agent *local.Agent, args []string) error {
			switch {
			case inPlace:
				o.Into = local.InPlace
			case intoExisting:
				o.Into = local.IntoExisting
			}
			o.Chosen = a.reportChoice("the latest one built, sanitized or pulled here")
			return a.load(ctx, agent, args[0], o, yes)
		}),
	}
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "",
		"name of the snapshot to load (default: the latest one built, sanitized or pulled here)")
	typeFlag(cmd, &o.Type, "type of snapshot to load")
	cmd.Flags().BoolVar(&yes, "yes", false, "replace the destination without asking")
	cmd.Flags().BoolVar(&intoExisting, "into-existing", false,
		"replace the content of the destination instead of the whole database")
	cmd.Flags().BoolVar(&inPlace, "in-place", false,
		"remove the destination's content before filling it: a failure leaves it empty or partly filled")
	loadFlags(cmd, &o)
	jobsFlag(cmd, &o.Jobs, "number of tables written at once; 0 uses the target's setting")
	identityFlag(cmd, &o.Identity)
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
	a.jsonFlag(cmd)
	return cmd
}

// loadFlags adds the flags that change how a snapshot is loaded. The flags --into-existing and
// --in-place must exist already.
func loadFlags(cmd *cobra.Command, o *local.LoadOptions) {
	cmd.Flags().BoolVar(&o.Terminate, "terminate", false, "end other connections to the destination")
	cmd.Flags().BoolVar(&o.Force, "force-production", false,
		"load even into a destination that is marked as production or looks like it")
	cmd.Flags().BoolVar(&o.WithPrograms, "with-programs", false,
		"also load the functions, triggers, views and other programs of another organization's snapshot")
	cmd.Flags().StringArrayVar(&o.Only, "only", nil,
		"replace only the rows of the tables that match a pattern; can be repeated")
	cmd.Flags().BoolVar(&o.WithGrants, "with-grants", false,
		"give other users the privileges that the snapshot records, if it was built with them (PostgreSQL)")
	cmd.MarkFlagsMutuallyExclusive("into-existing", "in-place")
	for _, flag := range []string{"terminate", "with-programs", "with-grants", "into-existing", "in-place"} {
		cmd.MarkFlagsMutuallyExclusive("only", flag)
	}
}

// loadView is the JSON output of load.
type loadView struct {
	Snapshot    string  `json:"snapshot"`
	Target      string  `json:"target"`
	Destination string  `json:"destination"`
	Replaced    bool    `json:"replaced" doc:"the destination existed before"`
	Tables      int     `json:"tables"`
	Seconds     float64 `json:"seconds"`

	Provenance provenanceView `json:"provenance"`
	LeftOut    []programView  `json:"left_out,omitempty" doc:"programs of somebody else's snapshot that were left out"`
}

func (a *app) load(ctx context.Context, agent *local.Agent, target string, o local.LoadOptions, yes bool) error {
	report, pausing, end := a.pausableProgress()
	o.Agreed = yes
	o.Confirm = pausing(func(p local.Preflight) error { return a.confirmLoad(ctx, p, yes) })
	o.Trust = pausing(func(p local.Preflight) error { return a.confirmTrust(ctx, p) })
	r, err := agent.Load(ctx, target, o, report)
	end()
	if err != nil {
		left := "no half-loaded database is left behind; run the same command again"
		if o.Into == local.InPlace {
			left = "the destination may be empty or partly filled; run the same command again"
		}
		return stopped(ctx, err, "the load", left)
	}
	for _, sentence := range r.Notices {
		a.warn("%s", sentence)
	}
	if a.flags.json {
		return a.printJSON(loadView{
			r.Snapshot.Name, target, r.Destination, r.Replaced, len(r.Tables), r.Elapsed.Seconds(),
			provenanceView(r.Snapshot.From), viewPrograms(r.LeftOut),
		})
	}
	if r.Only {
		a.done(r.Snapshot.Name, "replaced the rows of %s in %s with those of %s in %s",
			snap.Plural(len(r.Tables), "table", "tables"), r.Destination, r.Snapshot.Name, brief(r.Elapsed))
		return nil
	}
	a.done(r.Snapshot.Name, "loaded %s into %s%s in %s", r.Snapshot.Name, r.Destination, tableCount(len(r.Tables)),
		brief(r.Elapsed))
	return nil
}

// confirmLoad shows what would be replaced and asks for confirmation. It does not ask if nothing
// would be lost.
func (a *app) confirmLoad(ctx context.Context, p local.Preflight, yes bool) error {
	a.showProvenance(p)
	for _, w := range p.Warnings {
		a.warn("%s", w)
	}
	if !p.Loses() {
		return nil
	}
	if len(p.Only) > 0 {
		return a.confirm(ctx, yes, fmt.Sprintf("Replace rows in the database %s?", p.Destination),
			fmt.Sprintf("The tables that match %s lose their rows and get those of %s (%s).",
				strings.Join(p.Only, ", "), p.Snapshot.Name, p.Snapshot.Type))
	}
	if p.Into == local.InPlace {
		a.warn("%s", "the old content is removed first: a failure would leave the database empty or partly filled")
	}
	details := fmt.Sprintf("It has %s, %s. %s (%s, %s) will replace it.",
		snap.Plural(p.Tables, "table", "tables"), size(p.Size), p.Snapshot.Name, p.Snapshot.Type, size(p.Snapshot.Size))
	if n := len(p.Connections); n > 0 {
		details += fmt.Sprintf(" %s: %s.", snap.Plural(n, "connection is open", "connections are open"),
			strings.Join(p.Connections, ", "))
	}
	return a.confirm(ctx, yes, fmt.Sprintf("Replace the database %s?", p.Destination), details)
}
