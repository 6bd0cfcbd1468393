package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"snap/internal/command"
	"snap/internal/local"
	"snap/internal/schema"
)

func (a *app) trustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Manage the authors whose database programs you load",
		Long: `Snapshots from other organizations, and files of unknown origin, are loaded as
data: tables and rows, without the functions, triggers, views and other programs
that their authors wrote. If you trust the author,
` + "`snapcli load --with-programs`" + ` also loads the programs. Trust applies to one
cloud service.`,
		Example: examples("trust an organization", "snapcli trust add org:globex"),
		Args:    command.RequireKnown,
	}
	cmd.AddCommand(a.trustListCommand(), a.trustAddCommand(), a.trustRemoveCommand())
	return cmd
}

// trustView is the JSON form of a trusted author.
type trustView struct {
	Name    string    `json:"name" doc:"org:SLUG, or an e-mail address"`
	Service string    `json:"service" doc:"URL of the cloud service"`
	Since   time.Time `json:"since"`
}

func viewTrust(t local.Trusted) trustView { return trustView{t.Name(), t.Service, t.Since} }

func (a *app) trustListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the organizations and people you trust",
		Long: "List prints the organizations and people whose programs\n" +
			"`snapcli load --with-programs` loads without asking.",
		Example: examples("list them", "snapcli trust list"),
		Args:    command.NoArgs,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, _ []string) error {
			all, err := agent.Trusts()
			if err != nil {
				return err
			}
			return a.printTrusts(all)
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printTrusts(all []local.Trusted) error {
	if a.flags.json {
		return a.printJSON(viewAll(all, viewTrust))
	}
	if len(all) == 0 {
		a.note("you trust nobody yet; add an organization with `snapcli trust add org:SLUG`")
		return nil
	}
	t := a.newTable(column{title: "Trusted", least: 8}, column{title: "Service", least: 12}, momentColumn("Since", 1))
	for _, one := range all {
		t.row(one.Name(), one.Service, a.moment(one.Since))
	}
	return t.flush()
}

func (a *app) trustAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add org:SLUG|EMAIL",
		Short: "Trust an organization or a person",
		Long: `Add lets ` + "`snapcli load --with-programs`" + ` load the functions, triggers, views and
other programs in snapshots that another organization shares with you. Your own
organization is trusted. If the config file has trust.own_organization: false,
give the e-mail address of a colleague to trust that person. You cannot trust a
single person in another organization, because organizations do not reveal to
others who pushed a snapshot.`,
		Example: examples("trust an organization", "snapcli trust add org:globex", "trust a colleague",
			"snapcli trust add mia@acme.example"),
		Args: command.ExactArgs("name"),
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			t, added, err := agent.Trust(args[0])
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(viewTrust(t))
			}
			if !added {
				a.done(t.Name(), "%s of %s is already trusted", t.Name(), t.Service)
				return nil
			}
			a.done(t.Name(), "trusted %s of %s: load --with-programs loads its programs", t.Name(), t.Service)
			return nil
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) trustRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove org:SLUG|EMAIL",
		Short:   "Stop trusting an organization or a person",
		Long:    "Remove reverts `snapcli trust add`. Databases that are already loaded do not\nchange.",
		Example: examples("stop trusting an organization", "snapcli trust remove org:globex"),
		Args:    command.ExactArgs("name"),
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, args []string) error {
			t, err := agent.Distrust(args[0])
			if err != nil {
				return err
			}
			a.done(t.Name(), "%s of %s is no longer trusted", t.Name(), t.Service)
			return nil
		}),
	}
}

// programView is the JSON form of an object in a snapshot that can run code.
type programView struct {
	Kind   string `json:"kind" doc:"as in SQL, such as function or trigger"`
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
	On     string `json:"on,omitempty" doc:"table that it belongs to"`
}

func viewPrograms(all []schema.Program) (views []programView) {
	for _, p := range all {
		views = append(views, programView{p.Kind, p.Schema, p.Name.Name, p.On})
	}
	return views
}

// listPrograms prints programs by kind and name.
func (a *app) listPrograms(all []schema.Program) {
	for _, kind := range local.KindsOf(all) {
		a.note("  %s: %s", kind.Many, kind.Names())
	}
}

// showProvenance reports where the snapshot to be loaded comes from, unless it was built here, and
// which of its programs are left out.
func (a *app) showProvenance(p local.Preflight) {
	s := p.Snapshot
	if s.From.Origin == local.Mine {
		return
	}
	a.note("%s comes from %s", s.Name, originOf(s.From))
	if len(p.LeftOut) > 0 {
		a.note("left out: %s; load them with `--with-programs`", local.CountPrograms(p.LeftOut))
		a.listPrograms(p.LeftOut)
	}
}

// originOf names the origin of a snapshot from somebody else.
func originOf(p local.Provenance) string {
	switch {
	case p.Organization != "":
		return "the organization " + p.Organization
	case p.Profile != "":
		return "the storage profile " + p.Profile
	}
	return "an unknown source"
}

// confirmTrust shows the programs of an untrusted author and asks whether to load them. No flag
// answers this question.
func (a *app) confirmTrust(ctx context.Context, p local.Preflight) error {
	if !a.canAsk() {
		return local.Untrusted(p.Snapshot)
	}
	a.note("%s comes from %s. It has programs that would run in your database: %s", p.Snapshot.Name,
		originOf(p.Snapshot.From), local.CountPrograms(p.Programs))
	a.listPrograms(p.Programs)
	return a.confirm(ctx, false, "Load these programs too, this time?",
		"They were written by somebody you do not trust.")
}
