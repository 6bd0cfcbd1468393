package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/local"
)

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
