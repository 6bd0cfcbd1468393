package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
	"snap/internal/local"
)

func (a *app) snapshotsCommand() *cobra.Command {
	cmd := a.localListCommand("snapshots")
	cmd.Short = "List, show, verify and delete the snapshots on this machine"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.localListCommand("list"), a.localShowCommand(), a.localVerifyCommand(), a.localDeleteCommand())
	return cmd
}

func (a *app) localListCommand(use string) *cobra.Command {
	var target string
	var typ snap.Type
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the snapshots on this machine",
		Long: "The list shows the snapshots on this machine, newest first.\n`snapcli cloud snapshots` lists those " +
			"in the cloud." + `

The column New estimates how much of a snapshot's data is new since the previous
snapshot of the same target and type. It is empty if there is no previous one on
this machine, for encrypted snapshots, and for pulled snapshots with more than
256 MiB of data.`,
		Example: examples("list them", "snapcli snapshots", "those of one target", "snapcli snapshots --target shop"),
		Args:    command.NoArgs,
		RunE: a.withAgent(func(_ context.Context, agent *local.Agent, _ []string) error {
			list, err := agent.Snapshots(target)
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(s local.Snapshot) bool { return typ != "" && s.Type != typ })
			emptyNote := "there is no snapshot on this machine; take one with `snapcli build TARGET`"
			if target != "" || typ != "" {
				emptyNote = "no snapshot on this machine matches"
			}
			for _, path := range agent.Damaged() {
				a.warn("the record %s is damaged, so its snapshot is not listed; delete the record and its "+
					"snapshot file, then pull or build the snapshot again", path)
			}
			return a.printLocal(agent, list, emptyNote)
		}),
	}
	cmd.Flags().StringVar(&target, "target", "", "only those of this target")
	typeFlag(cmd, &typ, "only those of this type")
	_ = cmd.RegisterFlagCompletionFunc("target", a.completeTargets)
	a.jsonFlag(cmd)
	return cmd
}

// localView is the JSON form of a local snapshot.
type localView struct {
	Target    string            `json:"target"`
	Name      string            `json:"name"`
	Type      snap.Type         `json:"type"`
	Engine    snap.Engine       `json:"engine"`
	Size      int64             `json:"size" doc:"bytes of the file"`
	SHA256    string            `json:"sha256" doc:"SHA-256 of the file"`
	CreatedAt time.Time         `json:"created_at"`
	File      string            `json:"file" doc:"path of the file"`
	Cloud     map[string]string `json:"cloud,omitempty" doc:"ID of the snapshot at each service, by the service's URL"`
	Tables    []tableView       `json:"tables,omitempty"`
	Encrypted int               `json:"encrypted,omitempty" doc:"number of recipients"`
	Subset    *subsetView       `json:"subset,omitempty" doc:"set if the snapshot does not hold every row"`
	New       *newView          `json:"new,omitempty" doc:"new since the previous snapshot; absent if unknown"`

	Provenance provenanceView `json:"provenance"`
	Programs   []programView  `json:"programs,omitempty" doc:"only from show: functions, triggers and other code"`
	Omitted    []string       `json:"omitted,omitempty" doc:"only from show: sentences about the parts that it lacks"`
	Card       *api.Card      `json:"card,omitempty" doc:"only from show: tables and columns; absent if not decrypted"`
	Changes    *localChanges  `json:"changes,omitempty" doc:"only from show: changes since the previous snapshot"`
}

// localChanges is the difference between a local snapshot and the one before it.
type localChanges struct {
	Previous string           `json:"previous" doc:"name of the previous snapshot of the same target and type"`
	Counted  bool             `json:"counted" doc:"true if rows were compared, false if only their number was"`
	Changes  []api.CardChange `json:"changes"`
}

// provenanceView describes where a snapshot came from.
type provenanceView struct {
	Origin       local.Origin `json:"origin" doc:"mine, ours, theirs or unknown"`
	Organization string       `json:"organization,omitempty" doc:"slug of the organization it was pulled from"`
	Person       string       `json:"person,omitempty" doc:"e-mail of the person who pushed it, if known"`
	Service      string       `json:"service,omitempty" doc:"URL of the cloud service"`
	Profile      string       `json:"profile,omitempty" doc:"storage profile it was pulled from"`
}

// subsetView describes how the rows of a subset were chosen.
type subsetView struct {
	Where   map[string]string `json:"where,omitempty" doc:"condition of starting rows by table; empty in a masked copy"`
	Percent float64           `json:"percent,omitempty" doc:"percentage taken from tables without a condition"`
	Start   []string          `json:"start,omitempty" doc:"tables in which rows were chosen"`
}

// newView describes how much of a snapshot is new since the previous one of its target and type.
type newView struct {
	Since     string  `json:"since" doc:"name of the previous snapshot"`
	Percent   float64 `json:"percent" doc:"estimated percentage of the data that the previous snapshot did not have"`
	Unchanged bool    `json:"unchanged" doc:"the data is the same as that of the previous snapshot"`
}

// newPercent returns how much of a snapshot is new, or "" if that is not known.
func newPercent(n *local.New) string {
	switch {
	case n == nil:
		return ""
	case n.Same:
		return "0%"
	case n.Share < 0.001:
		return "<0.1%"
	case n.Share < 0.1:
		return fmt.Sprintf("%.1f%%", 100*n.Share)
	}
	return fmt.Sprintf("%.0f%%", 100*n.Share)
}

// tableView is one table of a snapshot.
type tableView struct {
	Schema string `json:"schema,omitempty"`
	Name   string `json:"name"`
	Rows   int64  `json:"rows" doc:"-1 if they were not counted"`
	Of     int64  `json:"of,omitempty" doc:"in a subset: number of rows of the table in the source"`
}

func viewSnapshot(s local.Snapshot) localView {
	v := localView{
		Target: s.Target, Name: s.Name, Type: s.Type, Engine: s.Engine, Size: s.Size, SHA256: s.SHA256,
		CreatedAt: s.Created, File: s.Path, Cloud: s.Cloud, Encrypted: s.Encrypted,
		Subset: (*subsetView)(s.Subset), Provenance: provenanceView(s.From), Programs: viewPrograms(s.Programs),
		Omitted: s.Omitted,
	}
	if s.New != nil {
		v.New = &newView{s.New.Since, math.Round(1000*s.New.Share) / 10, s.New.Same}
	}
	for _, t := range s.Tables {
		v.Tables = append(v.Tables, tableView{t.Schema, t.Name, t.Rows, t.Of})
	}
	return v
}

// typeOf returns a snapshot's type, and any limitation on its use.
func typeOf(s local.Snapshot) string {
	kind := string(s.Type)
	if s.Subset != nil {
		kind += ", subset"
	}
	if s.Encrypted > 0 {
		kind += ", encrypted"
	}
	return kind
}

// printLocal prints a list of snapshots, or emptyNote if it is empty.
func (a *app) printLocal(agent *local.Agent, list []local.Snapshot, emptyNote string) error {
	switch {
	case a.flags.json:
		return a.printJSON(viewAll(list, viewSnapshot))
	case a.flags.quiet:
		for _, s := range list {
			a.result("%s", s.Name)
		}
		return nil
	case len(list) == 0:
		a.note("%s", emptyNote)
		return nil
	}
	url := agent.Config().Cloud.URL
	var ids []string
	for _, s := range list {
		ids = append(ids, s.Cloud[url])
	}
	var short shortener
	short.setLength(ids, false)
	t := a.newTable(column{title: "Target", least: 5, weight: 3}, column{title: "Name", least: 9, cut: keepEnd},
		column{title: "Type", least: 4, weight: 2, paint: paintType},
		column{title: "Engine", least: 6, weight: 3}, column{title: "Size", right: true},
		column{title: "New", right: true, optional: true}, column{title: "From", least: 4, weight: 2},
		column{title: "Cloud"}, momentColumn("Created", 1))
	for _, s := range list {
		t.row(s.Target, s.Name, typeOf(s), string(s.Engine), size(s.Size), newPercent(s.New), s.From.String(),
			short.cut(s.Cloud[url]), a.moment(s.Created))
	}
	return t.flush()
}
