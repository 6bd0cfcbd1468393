package cloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
	"snap/api"
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
	c := callOf(ctx).caller
	w, err := s.destination(c.Org.Slug, in.Body)
	if err != nil {
		return nil, err
	}
	events := in.Body.Events
	for _, e := range events {
		if !slices.Contains(store.WebhookEvents(), e) {
			return nil, snap.Invalid(fmt.Sprintf("%q is not an event", e),
				"the events are "+joinActions(store.WebhookEvents()))
		}
	}
	if len(events) == 0 {
		events = store.WebhookEvents()
	}
	secret := []byte{}
	if w.Format != mailFormat {
		secret = newHookSecret()
	}
	w.Secrets, w.Events = [][]byte{s.sealHookSecret(c.Org.ID, secret)}, events
	hook, err := s.store.AddWebhook(ctx, c, w)
	return wireNewWebhook(hook, secret, err)
}

// destination returns a new webhook with its URL and format. The URL is a mailto: URL, or one that
// accepts messages over HTTP.
func (s *Service) destination(slug string, r api.WebhookRequest) (w store.Webhook, err error) {
	format := strings.TrimPrefix(r.Format, standardFormat)
	if address, ok := mailAddress(r.URL); ok {
		if format != "" && format != mailFormat {
			return w, snap.Invalid("messages to an e-mail address always have the format mail", "omit the format")
		}
		return store.Webhook{URL: mailtoURL(address), Format: mailFormat}, s.config.checkAddress(slug, address)
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" &&
		(u.Scheme != "http" || !s.config.Webhooks.AllowPrivate) {
		return w, snap.Invalid("the URL of a webhook must begin with https:// and contain no credentials",
			"to send mail instead, give mailto: followed by an address")
	}
	if format == mailFormat {
		return w, snap.Invalid("the format mail needs an address", "give it as mailto:name@example.com")
	}
	return store.Webhook{URL: r.URL, Format: format}, nil
}

func newHookSecret() []byte {
	secret := make([]byte, store.HookSecretSize)
	rand.Read(secret)
	return secret
}

// sealHookSecret encrypts the secret of a webhook if auth.key_encryption_key is set. Webhooks of
// e-mail addresses have no secret.
func (s *Service) sealHookSecret(orgID int64, secret []byte) []byte {
	if s.sealer == nil || len(secret) == 0 {
		return secret
	}
	return s.sealer.Seal(store.HookSecretName(orgID), secret)
}

// hookSecrets returns the decrypted secrets of a webhook.
func (s *Service) hookSecrets(w store.Webhook) (all [][]byte, err error) {
	for _, secret := range w.Secrets {
		if len(secret) > store.HookSecretSize {
			if secret, err = s.sealer.Open(store.HookSecretName(w.OrgID), secret); err != nil {
				return nil, fmt.Errorf("decrypt the secret of webhook %d: %w", w.ID, err)
			}
		}
		all = append(all, secret)
	}
	return all, nil
}

func wireNewWebhook(w store.Webhook, secret []byte, err error) (*body[api.NewWebhook], error) {
	if err != nil {
		return nil, err
	}
	out := api.NewWebhook{Webhook: wireWebhook(w)}
	if len(secret) > 0 {
		out.Secret = "whsec_" + base64.StdEncoding.EncodeToString(secret)
	}
	return &body[api.NewWebhook]{out}, nil
}

func (s *Service) deleteWebhook(ctx context.Context, in *ByNumber) (*empty, error) {
	return in.apply(ctx, s.store.DeleteWebhook)
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
		return api.Delivery{ID: d.ID, Number: d.Number, Event: d.Event.Action, Attempts: d.Attempts, Status: d.Status,
			CreatedAt: d.Created, NextAt: optional(d.Due)}
	})}}, nil
}

func wireWebhook(w store.Webhook) api.Webhook {
	return api.Webhook{ID: strconv.FormatInt(w.ID, 10), URL: w.URL, Events: w.Events,
		Format: cmp.Or(w.Format, standardFormat), CreatedAt: w.Created,
		CreatedBy: w.By, Waiting: w.Waiting, Failures: w.Failures, PausedUntil: optional(w.PausedUntil),
		DisabledAt: optional(w.Disabled), DisabledReason: w.DisabledWhy,
		OldSecretUntil: optional(w.OldSecretUntil)}
}

func (s *Service) enableWebhook(ctx context.Context, in *ByNumber) (*body[api.Webhook], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	w, err := s.store.EnableWebhook(ctx, callOf(ctx).caller, id)
	if err != nil {
		return nil, err
	}
	return &body[api.Webhook]{wireWebhook(w)}, nil
}

// defaultOverlap and maxOverlap are the default and the maximum time for which the previous secret
// stays valid after a rotation.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 7 * 24 * time.Hour
)

type rotateInput struct {
	ByNumber
	Body api.RotateRequest
}

func (s *Service) rotateWebhook(ctx context.Context, in *rotateInput) (*body[api.NewWebhook], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	overlap := defaultOverlap
	if in.Body.Overlap != "" {
		overlap, err = time.ParseDuration(in.Body.Overlap)
		if err != nil || overlap < 0 || overlap > maxOverlap {
			return nil, snap.Invalid("the overlap must be a duration from 0s to 168h", "for example 24h")
		}
	}
	c := callOf(ctx).caller
	w, err := s.store.Webhook(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if w.Format == mailFormat {
		return nil, snap.Invalid("messages to an e-mail address have no secret", "")
	}
	secret := newHookSecret()
	w, err = s.store.RotateSecret(ctx, c, id, s.sealHookSecret(c.Org.ID, secret), s.now().Add(overlap))
	return wireNewWebhook(w, secret, err)
}

// testsPerOrganization is how many test messages an organization may send in a minute.
const testsPerOrganization = 20

// testWebhook immediately sends a message to a webhook and returns the result. It works for a
// disabled webhook too, and changes nothing.
func (s *Service) testWebhook(ctx context.Context, in *ByNumber) (*body[api.WebhookTest], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	c := callOf(ctx).caller
	w, err := s.store.Webhook(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if wait := s.background.tests.Allow(ctx, "webhook tests "+c.Org.Slug, testsPerOrganization); wait > 0 {
		return nil, &snap.Error{Code: snap.CodeRateLimited, RetryAfter: wait,
			Detail: fmt.Sprintf("the organization may send at most %d test messages in a minute", testsPerOrganization)}
	}
	e := api.WebhookEvent{Type: "webhook.test", Timestamp: s.now().UTC(),
		Data: api.WebhookData{Organization: c.Org.Slug}}
	if c.User != nil {
		e.Data.Actor = c.User.Email
	}
	began := time.Now()
	o, err := s.post(ctx, w, "test_"+rand.Text(), e)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &body[api.WebhookTest]{api.WebhookTest{OK: err == nil, Status: o.Status,
		Milliseconds: time.Since(began).Milliseconds()}}, nil
}

type replayInput struct {
	ByNumber
	Body api.ReplayRequest
}

func (s *Service) replayWebhook(ctx context.Context, in *replayInput) (*body[api.ReplayResult], error) {
	id, err := in.number()
	if err != nil {
		return nil, err
	}
	r := store.Replay{ID: in.Body.Delivery, All: in.Body.All, After: in.Body.After}
	if in.Body.Since != nil {
		r.Since = *in.Body.Since
	}
	if (r.ID == "") == (in.Body.Since == nil) {
		return nil, snap.Invalid("a replay needs either a delivery or a time from which to send", "")
	}
	n, last, err := s.store.Replay(ctx, callOf(ctx).caller, id, r)
	if err != nil {
		return nil, err
	}
	return &body[api.ReplayResult]{api.ReplayResult{Queued: int64(n), More: n == store.MaxReplay, Next: last}}, nil
}
