package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudUploadsCommand() *cobra.Command {
	cmd := a.uploadsListCommand("uploads")
	cmd.Short = "List your unfinished uploads, and end them"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.uploadsListCommand("list"), a.uploadsAbortCommand())
	return cmd
}

func (a *app) uploadsListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List your unfinished uploads",
		Long: `The list shows the pushes that you started and did not finish. Run the same push
again to resume one. An upload without progress for two days is removed.`,
		Example: examples("see your unfinished uploads", "snapcli cloud uploads"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.Upload]{
			connect: a.connect,
			list:    (*api.Client).Uploads,
			empty:   "you have no unfinished uploads",
			columns: []column{{title: "ID"}, {title: "Target", least: 6, weight: 1},
				{title: "Name", least: 10, weight: 1, cut: keepEnd}, {title: "Type"},
				{title: "Size", right: true}, momentColumn("Last progress", 0)},
			row: func(u api.Upload) []string {
				return []string{u.ID, u.Target, u.Name, string(u.Type), size(u.Size), a.when(u.TouchedAt)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) uploadsAbortCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "abort UPLOAD-ID",
		Short: "End an unfinished upload and remove its bytes",
		Long: `Abort ends one of your unfinished uploads. The service removes the bytes that
have arrived. Your local snapshot stays, and pushing it again starts from the
beginning. The start of the upload's ID is enough.`,
		Example: examples("give up on a push", "snapcli cloud uploads abort snap_7h2k"),
		Args:    command.ExactArgs("upload ID"),
		RunE: a.withService(func(ctx context.Context, conn *connection, args []string) error {
			id, err := uploadID(ctx, conn, args[0])
			if err != nil {
				return err
			}
			if err := conn.AbortUpload(ctx, id); err != nil {
				return noSuch(err, "upload", args[0], "list them with `snapcli cloud uploads`")
			}
			a.done("", "ended the upload %s", id)
			return nil
		}),
		ValidArgsFunction: completeEntries(a, a.connect, (*api.Client).Uploads,
			func(u api.Upload) (string, string) { return u.ID, u.Name }),
	}
}

// uploadID completes an abbreviated upload ID. It returns typed if none of the caller's uploads
// begins with it.
func uploadID(ctx context.Context, c *connection, typed string) (string, error) {
	prefix, ok := snap.CleanIDPrefix(typed)
	if !ok {
		return typed, nil
	}
	uploads, err := c.Uploads(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, u := range uploads {
		if strings.HasPrefix(u.ID, prefix) {
			ids = append(ids, u.ID)
		}
	}
	switch len(ids) {
	case 0:
		return typed, nil
	case 1:
		return ids[0], nil
	}
	return "", snap.Usage(fmt.Sprintf("several upload IDs begin with %q: %s", typed, strings.Join(ids, ", ")),
		"type more characters of the ID that you mean")
}
