package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"snap"
)

// Channel is a standing rule: the newest snapshot of a target and type is shared with a group or,
// without a group, org-wide.
type Channel struct {
	ID        string    `json:"id"`
	Target    string    `json:"target"`
	Type      snap.Type `json:"type" enum:"snapshot,sanitized"`
	GroupID   string    `json:"group_id,omitempty" doc:"absent means org-wide"`
	GroupName string    `json:"group_name,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	// ExpectEvery is how often a snapshot is expected, in seconds; 0 means that none is expected.
	ExpectEvery int64 `json:"expect_every,omitempty" doc:"seconds after which the newest snapshot is overdue"`
}

// ChannelList is the body of GET /channels.
type ChannelList struct {
	Items []Channel `json:"items"`
}

// ChannelRequest creates a channel.
type ChannelRequest struct {
	Target  string    `json:"target" minLength:"1" maxLength:"100" example:"shop"`
	Type    snap.Type `json:"type,omitempty" enum:"snapshot,sanitized" default:"sanitized" example:"sanitized"`
	GroupID string    `json:"group_id,omitempty" maxLength:"512" example:"eng" doc:"absent means org-wide"`
	Now     bool      `json:"now,omitempty" doc:"also share the newest existing snapshot immediately"`
	// ExpectEvery is how often a snapshot is expected, in seconds: an hour to a year. 0 means that
	// none is expected; nil keeps the setting of an existing channel.
	ExpectEvery *int64 `json:"expect_every,omitempty" minimum:"0" maximum:"31536000" example:"93600"`
}

// RetentionRule says which snapshots of a target are kept: the last keep_last of each type, and
// those pushed in the last keep_days days. A snapshot that another organization can still pull is
// always kept.
type RetentionRule struct {
	Target   string `json:"target" minLength:"1" maxLength:"100" example:"shop"`
	KeepLast int    `json:"keep_last,omitempty" minimum:"0" maximum:"100000" example:"10"`
	KeepDays int    `json:"keep_days,omitempty" minimum:"0" maximum:"36500" example:"30"`
}

// RetentionList is the body of GET /retention.
type RetentionList struct {
	Items []RetentionRule `json:"items"`
}

// RetentionRun asks the service to apply the rules now or, with dry_run, only to report what they
// would delete.
type RetentionRun struct {
	DryRun bool `json:"dry_run,omitempty" doc:"delete nothing" example:"true"`
}

// RetentionResult lists the snapshots that were deleted, or would be: at most 200.
type RetentionResult struct {
	DryRun    bool       `json:"dry_run"`
	Snapshots []Snapshot `json:"snapshots"`
	More      bool       `json:"more" doc:"one call does not delete all of them; call again"`
}

// Webhook is an address that receives the organization's events. It is a URL or an e-mail address.
// Messages to a URL are signed as in the Standard Webhooks specification.
type Webhook struct {
	ID             string             `json:"id"`
	URL            string             `json:"url"`
	Events         []snap.AuditAction `json:"events"`
	Format         string             `json:"format" doc:"standard, slack, teams, discord or mail"`
	CreatedAt      time.Time          `json:"created_at"`
	CreatedBy      string             `json:"created_by,omitempty"`
	Waiting        int64              `json:"waiting" doc:"messages that are neither accepted nor given up on"`
	Failures       int                `json:"failures" doc:"number of failed attempts in a row"`
	PausedUntil    *time.Time         `json:"paused_until,omitempty" doc:"next attempt, after repeated failures"`
	DisabledAt     *time.Time         `json:"disabled_at,omitempty" doc:"since then nothing is sent; absent if enabled"`
	DisabledReason string             `json:"disabled_reason,omitempty"`
	OldSecretUntil *time.Time         `json:"old_secret_until,omitempty" doc:"until then, the old secret is also used"`
}

// WebhookList is the body of GET /webhooks.
type WebhookList struct {
	Items []Webhook `json:"items"`
}

// WebhookRequest creates a webhook. Its URL begins with https://, or is mailto: followed by an
// address.
type WebhookRequest struct {
	URL    string             `json:"url" minLength:"1" maxLength:"2000" example:"https://hooks.example/x"`
	Events []snap.AuditAction `json:"events,omitempty" doc:"absent means all" example:"[\"snapshot.pushed\"]"`
	Format string             `json:"format,omitempty" enum:"standard,slack,teams,discord,mail" default:"standard"`
}

// NewWebhook is a webhook with its signing secret, which is shown only once.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"signing secret: whsec_ followed by base64; empty for an e-mail address"`
}

// RotateRequest gives a webhook a new secret.
type RotateRequest struct {
	Overlap string `json:"overlap,omitempty" example:"24h" doc:"how long the old secret is also used; 24h when absent"`
}

// WebhookTest is the result of a test message.
type WebhookTest struct {
	OK           bool   `json:"ok"`
	Status       string `json:"status" doc:"response of the receiver, or the reason why there is none"`
	Milliseconds int64  `json:"milliseconds"`
}

// ReplayRequest sends messages of a webhook again: one delivery, or the messages recorded since a
// time.
type ReplayRequest struct {
	Delivery string     `json:"delivery,omitempty" maxLength:"200" doc:"ID of a delivery"`
	Since    *time.Time `json:"since,omitempty" example:"2026-01-01T00:00:00Z" doc:"resend given-up messages since"`
	All      bool       `json:"all,omitempty" doc:"with since: also send the messages that the receiver accepted"`
	After    int64      `json:"after,omitempty" doc:"with since: the previous response's next, to continue after it"`
}

// ReplayResult is how many messages wait to be sent again.
type ReplayResult struct {
	Queued int64 `json:"queued" doc:"number of messages that will be sent again"`
	More   bool  `json:"more" doc:"there may be more messages: set after to the value of next and repeat the request"`
	Next   int64 `json:"next,omitempty" doc:"position of the last message that will be sent again"`
}

// Delivery is one event that was delivered to a webhook or is still to be delivered.
type Delivery struct {
	ID        string           `json:"id"`
	Number    int64            `json:"number" doc:"counts the webhook's messages from 1; 0 if unknown"`
	Event     snap.AuditAction `json:"event"`
	Attempts  int              `json:"attempts"`
	Status    string           `json:"status" doc:"result of the last attempt"`
	CreatedAt time.Time        `json:"created_at"`
	NextAt    *time.Time       `json:"next_at,omitempty" doc:"time of the next attempt; absent if there will be none"`
}

// DeliveryList is the body of GET /webhooks/{id}/deliveries.
type DeliveryList struct {
	Items []Delivery `json:"items"`
}

// WebhookEvent is the body of a delivery.
type WebhookEvent struct {
	Type      snap.AuditAction `json:"type"`
	Timestamp time.Time        `json:"timestamp"`
	Number    int64            `json:"number,omitempty" doc:"counts the webhook's messages from 1; absent in tests"`
	Data      WebhookData      `json:"data"`
	Log       *WebhookLog      `json:"log,omitempty" doc:"absent in tests of a webhook"`
}

// WebhookLog gives the event's position in the organization's audit log. The checkpoint covers the
// line. A receiver that keeps the checkpoint can prove later that the log still holds the line.
type WebhookLog struct {
	Line       int64  `json:"line" doc:"number of the event's line"`
	Checkpoint string `json:"checkpoint" doc:"signed checkpoint of the log, as a note"`
}

// WebhookData describes an event: what happened, to which snapshot, and who did it.
type WebhookData struct {
	Snapshot     string           `json:"snapshot"`
	Organization string           `json:"organization" doc:"slug of the actor's organization"`
	Actor        string           `json:"actor,omitempty"`
	Detail       snap.AuditDetail `json:"detail"`
}

// Decline ends the share of a received snapshot with the caller's organization. Only the owners and
// admins of that organization may call it.
func (c *Client) Decline(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, snapshotPath(id, "/received"), nil, nil)
}

// Channels lists the organization's channels. Only owners and admins may call it and the methods
// below.
func (c *Client) Channels(ctx context.Context) ([]Channel, error) {
	list, err := call[ChannelList](ctx, c, http.MethodGet, "/channels", nil)
	return list.Items, err
}

// AddChannel creates a channel. confirmed states that a person agreed to share data that is not
// sanitized.
func (c *Client) AddChannel(ctx context.Context, r ChannelRequest, confirmed bool) (Channel, error) {
	return call[Channel](ctx, c, http.MethodPost, "/channels"+confirmQuery(confirmed), r)
}

// DeleteChannel deletes a channel and ends the shares it made.
func (c *Client) DeleteChannel(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/channels/"+url.PathEscape(id), nil, nil)
}

// Retention lists the organization's retention rules.
func (c *Client) Retention(ctx context.Context) ([]RetentionRule, error) {
	list, err := call[RetentionList](ctx, c, http.MethodGet, "/retention", nil)
	return list.Items, err
}

// SetRetention creates or changes a target's rule.
func (c *Client) SetRetention(ctx context.Context, r RetentionRule) (RetentionRule, error) {
	return call[RetentionRule](ctx, c, http.MethodPost, "/retention", r)
}

// DeleteRetention deletes a target's rule.
func (c *Client) DeleteRetention(ctx context.Context, target string) error {
	return c.do(ctx, http.MethodDelete, "/retention/"+url.PathEscape(target), nil, nil)
}

// RunRetention applies the rules now, or only reports what they would delete. If the result says
// that there is more, call it again.
func (c *Client) RunRetention(ctx context.Context, r RetentionRun) (RetentionResult, error) {
	return call[RetentionResult](ctx, c, http.MethodPost, "/retention/run", r)
}

// Webhooks lists the organization's webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]Webhook, error) {
	list, err := call[WebhookList](ctx, c, http.MethodGet, "/webhooks", nil)
	return list.Items, err
}

// AddWebhook creates a webhook. Only this response contains the webhook's secret.
func (c *Client) AddWebhook(ctx context.Context, r WebhookRequest) (NewWebhook, error) {
	return call[NewWebhook](ctx, c, http.MethodPost, "/webhooks", r)
}

// DeleteWebhook deletes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, webhookPath(id, ""), nil, nil)
}

// EnableWebhook enables a disabled or paused webhook, which then receives its waiting events.
func (c *Client) EnableWebhook(ctx context.Context, id string) (Webhook, error) {
	return call[Webhook](ctx, c, http.MethodPost, webhookPath(id, "/enable"), nil)
}

// RotateWebhook gives a webhook a new secret. Only this response contains it.
func (c *Client) RotateWebhook(ctx context.Context, id string, r RotateRequest) (NewWebhook, error) {
	return call[NewWebhook](ctx, c, http.MethodPost, webhookPath(id, "/rotate"), r)
}

// TestWebhook sends a test message to a webhook and returns the result.
func (c *Client) TestWebhook(ctx context.Context, id string) (WebhookTest, error) {
	return call[WebhookTest](ctx, c, http.MethodPost, webhookPath(id, "/test"), nil)
}

// ReplayWebhook sends messages of a webhook again.
func (c *Client) ReplayWebhook(ctx context.Context, id string, r ReplayRequest) (ReplayResult, error) {
	return call[ReplayResult](ctx, c, http.MethodPost, webhookPath(id, "/replay"), r)
}

func webhookPath(id, rest string) string { return "/webhooks/" + url.PathEscape(id) + rest }

// Deliveries lists the newest deliveries of a webhook.
func (c *Client) Deliveries(ctx context.Context, id string) ([]Delivery, error) {
	list, err := call[DeliveryList](ctx, c, http.MethodGet, webhookPath(id, "/deliveries"), nil)
	return list.Items, err
}
