package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudWebhooksCommand() *cobra.Command {
	cmd := a.webhooksListCommand("webhooks")
	cmd.Short = "Send events to a URL or an e-mail address"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.webhooksListCommand("list"), a.webhooksAddCommand(), a.webhooksRemoveCommand(),
		a.webhooksDeliveriesCommand(), a.webhooksTestCommand(), a.webhooksReplayCommand(), a.webhooksRotateCommand(),
		a.webhooksEnableCommand())
	return cmd
}

func (a *app) webhooksListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the webhooks",
		Long: `A webhook sends events about the organization's snapshots to a URL or an e-mail
address. Messages to a URL are signed as in the Standard Webhooks specification.
A message that is not accepted is retried for three days. A webhook is disabled
when its receiver responds with 410 Gone or accepts nothing for days. Owners and
admins of the organization manage webhooks.`,
		Example: examples("list the webhooks", "snapcli cloud webhooks"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.Webhook]{
			connect: a.connect,
			list:    (*api.Client).Webhooks,
			empty:   "there are no webhooks; create one with `snapcli cloud webhooks add URL`",
			columns: []column{{title: "ID"}, {title: "URL", least: 16},
				{title: "Events", least: 10, weight: 2}, {title: "State"},
				{title: "Waiting", right: true, weight: 1}, {title: "Since", weight: 3}},
			row: func(h api.Webhook) []string {
				return []string{h.ID, h.URL, eventNames(h.Events), webhookState(h), strconv.FormatInt(h.Waiting, 10),
					a.moment(h.CreatedAt)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func webhookState(h api.Webhook) string {
	switch {
	case h.DisabledAt != nil:
		return "disabled"
	case h.PausedUntil != nil:
		return "paused"
	case h.Failures > 0:
		return "failing"
	}
	return "ok"
}

// eventOf returns the event with a short name, such as pushed, or a full name, such as user.left.
func eventOf(name string) snap.AuditAction {
	switch name = strings.TrimSpace(name); {
	case strings.Contains(name, "."):
		return snap.AuditAction(name)
	case name == "disabled":
		return snap.AuditWebhookDisabled
	case name == "share-expires-soon" || name == "access-requested":
		return snap.AuditAction("snapshot." + strings.ReplaceAll(name, "-", "_"))
	case name == "overdue":
		return snap.AuditOverdue
	}
	return snap.AuditAction("snapshot." + name)
}

func eventNames(events []snap.AuditAction) string {
	var names []string
	for _, e := range events {
		name := string(e)
		for _, prefix := range []string{"snapshot.", "webhook.", "channel."} {
			name = strings.TrimPrefix(name, prefix)
		}
		names = append(names, strings.ReplaceAll(name, "_", "-"))
	}
	return strings.Join(names, ", ")
}

func (a *app) webhooksAddCommand() *cobra.Command {
	var events []string
	var format string
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "Send events to a URL or an e-mail address",
		Long: `Add creates a webhook. Its signing secret is shown once, on standard output; the
receiver uses it to check that a message comes from the service. With --format,
messages have the format that Slack, Microsoft Teams (Workflows) or Discord
expects. The chat shows the names in messages as plain text.

These events are about snapshots: pushed, shared, unshared, pulled, deleted,
access-requested and share-expires-soon. The other events are overdue (a
channel's newest snapshot is too old), disabled (the service stopped sending to
a webhook) and user.left (a person left the organization). Without --events, the
webhook receives all events.

A URL like mailto:ops@example.com sends e-mail. This needs an SMTP server in the
service's configuration, and the webhook has no secret. The address must be in a
domain of the organization's people, or in one that the service's operator
allows.`,
		Example: examples(
			"receive pushes", "snapcli cloud webhooks add https://hooks.example/snap --events pushed",
			"send messages to a Slack channel",
			"snapcli cloud webhooks add https://hooks.chat.example/x --format slack",
			"send an e-mail when a snapshot is overdue",
			"snapcli cloud webhooks add mailto:ops@example.com --events overdue"),
		Args: command.ExactArgs("URL"),
		RunE: a.withService(func(ctx context.Context, conn *connection, args []string) error {
			r := api.WebhookRequest{URL: args[0], Format: format}
			for _, e := range events {
				r.Events = append(r.Events, eventOf(e))
			}
			hook, err := conn.AddWebhook(ctx, r)
			if err != nil {
				return err
			}
			if a.flags.json {
				return a.printJSON(hook)
			}
			if hook.Secret == "" {
				a.done("", "created the webhook %s to %s; `snapcli cloud webhooks test %s` sends a test message",
					hook.ID, hook.URL, hook.ID)
				return nil
			}
			a.note("created the webhook %s to %s; this is the only time its secret is shown:", hook.ID, hook.URL)
			a.result("%s", hook.Secret)
			return nil
		}),
	}
	cmd.Flags().StringSliceVar(&events, "events", nil,
		"events to send: pushed, shared, unshared, pulled, deleted, access-requested,"+
			" share-expires-soon, overdue, disabled, user.left (default all)")
	cmd.Flags().StringVar(&format, "format", "",
		"format of the messages: slack, teams or discord (default: snapcloud's own format)")
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) webhooksRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove WEBHOOK-ID",
		Short:   "Remove a webhook",
		Long:    "Remove deletes a webhook immediately and discards its undelivered messages.",
		Example: examples("remove a webhook", "snapcli cloud webhooks remove 2"),
		Args:    command.ExactArgs("webhook ID"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).DeleteWebhook, kind: "webhook",
			list: "snapcli cloud webhooks", done: "removed the webhook %s"}),
	}
}

func (a *app) webhooksDeliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "deliveries WEBHOOK-ID",
		Short:   "List the messages sent to a webhook, and its responses",
		Long:    "Deliveries lists the newest messages to a webhook, with the result of each.",
		Example: examples("find out why nothing arrives", "snapcli cloud webhooks deliveries 2"),
		Args:    command.ExactArgs("webhook ID"),
		RunE: a.withService(func(ctx context.Context, conn *connection, args []string) error {
			list, err := conn.Deliveries(ctx, args[0])
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
			t := a.newTable(column{title: "No.", right: true, weight: 1}, column{title: "When"},
				column{title: "Event", least: 8}, column{title: "Attempts", right: true},
				column{title: "Result", least: 12}, column{title: "Next attempt", weight: 1})
			for _, d := range list {
				next := "-"
				if d.NextAt != nil {
					next = a.when(*d.NextAt)
				}
				t.row(strconv.FormatInt(d.Number, 10), a.moment(d.CreatedAt),
					strings.TrimPrefix(string(d.Event), "snapshot."), strconv.Itoa(d.Attempts), d.Status, next)
			}
			return t.flush()
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

// webhookCommand completes a command that makes one call about a webhook. It prints the result as
// JSON with --json, otherwise by calling show.
func webhookCommand[T any](a *app, cmd *cobra.Command, call func(*api.Client, context.Context, string) (T, error),
	show func(T) error) *cobra.Command {
	cmd.Args = command.ExactArgs("webhook ID")
	cmd.RunE = a.withService(func(ctx context.Context, conn *connection, args []string) error {
		result, err := call(conn.Client, ctx, args[0])
		if err != nil {
			return noSuch(err, "webhook", args[0], "list them with `snapcli cloud webhooks`")
		}
		if !a.flags.json {
			return show(result)
		}
		err = a.printJSON(result)
		if t, ok := any(result).(api.WebhookTest); ok && err == nil {
			err = testFailure(t)
		}
		return err
	})
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) webhooksTestCommand() *cobra.Command {
	return webhookCommand(a, &cobra.Command{
		Use:   "test WEBHOOK-ID",
		Short: "Send a test message to a webhook now",
		Long: `Test sends a message of the type webhook.test and prints the response. It works
for disabled webhooks too, and it changes nothing.`,
		Example: examples("try a receiver", "snapcli cloud webhooks test 2"),
	}, (*api.Client).TestWebhook, func(t api.WebhookTest) error {
		if err := testFailure(t); err != nil {
			return err
		}
		a.done("", "the receiver accepted the test message: %s in %d ms", t.Status, t.Milliseconds)
		return nil
	})
}

// testFailure returns an error if the receiver did not accept a test message.
func testFailure(t api.WebhookTest) error {
	if t.OK {
		return nil
	}
	return &snap.Error{Code: snap.CodeUnavailable,
		Detail: "the receiver did not accept the test message: " + t.Status,
		Hint:   "it must respond with a status from 200 to 299 within 10 seconds"}
}

func (a *app) webhooksReplayCommand() *cobra.Command {
	var delivery string
	var since time.Duration
	var all bool
	cmd := webhookCommand(a, &cobra.Command{
		Use:   "replay WEBHOOK-ID",
		Short: "Resend past messages of a webhook",
		Long: `Replay repeats the messages that the service gave up on, with the same IDs.
Messages are kept for 30 days. With --all, it also repeats messages that the
receiver accepted.`,
		Example: examples("send the messages that failed in the last two days again",
			"snapcli cloud webhooks replay 2 --since 48h",
			"send one message again", "snapcli cloud webhooks replay 2 --delivery msg_1_42_2"),
	}, func(conn *api.Client, ctx context.Context, id string) (r api.ReplayResult, err error) {
		if delivery != "" {
			return conn.ReplayWebhook(ctx, id, api.ReplayRequest{Delivery: delivery})
		}
		from := a.now().Add(-since)
		for r.More = true; r.More; {
			next, err := conn.ReplayWebhook(ctx, id, api.ReplayRequest{Since: &from, All: all, After: r.Next})
			if err != nil {
				return r, err
			}
			r.Queued, r.More, r.Next = r.Queued+next.Queued, next.More, next.Next
		}
		return r, nil
	}, func(r api.ReplayResult) error {
		a.done("", "sending %s again", snap.Plural(r.Queued, "message", "messages"))
		return nil
	})
	cmd.Flags().StringVar(&delivery, "delivery", "", "ID of one message, as deliveries --json shows it")
	cmd.Flags().DurationVar(&since, "since", 0, "messages that were recorded at most this long ago, such as 48h")
	cmd.Flags().BoolVar(&all, "all", false, "with --since: also messages that the receiver accepted")
	cmd.MarkFlagsOneRequired("delivery", "since")
	cmd.MarkFlagsMutuallyExclusive("delivery", "since")
	return cmd
}

func (a *app) webhooksRotateCommand() *cobra.Command {
	var overlap time.Duration
	cmd := webhookCommand(a, &cobra.Command{
		Use:   "rotate WEBHOOK-ID",
		Short: "Replace the secret of a webhook, and show the new one once",
		Long: `Rotate creates a new signing secret and prints it once, on standard output.
During --overlap, messages are signed with both secrets, so that the receiver
can change its secret without losing a message. Use --overlap 0s if somebody
else may know the old secret.`,
		Example: examples("replace the secret; the receiver has a day to switch", "snapcli cloud webhooks rotate 2"),
	}, func(conn *api.Client, ctx context.Context, id string) (api.NewWebhook, error) {
		return conn.RotateWebhook(ctx, id, api.RotateRequest{Overlap: overlap.String()})
	}, func(w api.NewWebhook) error {
		a.note("replaced the secret of the webhook %s; this is the only time the new one is shown:", w.ID)
		a.result("%s", w.Secret)
		return nil
	})
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour,
		"how long messages are also signed with the old secret, at most 168h")
	return cmd
}

func (a *app) webhooksEnableCommand() *cobra.Command {
	return webhookCommand(a, &cobra.Command{
		Use:   "enable WEBHOOK-ID",
		Short: "Enable a webhook that was disabled",
		Long: `Enable makes a disabled or paused webhook receive messages again, beginning with
those that are waiting.`,
		Example: examples("send to it again", "snapcli cloud webhooks enable 2"),
	}, (*api.Client).EnableWebhook, func(w api.Webhook) error {
		a.done("", "enabled the webhook %s; messages waiting: %d", w.ID, w.Waiting)
		return nil
	})
}
