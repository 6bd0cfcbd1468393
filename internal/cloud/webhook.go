package cloud

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"

	"snap"
	"snap/api"
	"snap/internal/auth"
	"snap/internal/store"
)

type webhookInput struct {
	Body api.WebhookRequest
}

func (s *Service) listWebhooks(ctx context.Context, _ *noInput) (*body[api.WebhookList], error) {
	hooks, err := s.store.Webhooks(ctx, callOf(ctx).caller)
	if err != nil {
		return nil, err
	}
	return &body[api.WebhookList]{api.WebhookList{Items: each(hooks, wireWebhook)}}, nil
}

func (s *Service) createWebhook(ctx context.Context, in *webhookInput) (*body[api.NewWebhook], error) {
	u, err := url.Parse(in.Body.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !s.config.Webhooks.AllowPrivate) {
		return nil, snap.Invalid("the URL of a webhook must begin with https:// and contain no credentials", "")
	}
	events := in.Body.Events
	for _, e := range events {
		if !slices.Contains(store.WebhookEvents(), e) {
			return nil, snap.Invalid(fmt.Sprintf("%q is not an event", e),
				"the events are "+names(store.WebhookEvents()))
		}
	}
	if len(events) == 0 {
		events = store.WebhookEvents()
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	hook, err := s.store.AddWebhook(ctx, callOf(ctx).caller,
		store.Webhook{URL: in.Body.URL, Secret: secret, Events: events})
	if err != nil {
		return nil, err
	}
	return &body[api.NewWebhook]{api.NewWebhook{Webhook: wireWebhook(hook),
		Secret: "whsec_" + base64.StdEncoding.EncodeToString(secret)}}, nil
}

func (s *Service) deleteWebhook(ctx context.Context, in *ByNumber) (*empty, error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	return &empty{}, s.store.DeleteWebhook(ctx, callOf(ctx).caller, id)
}

func (s *Service) listDeliveries(ctx context.Context, in *ByNumber) (*body[api.DeliveryList], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	all, err := s.store.Deliveries(ctx, callOf(ctx).caller, id, 50)
	if err != nil {
		return nil, err
	}
	return &body[api.DeliveryList]{api.DeliveryList{Items: each(all, func(d store.Delivery) api.Delivery {
		return api.Delivery{ID: d.ID, Event: d.Event.Action, Attempts: d.Attempts, Status: d.Status,
			CreatedAt: d.Created,
			NextAt:    optional(d.Due)}
	})}}, nil
}

func wireWebhook(w store.Webhook) api.Webhook {
	return api.Webhook{ID: strconv.FormatInt(w.ID, 10), URL: w.URL, Events: w.Events, CreatedAt: w.Created,
		CreatedBy: w.By}
}

// retries returns the waits before the second and each further attempt, as the Standard Webhooks
// specification suggests. After the last attempt a delivery is given up.
func retries() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour,
		20 * time.Hour, 24 * time.Hour,
	}
}

// deliverLease is how long a replica may work on a batch of deliveries, and answerIn how long one
// receiver may take to answer.
const (
	deliverBatch = 10
	answerIn     = 10 * time.Second
	deliverLease = (deliverBatch + 2) * answerIn
)

// Deliver sends the webhook deliveries that are due and returns how many it tried. Several replicas
// may call it at once: each delivery is leased to one of them. A replica that is delayed beyond its
// lease begins no further delivery, and the result of the one it had begun is ignored.
func (s *Service) Deliver(ctx context.Context) (tried int, err error) {
	if err := s.Sequence(ctx); err != nil { // events of altered logs wait; others are sent
		s.log.WarnContext(ctx, "some audit logs are not continued", "error", err)
	}
	for {
		due, hooks, err := s.store.Due(ctx, deliverLease, deliverBatch)
		if err != nil || len(due) == 0 {
			return tried, err
		}
		for _, d := range due {
			if !s.now().Before(d.Due) {
				break // the lease of the whole batch has ended
			}
			if err := s.deliver(ctx, hooks[d.WebhookID], d); err != nil {
				return tried, err
			}
			tried++
		}
	}
}

// deliver makes one attempt at a delivery and records the result.
func (s *Service) deliver(ctx context.Context, w store.Webhook, d store.Delivery) error {
	traced, end := s.telemetry.tracing.begin(ctx, "deliver webhook", trace.SpanKindClient)
	status, sendErr := s.send(traced, w, d)
	end(sendErr)
	if ctx.Err() != nil {
		return ctx.Err() // due again when the lease ends
	}
	var next time.Time
	if waits := retries(); sendErr != nil && d.Attempts < len(waits) {
		next = s.now().Add(waits[d.Attempts])
	}
	held, err := s.store.Delivered(ctx, d, status, next)
	if held {
		s.telemetry.metrics.deliveries.WithLabelValues(deliveryOutcome(sendErr, next)).Inc()
	}
	return err
}

func deliveryOutcome(err error, next time.Time) string {
	switch {
	case err == nil:
		return "delivered"
	case next.IsZero():
		return "given_up"
	}
	return "retried"
}

// send makes one attempt: a POST to a public address, signed as in the Standard Webhooks
// specification. It does not follow redirects.
func (s *Service) send(ctx context.Context, w store.Webhook, d store.Delivery) (status string, err error) {
	e := d.Event
	log, err := s.auditNews(ctx, w, e.Seq)
	if err != nil {
		return "not sent", err
	}
	payload, err := json.Marshal(api.WebhookEvent{Type: e.Action, Timestamp: e.At, Log: log, Data: api.WebhookData{
		Snapshot: e.Snapshot, Organization: e.ActorOrg, Actor: e.Actor, Detail: e.Detail,
	}})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(payload))
	if err != nil {
		return "not a URL", err
	}
	stamp := strconv.FormatInt(s.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "snapcloud")
	req.Header.Set("Webhook-Id", d.ID)
	req.Header.Set("Webhook-Timestamp", stamp)
	req.Header.Set("Webhook-Signature", signature(w.Secret, d.ID, stamp, payload))
	res, err := s.background.hookClient.Do(req)
	if err != nil {
		if errors.Is(err, errPrivate) {
			return errPrivate.Error(), err
		}
		return "not reached", err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return "answered " + strconv.Itoa(res.StatusCode), fmt.Errorf("status %d", res.StatusCode)
	}
	return "answered " + strconv.Itoa(res.StatusCode), nil
}

// signature returns a v1 signature of Standard Webhooks: base64 of HMAC-SHA256 over ID, time and
// body.
func signature(secret []byte, id, stamp string, payload []byte) string {
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s.%s.", id, stamp)
	h.Write(payload)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

var errPrivate = errors.New("the address is not public")

// newHookClient returns a client that refuses to connect to an address that is not public, unless
// the operator allows it. It checks the address after the name was resolved.
func newHookClient(allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: answerIn, Control: func(_, address string, _ syscall.RawConn) error {
		if allowPrivate {
			return nil
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil || !auth.IsPublic(at.Addr()) {
			return errPrivate
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: answerIn, MaxIdleConns: 10,
			IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
