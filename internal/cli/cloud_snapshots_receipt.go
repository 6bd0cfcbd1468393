package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudReceiptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "receipt SNAPSHOT-ID",
		Short: "Show the proof that a snapshot was shared with you",
		Long: `When another organization shares a snapshot with yours, the audit log of that
organization records the share. Receipt shows that line of the log, and proves
on this machine that the line is in the log that the service signed. Keep the
output of --json: it still proves the share when the snapshot and the log are
gone. The line names the snapshot, both organizations and the end of the share,
but no person.`,
		Example: examples(
			"show the proof", "snapcli cloud snapshots receipt snap_7h2k9m",
			"keep the proof", "snapcli cloud snapshots receipt snap_7h2k9m --json > receipt.json"),
		Args:              command.ExactArgs("snapshot ID"),
		ValidArgsFunction: a.completeIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.receipt(cmd.Context(), args[0]) },
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) receipt(ctx context.Context, typed string) error {
	conn, s, err := a.resolve(ctx, typed)
	if err != nil {
		return err
	}
	proof, err := conn.Receipt(ctx, s.ID)
	if err != nil {
		return err
	}
	if err := proof.Verify(); err != nil {
		return err
	}
	if a.flags.json {
		return a.printJSON(proof)
	}
	var e api.AuditEntry
	if err := json.Unmarshal([]byte(proof.Record), &e); err != nil {
		return err
	}
	until := "never"
	if e.Detail.Expires != nil {
		until = a.moment(*e.Detail.Expires)
	}
	a.fields("Snapshot", e.Snapshot, "Target", e.Detail.Target, "From", proof.Organization,
		"To", e.Detail.Organization, "Shared", a.moment(e.At), "Expires", until)
	a.done("", "line %d of the audit log of %s records the share, and the service signed that line", proof.Line,
		proof.Organization)
	return nil
}
