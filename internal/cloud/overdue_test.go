package cloud_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
)

func seconds(n int64) *int64 { return &n }

// A channel that expects a snapshot every 26 hours raises one event for each lapse, with any number of
// replicas, and another one only after a new snapshot has become too old as well.
func TestOverdueSnapshots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: allowPrivate})
	alice, r := c.As("alice@acme.test"), newReceiver(t)
	_, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: []snap.AuditAction{snap.AuditOverdue}})
	must(t, err)
	expect := api.ChannelRequest{Target: "shop", Type: snap.TypeSnapshot, ExpectEvery: seconds(26 * 3600)}
	channel, err := alice.AddChannel(ctx, expect, true)
	must(t, err)
	if channel.ExpectEvery != 26*3600 {
		t.Errorf("%+v", channel)
	}
	told := func(after time.Duration, want int) {
		t.Helper()
		clock.Advance(after)
		n := 0
		for range 2 {
			one, err := c.Store.ReportOverdue(ctx)
			must(t, err)
			n += one
		}
		if n != want {
			t.Errorf("%d events, want %d", n, want)
		}
	}
	told(25*time.Hour, 0)
	told(2*time.Hour, 1) // none was ever pushed
	told(48*time.Hour, 0)
	sn := c.Push(alice, "shop", []byte("a"))
	told(25*time.Hour, 0)
	c.Push(alice, "other", []byte("b"))
	told(2*time.Hour, 1)
	told(100*time.Hour, 0)
	_, err = alice.AddChannel(ctx, expect, true) // the same again
	must(t, err)
	told(time.Minute, 0)
	must(t, alice.Delete(ctx, sn.ID)) // no newer one was pushed
	told(time.Minute, 0)
	if _, err := c.Service.Deliver(ctx); err != nil {
		t.Fatal(err)
	}
	var e api.WebhookEvent
	if len(r.bodies) != 2 || json.Unmarshal([]byte(r.bodies[1]), &e) != nil {
		t.Fatalf("%d messages", len(r.bodies))
	}
	if d := e.Data.Detail; e.Type != snap.AuditOverdue || d.Target != "shop" || d.Kind != "snapshot" ||
		!strings.Contains(d.Reason, "no snapshot was pushed for") {
		t.Errorf("%s", r.bodies[1])
	}
	without := expect
	without.ExpectEvery = nil
	changed := func(r api.ChannelRequest, want int64) {
		t.Helper()
		channel, err := alice.AddChannel(ctx, r, true)
		if err != nil || channel.ExpectEvery != want {
			t.Errorf("%+v, %v; want %d", channel, err, want)
		}
	}
	changed(without, 26*3600) // unchanged
	without.ExpectEvery = seconds(0)
	c.Push(alice, "shop", []byte("c"))
	changed(without, 0)
	told(100*time.Hour, 0) // the channel stays and expects nothing
	changed(expect, 26*3600)
	told(time.Minute, 1)
	must(t, alice.DeleteChannel(ctx, channel.ID))
	told(100*time.Hour, 0)
	expect.ExpectEvery = seconds(60)
	_, err = alice.AddChannel(ctx, expect, true)
	if snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("every minute: %v", err)
	}
}

// hostileName is a snapshot's name that tries the markup, links and mentions of each chat.
const hostileName = "@everyone [sign in](evil.test) `c` _i_ ~s~ &lt;!channel&gt; #h"

// Messages have the form of each chat program, and names in them are not markup.
func TestChatMessages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{Config: allowPrivate})
	alice := c.As("alice@acme.test")
	pushed := []snap.AuditAction{snap.AuditPushed}
	bodies := map[string]string{}
	var receivers []*receiver
	formats := []string{"standard", "slack", "teams", "discord"}
	for _, format := range formats {
		r := newReceiver(t)
		receivers = append(receivers, r)
		hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed, Format: format})
		must(t, err)
		if hook.Format != format {
			t.Errorf("%q became %q", format, hook.Format)
		}
	}
	if _, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: receivers[0].URL, Format: "irc"}); snap.CodeOf(err) !=
		snap.CodeInvalid {
		t.Errorf("an unknown format: %v", err)
	}
	c.Push(alice, hostileName, []byte("x")) // a target without slashes
	if n, err := c.Service.Deliver(ctx); err != nil || n != len(formats) {
		t.Fatalf("%d delivered, %v", n, err)
	}
	for i, format := range formats {
		if receivers[i].got[0].Header.Get("Webhook-Signature") == "" {
			t.Errorf("the message for %s has no signature", format)
		}
		bodies[format] = receivers[i].bodies[0]
	}
	var slack struct {
		Text   string
		Blocks []struct{ Text struct{ Type, Text string } }
	}
	must(t, json.Unmarshal([]byte(bodies["slack"]), &slack))
	if strings.ContainsAny(slack.Text, "<>") || slack.Blocks[0].Text.Type != "plain_text" ||
		!strings.Contains(slack.Blocks[0].Text.Text, "alice@acme.test pushed") {
		t.Errorf("%+v", slack)
	}
	var teams struct {
		Attachments []struct {
			Content struct {
				Body []struct {
					Type    string
					Inlines []struct{ Type, Text string }
				}
			}
		}
	}
	must(t, json.Unmarshal([]byte(bodies["teams"]), &teams))
	if block := teams.Attachments[0].Content.Body[0]; block.Type != "RichTextBlock" ||
		block.Inlines[0].Type != "TextRun" || !strings.Contains(block.Inlines[0].Text, hostileName) {
		t.Errorf("%+v", teams)
	}
	var discord struct {
		Content  string
		Mentions *struct{ Parse []string } `json:"allowed_mentions"`
	}
	must(t, json.Unmarshal([]byte(bodies["discord"]), &discord))
	if discord.Mentions == nil || discord.Mentions.Parse == nil || len(discord.Mentions.Parse) > 0 ||
		strings.Contains(discord.Content, "@everyone") || strings.Contains(discord.Content, "](") {
		t.Errorf("%+v", discord)
	}
	if len(discord.Content) > 2000 {
		t.Errorf("%d characters", len(discord.Content))
	}
}
