package console

import (
	"slices"

	"snap"
	"snap/api"
)

// webhooksPage is the data of webhooks.html: all webhooks or, if Hook is set, the deliveries of
// that webhook.
type webhooksPage struct {
	layout
	Hooks      []api.Webhook
	Hook       *api.Webhook
	Deliveries []api.Delivery
	Secret     string // of the webhook that was just created
	Formats    []string
	Form       form
}

func (s *Server) webhooks(v *visit) error { return s.showWebhooks(v, "") }

func (s *Server) showWebhooks(v *visit, secret string) error {
	data := webhooksPage{layout: s.layout(v), Secret: secret, Form: v.form("url", "format"),
		Formats: []string{"standard", "slack", "teams", "discord", "mail"}}
	if secret != "" {
		data.Form = nil
	}
	hooks, err := v.api.Webhooks(v.r.Context())
	if err != nil {
		return err
	}
	id := v.query("id")
	if id == "" {
		data.Hooks = hooks
		return s.write(v, "webhooks.html", data)
	}
	i := slices.IndexFunc(hooks, func(h api.Webhook) bool { return h.ID == id })
	if i < 0 {
		return errNoPage
	}
	data.Hook = &hooks[i]
	if data.Deliveries, err = v.api.Deliveries(v.r.Context(), id); err != nil {
		return err
	}
	return s.write(v, "webhooks.html", data)
}

// changeWebhooks creates, deletes, enables or tests a webhook, or sends a message again.
func (s *Server) changeWebhooks(v *visit) (string, error) {
	ctx, id := v.r.Context(), v.field("id")
	switch v.field("do") {
	case "create":
		hook, err := v.api.AddWebhook(ctx, api.WebhookRequest{URL: v.field("url"), Format: v.field("format")})
		if err != nil {
			return "", err
		}
		return "", s.showWebhooks(v, hook.Secret)
	case "delete":
		return "no-webhook", v.api.DeleteWebhook(ctx, id)
	case "enable":
		_, err := v.api.EnableWebhook(ctx, id)
		return "enabled", err
	case "resend":
		_, err := v.api.ReplayWebhook(ctx, id, api.ReplayRequest{Delivery: v.field("delivery")})
		return "resent", err
	case "test":
		result, err := v.api.TestWebhook(ctx, id)
		if err == nil && !result.OK {
			return "test-failed", nil
		}
		return "test-ok", err
	}
	return "", snap.Invalid("the form does not say what to do", "reload the page")
}
