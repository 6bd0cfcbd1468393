package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/local"
)

func (a *app) snapshotsCommand() *cobra.Command {
	cmd := a.localListCommand("snapshots")
	cmd.Short = "List, show, verify and delete the snapshots on this machine"
	cmd.Args = knownCommand
	cmd.AddCommand(a.localListCommand("list"), a.localShowCommand(), a.localVerifyCommand(), a.localDeleteCommand())
	return cmd
}

func (a *app) localListCommand(use string) *cobra.Command {
	var target, typ string
	cmd := &cobra.Command{
		Use:     use,
		Short:   "List the snapshots on this machine",
		Long:    "Lists the snapshots on this machine, newest first. For those in the cloud see `snapcli cloud snapshots`.",
		Example: examples("list them", "snapcli snapshots", "those of one target", "snapcli snapshots --target shop"),
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			wanted, err := checkType(typ)
			if err != nil {
				return err
			}
			agent, err := a.agent()
			if err != nil {
				return err
			}
			all, err := agent.Snapshots(target)
			if err != nil {
				return err
			}
			list := []local.Snapshot{}
			for _, s := range all {
				if wanted == "" || s.Type == wanted {
					list = append(list, s)
				}
			}
			return a.printLocal(agent, list)
		},
	}
	cmd.Flags().StringVar(&target, "target", "", "only those of this target")
	typeFlag(cmd, &typ, "only those of this type")
	_ = cmd.RegisterFlagCompletionFunc("target", a.completeTargets)
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printLocal(agent *local.Agent, list []local.Snapshot) error {
	switch {
	case a.flags.json:
		return a.printJSON(list)
	case a.flags.quiet:
		for _, s := range list {
			a.result("%s", s.Name)
		}
		return nil
	case len(list) == 0:
		a.note("there is no snapshot on this machine; take one with `snapcli build TARGET`")
		return nil
	}
	url := agent.Config().Cloud.URL
	var ids []string
	for _, s := range list {
		ids = append(ids, s.Cloud[url])
	}
	var short shortener
	short.learn(ids, false)
	t := a.newTable(column{title: "Target", least: 5, weight: 3}, column{title: "Name", least: 17, cut: keepEnd}, column{title: "Type", least: 4, weight: 2},
		column{title: "Engine", least: 6, weight: 3}, column{title: "Size", right: true}, column{title: "Cloud"}, column{title: "Created", least: 10, weight: 1, cut: keepDay})
	for _, s := range list {
		t.row(s.Target, s.Name, string(s.Type), string(s.Engine), size(s.Size), short.cut(s.Cloud[url]), moment(s.Created))
	}
	return t.flush()
}

func (a *app) localShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show everything about one snapshot on this machine",
		Long:              "Show prints a snapshot on this machine with its file, checksum and tables.",
		Example:           examples("show one", "snapcli snapshots show shop-20261121T011600Z"),
		Args:              oneArg("name"),
		ValidArgsFunction: a.completeLocal,
		RunE: func(_ *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			s, err := agent.Snapshot(args[0])
			if err != nil {
				return err
			}
			return a.showLocal(s)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) showLocal(s local.Snapshot) error {
	if a.flags.json {
		return a.printJSON(s)
	}
	pairs := []string{
		"Name", s.Name, "Target", s.Target, "Type", string(s.Type), "Engine", string(s.Engine),
		"Size", fmt.Sprintf("%s (%d bytes)", size(s.Size), s.Size), "SHA-256", s.SHA256,
		"Created", moment(s.Created), "File", s.Path,
	}
	for url, id := range s.Cloud {
		pairs = append(pairs, "Cloud", id+" at "+url)
	}
	a.fields(pairs...)
	if len(s.Tables) == 0 {
		return nil
	}
	a.result("")
	t := a.newTable(column{title: "Table", least: 10}, column{title: "Rows", right: true})
	for _, table := range s.Tables {
		name, rows := table.Name, "not counted"
		if table.Schema != "" {
			name = table.Schema + "." + name
		}
		if table.Rows >= 0 {
			rows = fmt.Sprint(table.Rows)
		}
		t.row(name, rows)
	}
	return t.flush()
}

func (a *app) localVerifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Read snapshot files and check every checksum in them",
		Long: `Verify reads whole snapshot files and checks every checksum: those named, or all
on this machine. It fails when one is damaged.`,
		Example:           examples("verify one", "snapcli snapshots verify shop-20261121T011600Z", "verify all", "snapcli snapshots verify"),
		ValidArgsFunction: a.completeLocal,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				list, err := agent.Snapshots("")
				if err != nil {
					return err
				}
				for _, s := range list {
					args = append(args, s.Name)
				}
			}
			return a.verify(cmd.Context(), agent, args)
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

// sound is what verify prints as JSON about each file that is.
type sound struct {
	Name   string      `json:"name"`
	Type   snap.Type   `json:"type"`
	Engine snap.Engine `json:"engine"`
	Tables int         `json:"tables"`
}

func (a *app) verify(ctx context.Context, agent *local.Agent, names []string) error {
	var failed []error
	good := []sound{}
	for _, name := range names {
		tell, end := a.progress()
		m, err := agent.Verify(ctx, name, tell)
		end()
		if err != nil {
			failed = append(failed, named(err, name, len(names)))
			continue
		}
		good = append(good, sound{name, m.Type, m.Engine, len(m.Tables)})
		if !a.flags.json {
			a.done(name, "%s is sound: %s, %s%s", name, string(m.Type), string(m.Engine), tablesOf(len(m.Tables)))
		}
	}
	if a.flags.json {
		if err := a.printJSON(good); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

func (a *app) localDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete NAME...",
		Short: "Delete snapshots from this machine",
		Long:  "Delete removes snapshot files from this machine. Copies in the cloud stay.",
		Example: examples(
			"delete one", "snapcli snapshots delete shop-20261121T011600Z",
			"delete without a question", "snapcli snapshots delete shop-20261121T011600Z --yes"),
		Args:              someArgs("name"),
		ValidArgsFunction: a.completeLocal,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := a.agent()
			if err != nil {
				return err
			}
			return a.deleteLocal(cmd.Context(), agent, args, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without asking")
	return cmd
}

func (a *app) deleteLocal(ctx context.Context, agent *local.Agent, names []string, yes bool) error {
	alone := false
	for _, name := range names {
		s, err := agent.Snapshot(name)
		if err != nil {
			return err
		}
		alone = alone || len(s.Cloud) == 0
	}
	details := "It is in the cloud too."
	if alone {
		details = "There is no copy in the cloud."
	}
	what := names[0]
	if len(names) > 1 {
		what = fmt.Sprintf("these %d snapshots", len(names))
	}
	if err := a.confirm(ctx, yes, "Delete "+what+" from this machine?", details); err != nil {
		return err
	}
	for _, name := range names {
		if err := agent.DeleteSnapshot(name); err != nil {
			return err
		}
		a.done("", "deleted %s from this machine", name)
	}
	return nil
}
