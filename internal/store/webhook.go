package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"snap"
)

// Webhook is an address that an organization's events are sent to.
type Webhook struct {
	ID      int64
	OrgID   int64
	Slug    string             // of the organization
	URL     string             // https, or mailto: and an e-mail address
	Secrets [][]byte           // as stored: the newest and, during a rotation, the previous one; each signs messages
	Events  []snap.AuditAction // the events to send; never empty
	Format  string             // format of the messages; "" is snapcloud's own
	Created time.Time
	By      string // e-mail of its creator

	Waiting        int64     // messages that are neither accepted nor given up on
	Failures       int       // failed attempts in a row
	PausedUntil    time.Time // because of failures, nothing is sent before then; zero if not paused
	Disabled       time.Time // since when nothing is sent; zero if enabled
	DisabledWhy    string
	OldSecretUntil time.Time // until when the previous secret also signs; zero if there is none
}

// WebhookEvents returns the events that a webhook can report: those of the audit log that concern
// the life of a snapshot, shares that expire soon, requests for access, overdue snapshots, disabled
// webhooks, and people who left.
func WebhookEvents() []snap.AuditAction {
	return []snap.AuditAction{snap.AuditPushed, snap.AuditShared, snap.AuditUnshared, snap.AuditPulled,
		snap.AuditDeleted, snap.AuditShareExpires, snap.AuditAccessRequested, snap.AuditOverdue,
		snap.AuditUserLeft, snap.AuditWebhookDisabled}
}

// HookSecretSize is the size of a webhook's secret in bytes. A longer stored secret is encrypted.
const HookSecretSize = 32

// HookSecretName returns the name to which the encrypted secrets of an organization's webhooks are
// bound.
func HookSecretName(orgID int64) string { return fmt.Sprintf("webhook/%d", orgID) }

// MaxWebhooks is the maximum number of webhooks of an organization.
const MaxWebhooks = 20

// AddWebhook adds a webhook to the caller's organization. From w, it uses URL, Events, Format and
// the first secret.
func (s *Store) AddWebhook(ctx context.Context, c snap.Caller, w Webhook) (Webhook, error) {
	var id int64
	err := s.tx(ctx, func(tx *sql.Tx) error {
		var count int
		if err := s.lockOrg(ctx, tx, c.Org.ID); err != nil {
			return err
		}
		if err := tx.QueryRowContext(ctx,
			`SELECT count(*) FROM webhooks WHERE org_id = $1`, c.Org.ID).Scan(&count); err != nil {
			return err
		}
		if count >= MaxWebhooks {
			return snap.Invalid(fmt.Sprintf("the organization has %d webhooks, which is the maximum", count),
				"remove one first")
		}
		err := tx.QueryRowContext(ctx,
			`INSERT INTO webhooks(org_id, url, secret, events, created_at, created_by, format)
				VALUES($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
			c.Org.ID, w.URL, w.Secrets[0], joinWords(w.Events), s.now().UnixMilli(), userID(c), w.Format).Scan(&id)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditWebhookCreated,
			Detail: snap.AuditDetail{URL: w.URL}})
	})
	if err != nil {
		return Webhook{}, err
	}
	return one(s.webhooks(ctx, `WHERE w.id = $1`, id))
}

// Webhooks returns the webhooks of the caller's organization, the oldest first.
func (s *Store) Webhooks(ctx context.Context, c snap.Caller) ([]Webhook, error) {
	return s.webhooks(ctx, `WHERE w.org_id = $1 ORDER BY w.id`, c.Org.ID)
}

// Webhook returns a webhook of the caller's organization. It fails with code not_found if there is
// no such webhook.
func (s *Store) Webhook(ctx context.Context, c snap.Caller, id int64) (Webhook, error) {
	w, err := one(s.webhooks(ctx, `WHERE w.id = $1 AND w.org_id = $2`, id, c.Org.ID))
	return w, noRowsAs(err, errNoWebhook(id))
}

func (s *Store) webhooks(ctx context.Context, where string, args ...any) ([]Webhook, error) {
	return collect(ctx, s, `SELECT w.id, w.org_id, w.url, w.secret, w.events, w.created_at, coalesce(u.email, ''),
		(SELECT count(*) FROM deliveries d WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL), w.failures, w.next_at,
		w.disabled_at, w.disabled_why, w.old_secret, w.old_secret_until, w.format, o.slug
		FROM webhooks w JOIN orgs o ON o.id = w.org_id LEFT JOIN users u ON u.id = w.created_by
		`+where, s.scanWebhook, args...)
}

func (s *Store) scanWebhook(rows *sql.Rows) (w Webhook, err error) {
	var next, oldUntil int64
	var events string
	var secret, old []byte
	err = rows.Scan(&w.ID, &w.OrgID, &w.URL, &secret, &events, toTime(&w.Created), &w.By, &w.Waiting, &w.Failures,
		&next, toTime(&w.Disabled), &w.DisabledWhy, &old, &oldUntil, &w.Format, &w.Slug)
	w.Events, w.Secrets = splitWords[snap.AuditAction](events), [][]byte{secret}
	if now := s.now().UnixMilli(); oldUntil > now {
		w.Secrets, w.OldSecretUntil = append(w.Secrets, old), timeOrNever(oldUntil)
	}
	if w.Failures >= maxInRow {
		w.PausedUntil = timeOrNever(next)
	}
	return w, err
}

// DeleteWebhook removes a webhook of the caller's organization and all its deliveries. It fails
// with code not_found if there is no such webhook.
func (s *Store) DeleteWebhook(ctx context.Context, c snap.Caller, id int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		var d snap.AuditDetail
		err := tx.QueryRowContext(ctx,
			`DELETE FROM webhooks WHERE id = $1 AND org_id = $2 RETURNING url`, id, c.Org.ID).Scan(&d.URL)
		if err != nil {
			return noRowsAs(err, errNoWebhook(id))
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditWebhookDeleted, Detail: d})
	})
}

func errNoWebhook(id int64) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no webhook %d", id),
		Hint: "list the webhooks to see which exist"}
}

// insertDeliveries adds a message for each webhook of the organization $1 and each line of its
// audit log after $2, up to $3, whose action the webhook reports. numberDeliveries then records
// each webhook's last number. Messages for disabled webhooks are added too, and wait. due_at is 0,
// which is in the past for every replica, even if the clock of the replica that added the message
// is ahead.
const (
	insertDeliveries = `INSERT INTO deliveries(id, webhook_id, org_id, seq, due_at, created_at, number)
		SELECT 'msg_' || CAST(a.org_id AS text) || '_' || CAST(a.seq AS text) || '_' || CAST(w.id AS text), w.id,
			a.org_id, a.seq, 0, a.at, w.last_number + row_number() OVER (PARTITION BY w.id ORDER BY a.seq)
		FROM webhooks w JOIN audit a ON a.org_id = w.org_id AND a.seq > $2 AND a.seq <= $3
		WHERE w.org_id = $1 AND ' ' || w.events || ' ' LIKE '% ' || a.action || ' %'`
	numberDeliveries = `UPDATE webhooks SET last_number = (
			SELECT max(d.number) FROM deliveries d WHERE d.webhook_id = webhooks.id AND d.seq > $2 AND d.seq <= $3)
		WHERE org_id = $1 AND EXISTS(
			SELECT 1 FROM deliveries d WHERE d.webhook_id = webhooks.id AND d.seq > $2 AND d.seq <= $3)`
)

// Delivery is one event for one webhook.
type Delivery struct {
	ID       string // unique and the same at every attempt
	Number   int64  // counts the messages of the webhook from 1; 0 if an earlier release recorded it
	Event    snap.AuditEntry
	Attempts int // number of earlier attempts
	// Due is the time of the next attempt, or the end of the current attempt's lease. It is zero
	// when no attempt follows.
	Due     time.Time
	Status  string // result of the last attempt
	Created time.Time
	Tried   time.Time
}

func (s *Store) deliveries(ctx context.Context, where string, args ...any) ([]Delivery, error) {
	return collect(ctx, s,
		`SELECT d.id, d.attempts, d.due_at, d.status, d.created_at, d.tried_at, d.number, `+entryColumns+`
		FROM deliveries d JOIN audit a ON a.org_id = d.org_id AND a.seq = d.seq `+where,
		func(rows *sql.Rows) (d Delivery, err error) {
			var due sql.NullInt64
			d.Event, _, err = scanLine(rows, &d.ID, &d.Attempts, &due, &d.Status, toTime(&d.Created),
				toTime(&d.Tried), &d.Number)
			d.Due = timeOf(due)
			if due.Valid && due.Int64 == 0 {
				d.Due = d.Created
			}
			return d, err
		}, args...)
}

// Deliveries returns the newest deliveries of one of the organization's webhooks. No attempt
// follows while the webhook is disabled, or before the end of its pause. Deliveries fails with code
// not_found if the webhook does not exist.
func (s *Store) Deliveries(ctx context.Context, c snap.Caller, webhookID int64, limit int) ([]Delivery, error) {
	w, err := s.Webhook(ctx, c, webhookID)
	if err != nil {
		return nil, err
	}
	all, err := s.deliveries(ctx,
		`WHERE d.webhook_id = $1 AND d.org_id = $2 ORDER BY d.seq DESC LIMIT $3`, webhookID, c.Org.ID, limit)
	for i, d := range all {
		switch {
		case !w.Disabled.IsZero():
			all[i].Due = time.Time{}
		case !d.Due.IsZero() && d.Due.Before(w.PausedUntil):
			all[i].Due = w.PausedUntil
		}
	}
	return all, err
}
