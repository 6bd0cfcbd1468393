package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"snap"
	"snap/api"
	"snap/internal/command"
)

func (a *app) cloudChannelsCommand() *cobra.Command {
	cmd := a.channelsListCommand("channels")
	cmd.Short = "Share each new snapshot of a target automatically"
	cmd.Args = command.RequireKnown
	cmd.AddCommand(a.channelsListCommand("list"), a.channelsAddCommand(), a.channelsRemoveCommand())
	return cmd
}

func (a *app) channelsListCommand(use string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: "List the channels",
		Long: `When a new snapshot of a target is pushed, a channel shares it with a group or
with the whole organization. Owners and admins of the organization manage
channels.`,
		Example: examples("list the channels", "snapcli cloud channels"),
		Args:    command.NoArgs,
		RunE: printList(a, serviceList[api.Channel]{
			connect: a.connect,
			list:    (*api.Client).Channels,
			empty:   "there are no channels; create one with `snapcli cloud channels add TARGET --group NAME`",
			columns: []column{{title: "ID"}, {title: "Target", least: 8}, {title: "Type"},
				{title: "Shared with", least: 10}, {title: "Expected", weight: 2},
				{title: "Made by", least: 8, weight: 1}, {title: "Since", weight: 1}},
			row: func(c api.Channel) []string {
				return []string{c.ID, c.Target, string(c.Type), channelAudience(c), expected(c), c.CreatedBy,
					a.moment(c.CreatedAt)}
			},
		}),
	}
	a.jsonFlag(cmd)
	return cmd
}

func channelAudience(c api.Channel) string {
	if c.GroupID == "" {
		return "everyone (org-wide)"
	}
	return "group " + c.GroupName
}

// masking describes the data of a type of snapshot in one word.
func masking(t snap.Type) string {
	if t == snap.TypeSnapshot {
		return "unmasked"
	}
	return string(t)
}

// expected describes how often a channel expects a snapshot.
func expected(c api.Channel) string {
	if c.ExpectEvery == 0 {
		return "-"
	}
	return "every " + snap.Span(time.Duration(c.ExpectEvery)*time.Second)
}

func (a *app) channelsAddCommand() *cobra.Command {
	var group, every string
	var now, yes bool
	typ := snap.TypeSanitized
	cmd := &cobra.Command{
		Use:   "add TARGET",
		Short: "Share every new snapshot of a target",
		Long: `Add creates a channel. When a snapshot of the target is pushed, the channel
shares it with the group (without --group: with the whole organization), and
stops sharing the previous one. It shares sanitized snapshots unless --type says
otherwise. Shares that people made are kept. Existing snapshots are not shared,
except the newest one with --now.

With --expect-every, the service raises the event channel.overdue, once, if no
snapshot of the target and type has been pushed for that long. Run add again to
change the time, or with "--expect-every never" to stop expecting snapshots.`,
		Example: examples(
			"always give a team the newest masked data", "snapcli cloud channels add shop --group Engineering",
			"share with the whole organization, starting with the newest snapshot",
			"snapcli cloud channels add shop --now",
			"report when a nightly snapshot is overdue", "snapcli cloud channels add shop --expect-every 26h"),
		Args:              command.ExactArgs("target"),
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := api.ChannelRequest{Target: args[0], Type: typ, Now: now}
			if every != "" {
				seconds, err := expectedEvery(every)
				if err != nil {
					return err
				}
				r.ExpectEvery = &seconds
			}
			return a.addChannel(cmd.Context(), r, group, yes)
		},
	}
	cmd.Flags().StringVar(&group, "group", "", "an SSO group, by name or ID (default org-wide)")
	typeFlag(cmd, &typ, "type of the snapshots that are shared")
	cmd.Flags().BoolVar(&yes, "yes", false, "share original, unmasked data without asking")
	cmd.Flags().BoolVar(&now, "now", false, "also share the newest existing snapshot now")
	cmd.Flags().StringVar(&every, "expect-every", "",
		"raise an event if no snapshot is pushed for this long, such as 26h (at least 1h); \"never\" turns this off")
	_ = cmd.RegisterFlagCompletionFunc("group", a.completeGroups())
	a.jsonFlag(cmd)
	return cmd
}

// expectedEvery converts the flag --expect-every to seconds; "never" becomes 0.
func expectedEvery(text string) (seconds int64, err error) {
	if text == "never" {
		return 0, nil
	}
	d, err := snap.ParseDuration(text)
	if err == nil && d < time.Hour {
		err = snap.Usage("--expect-every "+text+" is less than an hour", `use at least 1h, or "never"`)
	}
	return int64(d / time.Second), err
}

// addChannel creates a channel for the given group, or an org-wide one if group is empty.
func (a *app) addChannel(ctx context.Context, r api.ChannelRequest, group string, yes bool) error {
	conn, err := a.connect()
	if err != nil {
		return err
	}
	if group != "" {
		groups, err := findGroups(ctx, conn.Client, []string{group})
		if err != nil {
			return err
		}
		r.GroupID = groups[0].GroupID
	}
	channel, err := conn.AddChannel(ctx, r, yes)
	if snap.CodeOf(err) == snap.CodeConfirm && !yes && a.canAsk() {
		if err := a.confirm(ctx, false, "Share every new snapshot of "+r.Target+" anyway?", err.Error()); err != nil {
			return err
		}
		channel, err = conn.AddChannel(ctx, r, true)
	}
	switch {
	case err != nil:
		return err
	case a.flags.json:
		return a.printJSON(channel)
	}
	which := "every new"
	if r.Now {
		which = "the newest and every new"
	}
	a.done(channel.ID, "channel %s: %s %s snapshot of %s is shared with %s", channel.ID, which,
		masking(channel.Type), channel.Target, channelAudience(channel))
	return nil
}

func (a *app) channelsRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove CHANNEL-ID",
		Short:   "End a channel and its shares",
		Long:    "Remove ends a channel and the shares that it made, at once. Shares that people\nmade are kept.",
		Example: examples("end a channel", "snapcli cloud channels remove 3"),
		Args:    command.ExactArgs("channel ID"),
		RunE: a.remove(removal{connect: a.connect, remove: (*api.Client).DeleteChannel, kind: "channel",
			list: "snapcli cloud channels", done: "ended the channel %s"}),
	}
}
