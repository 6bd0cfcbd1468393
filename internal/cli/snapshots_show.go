package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"snap/internal/local"
)

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
		return a.printJSON(viewSnapshot(s))
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
