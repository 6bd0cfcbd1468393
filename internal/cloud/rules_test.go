package cloud_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// A channel shares the newest snapshot of its target and type at the push. It shares an earlier one
// only on request, and does not change shares that a person made.
func TestChannels(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, mia := c.As("alice@acme.test"), c.As("mia@acme.test")
	push := func(content string) api.Snapshot { return c.PushAs(mia, "shop", snap.TypeSanitized, []byte(content)) }
	old := push("before the channel")
	channel, err := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSanitized, GroupID: "dba"},
		false)
	must(t, err)
	again, err := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSanitized, GroupID: "dba"},
		false)
	if err != nil || again.ID != channel.ID {
		t.Errorf("the same channel twice: %+v, %v", again, err)
	}
	seen := func(id string, want bool, when string) {
		t.Helper()
		if sees(t, c.As("gus@acme.test"), id) != want {
			t.Errorf("%s: the group sees %s: %v", when, id, !want)
		}
	}
	seen(old.ID, false, "a channel does not share earlier snapshots")
	first := push("first")
	seen(first.ID, true, "pushed")
	c.PushAs(mia, "shop", snap.TypeSnapshot, []byte("raw"))
	c.PushAs(mia, "billing", snap.TypeSanitized, []byte("elsewhere"))
	seen(first.ID, true, "another type and target do not count")
	_, err = mia.ShareGroup(ctx, first.ID, "dba") // now by a person
	must(t, err)
	second := push("second")
	seen(second.ID, true, "the newest")
	seen(first.ID, true, "shared by hand too")
	third := push("third")
	seen(second.ID, false, "no longer the newest")
	shares, err := mia.GroupShares(ctx, third.ID)
	if err != nil || len(shares) != 1 || shares[0].Channel != channel.ID {
		t.Errorf("the share does not name its channel: %+v, %v", shares, err)
	}
	must(t, alice.DeleteChannel(ctx, channel.ID))
	seen(third.ID, false, "the channel is gone")
	seen(first.ID, true, "what was shared by hand stays")
	_, err = alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSanitized, Now: true}, false)
	must(t, err)
	if got := audience(t, c, third.ID); !strings.Contains(got, "vic") {
		t.Errorf("org-wide, applied now: seen by %s", got)
	}
	if _, err := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", GroupID: "nobody"},
		false); snap.CodeOf(err) != snap.CodeGroupNotFound {
		t.Errorf("an unknown group: %v", err)
	}
}

// DESIGN 3, received: an admin of the recipient may decline a share. The owner sees that, and may
// share the snapshot again.
func TestDecline(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	alice, gail := c.As("alice@acme.test"), c.As("gail@globex.test")
	if err := c.As("gary@globex.test").Decline(ctx, s.id); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member declines: %v", err)
	}
	must(t, gail.Decline(ctx, s.id))
	if sees(t, gail, s.id) || sees(t, c.As("gary@globex.test"), s.id) {
		t.Error("still visible after the share was declined")
	}
	shares, err := alice.OrgShares(ctx, s.id)
	if err != nil || len(shares) != 1 || shares[0].DeclinedAt == nil || shares[0].OrgSlug != "globex" {
		t.Fatalf("the owner sees %+v, %v", shares, err)
	}
	_, err = alice.ShareOrg(ctx, s.id, "globex", nil)
	must(t, err)
	shares, err = alice.OrgShares(ctx, s.id)
	if err != nil || len(shares) != 1 || shares[0].DeclinedAt != nil || !sees(t, gail, s.id) {
		t.Errorf("shared again: %+v, %v", shares, err)
	}
}

// Retention keeps the newest and the recent snapshots, and those that another organization can
// still pull. A dry run deletes nothing and reports the same.
func TestRetention(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	var ids []string
	for i := range 6 {
		ids = append(ids, c.Push(alice, "shop", fmt.Append(nil, "day ", i)).ID)
		clock.Advance(24 * time.Hour)
	}
	other := c.Push(alice, "billing", []byte("no rule")).ID
	until := clock.Now().Add(time.Hour)
	_, err := alice.ShareOrg(ctx, ids[1], "globex", &until)
	must(t, err)
	_, err = alice.SetRetention(ctx, api.RetentionRule{Target: "shop", KeepLast: 2, KeepDays: 3})
	must(t, err)
	ran := func(dry bool) string {
		t.Helper()
		result, err := alice.RunRetention(ctx, api.RetentionRun{DryRun: dry})
		must(t, err)
		var out []string
		for i, id := range ids {
			for _, s := range result.Snapshots {
				if s.ID == id {
					out = append(out, fmt.Sprint(i))
				}
			}
		}
		return strings.Join(out, " ")
	}
	there := func() string {
		t.Helper()
		var out []string
		for i, id := range ids {
			if sees(t, alice, id) {
				out = append(out, fmt.Sprint(i))
			}
		}
		return strings.Join(out, " ")
	}
	if got := ran(true); got != "0 2" || there() != "0 1 2 3 4 5" {
		t.Errorf("dry run: would delete %q, left %q", got, there())
	}
	if got := ran(false); got != "0 2" || there() != "1 3 4 5" {
		t.Errorf("run: deleted %q, left %q", got, there())
	}
	clock.Advance(2 * time.Hour) // the share has ended
	if got := ran(false); got != "1 3" || there() != "4 5" || !sees(t, alice, other) {
		t.Errorf("after the share: deleted %q, left %q", got, there())
	}
	clock.Advance(30 * 24 * time.Hour)
	if got := ran(false); got != "" || there() != "4 5" {
		t.Errorf("when all are old, the last stay: deleted %q, left %q", got, there())
	}
	page, err := alice.Audit(ctx, api.AuditOptions{Snapshot: ids[0], Action: snap.AuditDeleted})
	if err != nil || len(page.Items) != 1 || page.Items[0].By() != "alice@acme.test" {
		t.Errorf("audited as %+v, %v", page.Items, err)
	}
	must(t, alice.DeleteRetention(ctx, " shop "))
	if err := alice.DeleteRetention(ctx, "shop"); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

// receiver receives a webhook's messages. It keeps them and answers with the status that the test
// sets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
	status int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.bodies = append(r.got, req), append(r.bodies, string(text))
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func allowPrivate(c *cloud.Config) { c.Webhooks.AllowPrivate = true }

// Messages of webhooks are signed as the Standard Webhooks specification says, report pushes,
// shares, unshares, pulls and deletions, are retried with increasing pauses under the same ID, and
// are finally given up.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: allowPrivate})
	alice, r := c.As("alice@acme.test"), newReceiver(t)
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL})
	must(t, err)
	deliver := func(want int) {
		t.Helper()
		if n, err := c.Service.Deliver(ctx); err != nil || n != want {
			t.Fatalf("delivered %d, %v; want %d", n, err, want)
		}
	}
	sn := c.Push(alice, "shop", []byte("x"))
	_, err = alice.Share(ctx, sn.ID)
	must(t, err)
	must(t, alice.Unshare(ctx, sn.ID))
	_, err = alice.Pull(ctx, sn.ID)
	must(t, err)
	must(t, alice.Pulled(ctx, sn.ID, 1))
	must(t, alice.Delete(ctx, sn.ID))
	deliver(5)
	deliver(0)
	var types []string
	for i, req := range r.got {
		var e api.WebhookEvent
		must(t, json.Unmarshal([]byte(r.bodies[i]), &e))
		types = append(types, string(e.Type))
		checkSignature(t, hook.Secret, req, r.bodies[i])
		if e.Data.Snapshot != sn.ID || e.Data.Actor != "alice@acme.test" {
			t.Errorf("the event says %s", r.bodies[i])
		}
	}
	if got := strings.Join(types,
		" "); got != "snapshot.pushed snapshot.shared snapshot.unshared snapshot.pulled snapshot.deleted" {
		t.Errorf("the events are %s", got)
	}

	r.answer(http.StatusInternalServerError)
	c.Push(alice, "shop", []byte("y"))
	attempts := 0
	for range 20 {
		n, err := c.Service.Deliver(ctx)
		must(t, err)
		attempts += n
		clock.Advance(25 * time.Hour)
	}
	if attempts != 10 || len(r.got) != 15 {
		t.Fatalf("%d attempts, %d requests", attempts, len(r.got))
	}
	if r.got[5].Header.Get("Webhook-Id") != r.got[14].Header.Get("Webhook-Id") {
		t.Errorf("IDs %s and %s", r.got[5].Header.Get("Webhook-Id"), r.got[14].Header.Get("Webhook-Id"))
	}
	list, err := alice.Deliveries(ctx, hook.ID)
	if err != nil || len(list) != 6 || list[0].Status != "answered 500" || list[0].NextAt != nil ||
		list[0].Attempts != 10 {
		t.Errorf("deliveries: %+v, %v", list, err)
	}
	must(t, alice.DeleteWebhook(ctx, hook.ID))
	c.Push(alice, "shop", []byte("z"))
	deliver(0)
}

func checkSignature(t *testing.T, secret string, req *http.Request, text string) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	must(t, err)
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.%s", req.Header.Get("Webhook-Id"), req.Header.Get("Webhook-Timestamp"), text)
	if want := "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)); req.Header.Get("Webhook-Signature") != want {
		t.Errorf("signature %q, want %q", req.Header.Get("Webhook-Signature"), want)
	}
}

// A webhook never reaches a private address unless the operator allows it, whatever address its
// name resolves to.
func TestWebhooksNeverReachPrivateAddresses(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	for _, url := range []string{"http://hooks.example", "ftp://x", "nonsense", "https://user:pass@hooks.example",
		"https://"} {
		if _, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: url}); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%s was accepted: %v", url, err)
		}
	}
	var ids []string
	for _, host := range []string{"127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
		"[::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0.1.2.3", "198.18.0.1", "[2002:7f00:1::1]",
		"[64:ff9b:1::7f00:1]"} {
		hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: "https://" + host + ":1/x",
			Events: []snap.AuditAction{snap.AuditPushed}})
		must(t, err)
		ids = append(ids, hook.ID)
	}
	c.Push(alice, "shop", []byte("x"))
	_, err := c.Service.Deliver(ctx)
	must(t, err)
	for _, id := range ids {
		list, err := alice.Deliveries(ctx, id)
		if err != nil || len(list) != 1 || list[0].Status != "the address is not public" {
			t.Errorf("webhook %s: %+v, %v", id, list, err)
		}
	}
}

// A rule with only a number of days deletes every snapshot that is older.
func TestRetentionByDaysAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	var ids []string
	for i := range 3 {
		ids = append(ids, c.Push(alice, "shop", fmt.Append(nil, "day ", i)).ID)
		clock.Advance(24 * time.Hour)
	}
	clock.Advance(time.Hour) // the ages are 73, 49 and 25 hours
	_, err := alice.SetRetention(ctx, api.RetentionRule{Target: "shop", KeepDays: 2})
	must(t, err)
	result, err := alice.RunRetention(ctx, api.RetentionRun{})
	if err != nil || len(result.Snapshots) != 2 || sees(t, alice, ids[0]) || sees(t, alice, ids[1]) ||
		!sees(t, alice, ids[2]) {
		t.Errorf("deleted %+v, %v; want the two older ones", result.Snapshots, err)
	}
}
