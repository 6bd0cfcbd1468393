package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/internal/local"
)

func (a *app) pushCommand() *cobra.Command {
	var o local.PushOptions
	var typ string
	var cloud bool
	cmd := &cobra.Command{
		Use:   "push TARGET --cloud",
		Short: "Push a snapshot to the cloud service",
		Long: `Push uploads the target's newest snapshot on this machine, or the one that
--snapshot names. It starts private: you and the owners and admins of your
organization see it. A push that was interrupted goes on where it stopped when
it is run again, and a snapshot that is there already is not sent twice.`,
		Example: examples(
			"push the newest snapshot", "snapcli push shop --cloud",
			"push the newest masked one and keep its ID", "id=$(snapcli push shop --cloud --type sanitized --quiet)"),
		Args:              oneArg("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Type, err = checkType(typ); err != nil {
				return err
			}
			if !cloud {
				return needsCloud("push", args[0])
			}
			return a.push(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().BoolVar(&cloud, "cloud", false, "push to the cloud service")
	cmd.Flags().StringVar(&o.Snapshot, "snapshot", "", "name of the local snapshot to push (default the newest)")
	typeFlag(cmd, &typ, "push only a snapshot of this type")
	cmd.Flags().IntVar(&o.Jobs, "jobs", 0, "connections at once; 0 chooses")
	_ = cmd.RegisterFlagCompletionFunc("snapshot", a.completeLocal)
	a.jsonFlag(cmd)
	return cmd
}

func needsCloud(verb, target string) error {
	return snap.Usage(verb+" needs to know where", "add --cloud: `snapcli "+verb+" "+target+" --cloud`")
}

// pushed is what push prints as JSON.
type pushed struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Target  string  `json:"target"`
	Bytes   int64   `json:"bytes"`
	Moved   int64   `json:"moved"`
	Exists  bool    `json:"exists"`
	Seconds float64 `json:"seconds"`
}

func (a *app) push(ctx context.Context, target string, o local.PushOptions) error {
	agent, conn, err := a.connect()
	if err != nil {
		return err
	}
	tell, end := a.progress()
	r, err := agent.Push(ctx, conn.Client, target, o, tell)
	end()
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.printJSON(pushed{r.ID, r.Name, target, r.Bytes, r.Moved, r.Exists, r.Elapsed.Seconds()})
	case r.Exists:
		a.done(r.ID, "%s is already in the cloud as %s: nothing was sent", r.Name, r.ID)
	default:
		a.done(r.ID, "pushed %s as %s (%s in %s): private to you and the admins of your organization",
			r.Name, r.ID, size(r.Moved), r.Elapsed.Round(100*time.Millisecond).String())
	}
	a.next("share it with `snapcli cloud snapshots share %s`", r.ID)
	return nil
}
