package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudWebhooksCommand() *cobra.Command {
	cmd := a.webhooksListCommand("webhooks")
	cmd.Short = "Send events to a URL"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.webhooksListCommand("list"), a.webhooksAddCommand(), a.webhooksRemoveCommand(),
		a.webhooksDeliveriesCommand())
	return cmd
}

func (a *app) webhooksListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the webhooks",
		Long: `A webhook sends events about the organization's snapshots to a URL. Messages are
signed as in the Standard Webhooks specification and retried for three days.
Owners and admins of the organization manage webhooks.`,
		Example: examples("list the webhooks", "snapcli cloud webhooks"),
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, conn, err := a.connect()
			if err != nil {
				return err
			}
			hooks, err := conn.Webhooks(cmd.Context())
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(emptyNotNull(hooks))
			}
			if len(hooks) == 0 {
				a.note("there are no webhooks; create one with `snapcli cloud webhooks add URL`")
				return nil
			}
			t := a.newTable(column{title: "ID"}, column{title: "URL", least: 16},
				column{title: "Events", least: 10, weight: 1},
				column{title: "Since", weight: 2})
			for _, h := range hooks {
				t.row(h.ID, h.URL, eventNames(h.Events), a.moment(h.CreatedAt))
			}
			return t.flush()
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func eventNames(events []snap.AuditAction) string {
	var names []string
	for _, e := range events {
		names = append(names, strings.TrimPrefix(string(e), "snapshot."))
	}
	return strings.Join(names, ", ")
}

func (a *app) webhooksAddCommand() *cobra.Command {
	var events []string
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "Send events to a URL, and show the secret once",
		Long: `Add creates a webhook. Its signing secret is shown once, on standard output; the
receiver uses it to check that a message comes from the service. The events are
pushed, shared, unshared, pulled and deleted. Without --events the webhook
receives all of them.`,
		Example: examples(
			"receive pushes", "snapcli cloud webhooks add https://hooks.example/snap --events pushed"),
		Args: command.ExactArgs("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, conn, err := a.connect()
			if err != nil {
				return err
			}
			r := api.WebhookRequest{URL: args[0]}
			for _, e := range events {
				r.Events = append(r.Events,
					snap.AuditAction("snapshot."+strings.TrimPrefix(strings.TrimSpace(e), "snapshot.")))
			}
			hook, err := conn.AddWebhook(cmd.Context(), r)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(hook)
			}
			a.note("created the webhook %s to %s; this is the only time its secret is shown:", hook.ID, hook.URL)
			a.result("%s", hook.Secret)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&events, "events", nil, "pushed, shared, unshared, pulled, deleted (default all)")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) webhooksRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove WEBHOOK-ID",
		Short:   "Remove a webhook",
		Long:    "Remove ends a webhook at once and drops its undelivered messages.",
		Example: examples("remove a webhook", "snapcli cloud webhooks remove 2"),
		Args:    command.ExactArgs("webhook ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, conn, err := a.connect()
			if err != nil {
				return err
			}
			if err := conn.DeleteWebhook(cmd.Context(), args[0]); err != nil {
				return noSuch(err, "webhook", args[0], "list them with `snapcli cloud webhooks`")
			}
			a.done("", "removed the webhook %s", args[0])
			return nil
		},
	}
}

func (a *app) webhooksDeliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deliveries WEBHOOK-ID",
		Short:   "List the messages sent to a webhook and its answers",
		Long:    "Deliveries lists the newest messages to a webhook, with the result of each.",
		Example: examples("find out why nothing arrives", "snapcli cloud webhooks deliveries 2"),
		Args:    command.ExactArgs("webhook ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, conn, err := a.connect()
			if err != nil {
				return err
			}
			list, err := conn.Deliveries(cmd.Context(), args[0])
			if err != nil {
				return noSuch(err, "webhook", args[0], "list them with `snapcli cloud webhooks`")
			}
			if a.flags.json {
				return a.printJSON(emptyNotNull(list))
			}
			if len(list) == 0 {
				a.note("no messages to the webhook %s yet", args[0])
				return nil
			}
			t := a.newTable(column{title: "When"}, column{title: "Event", least: 8},
				column{title: "Attempts", right: true},
				column{title: "Result", least: 12}, column{title: "Next attempt", weight: 1})
			for _, d := range list {
				next := "-"
				if d.NextAt != nil {
					next = a.when(*d.NextAt)
				}
				t.row(a.moment(d.CreatedAt), strings.TrimPrefix(string(d.Event), "snapshot."),
					strconv.Itoa(d.Attempts), d.Status,
					next)
			}
			return t.flush()
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
