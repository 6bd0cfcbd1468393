package cloud_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

var pushed = []snap.AuditAction{snap.AuditPushed}

// hanging is a receiver that never answers until the test ends.
func hanging(t *testing.T) (url string, waiting *atomic.Int64) {
	release, waiting := make(chan struct{}), new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		waiting.Add(1)
		<-release
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	return s.URL, waiting
}

// numbers returns the numbers of the events that a receiver got, in the order of their arrival.
func (r *receiver) numbers(t *testing.T) (all []int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range r.bodies {
		var e api.WebhookEvent
		must(t, json.Unmarshal([]byte(text), &e))
		all = append(all, e.Number)
	}
	return all
}

func countTo(n int64) (all []int64) {
	for i := range n {
		all = append(all, i+1)
	}
	return all
}

// Receivers of one organization that hang delay no other organization: while six of them keep
// requests open, another organization receives everything, each event once and in order, although
// two replicas send. The first replica sends to four receivers of the organization and leaves room.
func TestHangingReceiverDelaysNobodyElse(t *testing.T) {
	twoReplicas(t, func(t *testing.T, _ *clocktest.Clock, a, b *cloudtest.Cloud) {
		ctx, cancel := context.WithCancel(t.Context())
		alice, gail := a.As("alice@acme.test"), a.As("gail@globex.test")
		url, waiting := hanging(t)
		const hooks, events = 6, 25
		for range hooks {
			_, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: url, Events: pushed})
			must(t, err)
		}
		good := newReceiver(t)
		_, err := gail.AddWebhook(ctx, api.WebhookRequest{URL: good.URL, Events: pushed})
		must(t, err)
		for i := range 3 {
			a.Push(alice, "shop", fmt.Append(nil, "hangs ", i))
		}
		var sending sync.WaitGroup
		defer sending.Wait()
		defer cancel()
		send := func(c *cloudtest.Cloud) {
			sending.Go(func() {
				if _, err := c.Service.Deliver(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("deliver: %v", err)
				}
			})
		}
		a.Push(gail, "shop", []byte("arrives first"))
		send(a)
		waitFor(t, func() bool { return waiting.Load() >= 4 && len(good.numbers(t)) == 1 })
		if n := waiting.Load(); n != 4 {
			t.Errorf("one replica sends to %d receivers of the organization", n)
		}
		send(b)
		waitFor(t, func() bool { return waiting.Load() >= hooks })
		for i := range events - 1 {
			a.Push(gail, "shop", fmt.Append(nil, "arrives ", i))
			if i%10 == 9 {
				send(a)
				send(b)
			}
		}
		waitFor(t, func() bool {
			send(b)
			return len(good.numbers(t)) >= events
		})
		if got := good.numbers(t); !slices.Equal(got, countTo(events)) {
			t.Errorf("received %v", got)
		}
		if n := waiting.Load(); n > hooks*3 {
			t.Errorf("%d requests at the receivers that hang, for %d messages", n, hooks*3)
		}
	})
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("a condition did not hold in time")
		}
	}
}

// A receiver that fails five times in a row gets one message at a time, with longer and longer
// pauses. When it accepts one, it gets the rest.
func TestFailingWebhookPauses(t *testing.T) {
	twoReplicas(t, func(t *testing.T, clock *clocktest.Clock, a, b *cloudtest.Cloud) {
		ctx, r := t.Context(), newReceiver(t)
		alice := a.As("alice@acme.test")
		hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed})
		must(t, err)
		const events = 12
		for i := range events {
			a.Push(alice, "shop", fmt.Append(nil, "event ", i))
		}
		r.answer(http.StatusServiceUnavailable)
		tries := func(c *cloudtest.Cloud, want int, when string) {
			t.Helper()
			if n, err := c.Service.Deliver(ctx); err != nil || n != want {
				t.Errorf("%s: tried %d, %v; want %d", when, n, err, want)
			}
		}
		tries(a, 5, "at first")
		tries(b, 0, "paused")
		clock.Advance(30 * time.Second)
		tries(b, 1, "after 30 seconds")
		clock.Advance(59 * time.Second)
		tries(a, 0, "before a minute")
		list, err := alice.Webhooks(ctx)
		must(t, err)
		if h := list[0]; h.Failures != 6 || h.PausedUntil == nil || h.Waiting != events || h.DisabledAt != nil {
			t.Errorf("paused: %+v", h)
		}
		clock.Advance(time.Second)
		r.answer(http.StatusOK)
		n, err := a.Service.Deliver(ctx)
		must(t, err)
		clock.Advance(5 * time.Minute)
		m, err := b.Service.Deliver(ctx)
		must(t, err)
		if n+m != events {
			t.Errorf("sent %d and %d, want %d", n, m, events)
		}
		must(t, alice.DeleteWebhook(ctx, hook.ID))
	})
}

// 410 Gone disables a webhook at once. That is a line of the audit log and an event for the
// organization's other webhooks. When it is enabled again, it receives the waiting events in order.
func TestGoneDisablesWebhook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{Config: allowPrivate})
	alice, gone, other := c.As("alice@acme.test"), newReceiver(t), newReceiver(t)
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: gone.URL, Events: pushed})
	must(t, err)
	_, err = alice.AddWebhook(ctx, api.WebhookRequest{URL: other.URL,
		Events: []snap.AuditAction{snap.AuditWebhookDisabled}})
	must(t, err)
	gone.answer(http.StatusGone)
	deliver := func(want int) {
		t.Helper()
		if n, err := c.Service.Deliver(ctx); err != nil || n != want {
			t.Errorf("tried %d, %v; want %d", n, err, want)
		}
	}
	c.Push(alice, "shop", []byte("one"))
	deliver(1)
	deliver(1) // the event
	c.Push(alice, "shop", []byte("two"))
	deliver(0)
	if len(other.bodies) != 1 || !strings.Contains(other.bodies[0], `"type":"webhook.disabled"`) ||
		!strings.Contains(other.bodies[0], "410 Gone") {
		t.Errorf("the other webhook received %q", other.bodies)
	}
	page, err := alice.Audit(ctx, api.AuditOptions{Action: snap.AuditWebhookDisabled})
	must(t, err)
	if len(page.Items) != 1 || fmt.Sprint(page.Items[0].Detail.Webhook) != hook.ID ||
		page.Items[0].Credential != "webhooks" {
		t.Errorf("audit: %+v", page.Items)
	}
	list, err := alice.Webhooks(ctx)
	must(t, err)
	if list[0].DisabledAt == nil || list[0].DisabledReason == "" || list[0].Waiting != 2 {
		t.Errorf("disabled: %+v", list[0])
	}
	waiting, err := alice.Deliveries(ctx, hook.ID)
	must(t, err)
	for _, d := range waiting {
		if d.NextAt != nil {
			t.Errorf("a message of a disabled webhook names its next attempt: %+v", d)
		}
	}
	gone.answer(http.StatusOK)
	if _, err := alice.EnableWebhook(ctx, hook.ID); err != nil {
		t.Fatal(err)
	}
	deliver(2)
	if got := gone.numbers(t); !slices.Equal(got, []int64{1, 1, 2}) {
		t.Errorf("received %v", got)
	}
	if _, err := c.As("gail@globex.test").EnableWebhook(ctx, hook.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("another organization enables it: %v", err)
	}
}

// A receiver that accepts nothing until the service gives up a message is disabled. Replay sends
// the given-up messages under the same IDs.
func TestDeadWebhookIsDisabledAndReplayed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: allowPrivate})
	alice, r := c.As("alice@acme.test"), newReceiver(t)
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed})
	must(t, err)
	start := clock.Now()
	c.Push(alice, "shop", []byte("one"))
	r.answer(http.StatusInternalServerError)
	for range 10 {
		_, err := c.Service.Deliver(ctx)
		must(t, err)
		clock.Advance(24 * time.Hour)
	}
	list, err := alice.Webhooks(ctx)
	must(t, err)
	if len(r.got) != 10 || list[0].DisabledAt == nil || list[0].Waiting != 0 {
		t.Errorf("%d attempts, %+v", len(r.got), list[0])
	}
	r.answer(http.StatusOK)
	_, err = alice.EnableWebhook(ctx, hook.ID)
	must(t, err)
	replay := func(want int64, request api.ReplayRequest) (next int64) {
		t.Helper()
		result, err := alice.ReplayWebhook(ctx, hook.ID, request)
		must(t, err)
		n, err := c.Service.Deliver(ctx)
		if err != nil || result.Queued != want || int64(n) != want || result.More {
			t.Errorf("%+v: queued %+v and sent %d, %v; want %d", request, result, n, err, want)
		}
		return result.Next
	}
	replay(1, api.ReplayRequest{Since: &start})
	replay(0, api.ReplayRequest{Since: &start}) // accepted
	next := replay(1, api.ReplayRequest{Since: &start, All: true})
	replay(0, api.ReplayRequest{Since: &start, All: true, After: next}) // sent in the meantime
	replay(1, api.ReplayRequest{Since: &start, All: true, After: next - 1})
	id := r.got[0].Header.Get("Webhook-Id")
	replay(1, api.ReplayRequest{Delivery: id})
	for _, req := range r.got {
		if req.Header.Get("Webhook-Id") != id {
			t.Errorf("sent as %s, want %s", req.Header.Get("Webhook-Id"), id)
		}
	}
	for _, request := range []api.ReplayRequest{{}, {Delivery: id, Since: &start}} {
		if _, err := alice.ReplayWebhook(ctx, hook.ID, request); snap.CodeOf(err) != snap.CodeInvalid {
			t.Errorf("%+v: %v", request, err)
		}
	}
	if _, err := alice.ReplayWebhook(ctx, hook.ID, api.ReplayRequest{Delivery: "msg_9_9_9"}); snap.CodeOf(err) !=
		snap.CodeNotFound {
		t.Errorf("another message: %v", err)
	}
	clock.Advance(31 * 24 * time.Hour)
	_, err = c.Service.Collect(ctx)
	must(t, err)
	if kept, err := alice.Deliveries(ctx, hook.ID); err != nil || len(kept) != 0 {
		t.Errorf("kept after a month: %+v, %v", kept, err)
	}
}

// During a rotation both secrets sign; afterwards only the new one. A test message is sent at once,
// and the number of test messages per minute is limited.
func TestRotateAndTestWebhook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	clock := clocktest.New(time.Now())
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock, Config: allowPrivate})
	alice, r := c.As("alice@acme.test"), newReceiver(t)
	hook, err := alice.AddWebhook(ctx, api.WebhookRequest{URL: r.URL, Events: pushed})
	must(t, err)
	rotated, err := alice.RotateWebhook(ctx, hook.ID, api.RotateRequest{})
	must(t, err)
	signed := func(want ...string) {
		t.Helper()
		if result, err := alice.TestWebhook(ctx, hook.ID); err != nil || !result.OK || result.Status != "answered 204" {
			t.Errorf("test: %+v, %v", result, err)
		}
		last := len(r.got) - 1
		signatures := strings.Fields(r.got[last].Header.Get("Webhook-Signature"))
		if len(signatures) != len(want) {
			t.Fatalf("signed with %q, want %d", signatures, len(want))
		}
		for i, secret := range want {
			alone := r.got[last].Clone(ctx)
			alone.Header.Set("Webhook-Signature", signatures[i])
			checkSignature(t, secret, alone, r.bodies[last])
		}
	}
	signed(rotated.Secret, hook.Secret)
	clock.Advance(24*time.Hour + time.Second)
	signed(rotated.Secret)
	leaked, err := alice.RotateWebhook(ctx, hook.ID, api.RotateRequest{Overlap: "0s"})
	must(t, err)
	signed(leaked.Secret)
	for _, overlap := range []string{"-1h", "169h", "soon"} {
		if _, err := alice.RotateWebhook(ctx, hook.ID, api.RotateRequest{Overlap: overlap}); snap.CodeOf(err) !=
			snap.CodeInvalid {
			t.Errorf("an overlap of %s: %v", overlap, err)
		}
	}
	for i := 0; ; i++ {
		_, err := alice.TestWebhook(ctx, hook.ID)
		if snap.CodeOf(err) == snap.CodeRateLimited {
			break
		}
		if must(t, err); i > 25 {
			t.Fatal("tests are not limited")
		}
	}
}

// A receiver cannot make the service read much, follow it elsewhere, or wait long.
func TestHostileReceivers(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: allowPrivate})
	alice, elsewhere := c.As("alice@acme.test"), newReceiver(t)
	written := make(chan int64, 1)
	for status, answer := range map[string]http.HandlerFunc{
		"answered 302": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		},
		"answered 200": func(w http.ResponseWriter, r *http.Request) { // a body without end
			n, _ := io.Copy(w, endless{r.Context()})
			written <- n
		},
		"not reached": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 128<<10))
		},
	} {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		hook, err := alice.AddWebhook(t.Context(), api.WebhookRequest{URL: s.URL, Events: pushed})
		must(t, err)
		result, err := alice.TestWebhook(t.Context(), hook.ID)
		if err != nil || result.Status != status {
			t.Errorf("%+v, %v; want %s", result, err, status)
		}
	}
	if n := <-written; n > 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
	if len(elsewhere.got) != 0 {
		t.Error("a redirect was followed")
	}
}

// endless is a reader that ends with its context.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) { return len(p), e.ctx.Err() }
