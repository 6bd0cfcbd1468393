package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"snap"
)

// Webhook is an address that an organization's events are sent to.
type Webhook struct {
	ID      int64
	OrgID   int64
	URL     string
	Secret  []byte             // signs every delivery; shown once, to who made it
	Events  []snap.AuditAction // which; never empty
	Created time.Time
	By      string // e-mail of who made it
}

// WebhookEvents are the events a webhook can tell of: those of the audit log
// that concern the life of a snapshot, and people who left.
func WebhookEvents() []snap.AuditAction {
	return []snap.AuditAction{snap.AuditPushed, snap.AuditShared, snap.AuditUnshared, snap.AuditPulled,
		snap.AuditDeleted, snap.AuditUserLeft}
}

// MaxWebhooks is how many webhooks an organization may have.
const MaxWebhooks = 20

// AddWebhook adds a webhook to the caller's organization. Of w it takes URL,
// Secret and Events.
func (s *Store) AddWebhook(ctx context.Context, c snap.Caller, w Webhook) (Webhook, error) {
	var id int64
	err := s.tx(ctx, func(tx *sql.Tx) error {
		var have int
		if err := tx.QueryRowContext(ctx,
			`SELECT count(*) FROM webhooks WHERE org_id = $1`, c.Org.ID).Scan(&have); err != nil {
			return err
		}
		if have >= MaxWebhooks {
			return snap.Invalid(fmt.Sprintf("the organization has %d webhooks; more are not allowed", have),
				"delete one first")
		}
		err := tx.QueryRowContext(ctx,
			`INSERT INTO webhooks(org_id, url, secret, events, created_at, created_by) VALUES($1, $2, $3, $4, $5, $6) RETURNING id`,
			c.Org.ID, w.URL, w.Secret, joinActions(w.Events), s.now().UnixMilli(), userID(c)).Scan(&id)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditWebhookMade,
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

func (s *Store) webhooks(ctx context.Context, where string, args ...any) ([]Webhook, error) {
	return collect(ctx, s, `SELECT w.id, w.org_id, w.url, w.secret, w.events, w.created_at, coalesce(u.email, '')
		FROM webhooks w LEFT JOIN users u ON u.id = w.created_by `+where,
		func(rows *sql.Rows) (w Webhook, err error) {
			var created int64
			var events string
			err = rows.Scan(&w.ID, &w.OrgID, &w.URL, &w.Secret, &events, &created, &w.By)
			w.Created = time.UnixMilli(created).UTC()
			for _, name := range strings.Fields(events) {
				w.Events = append(w.Events, snap.AuditAction(name))
			}
			return w, err
		}, args...)
}

// DeleteWebhook removes a webhook of the caller's organization, with what was
// still to be delivered to it. It fails with code not_found.
func (s *Store) DeleteWebhook(ctx context.Context, c snap.Caller, id int64) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		var d snap.AuditDetail
		err := tx.QueryRowContext(ctx,
			`DELETE FROM webhooks WHERE id = $1 AND org_id = $2 RETURNING url`, id, c.Org.ID).Scan(&d.URL)
		if errors.Is(err, sql.ErrNoRows) {
			return errNoWebhook(id)
		}
		if err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditWebhookGone, Detail: d})
	})
}

func errNoWebhook(id int64) error {
	return &snap.Error{Code: snap.CodeNotFound, Detail: fmt.Sprintf("there is no webhook %d", id),
		Hint: "list the webhooks to see which exist"}
}

// insertDeliveries notes that the organization's webhooks are to be told of the
// lines after $2, up to $3, of the organization $1.
const insertDeliveries = `INSERT INTO deliveries(id, webhook_id, org_id, seq, due_at, created_at)
	SELECT 'msg_' || CAST(a.org_id AS text) || '_' || CAST(a.seq AS text) || '_' || CAST(w.id AS text), w.id, a.org_id, a.seq, a.at, a.at
	FROM webhooks w JOIN audit a ON a.org_id = w.org_id AND a.seq > $2 AND a.seq <= $3
	WHERE w.org_id = $1 AND ' ' || w.events || ' ' LIKE '% ' || a.action || ' %'`

// Delivery is one event that is to be sent to one webhook.
type Delivery struct {
	ID        string // unique and the same at every attempt
	WebhookID int64
	Event     snap.AuditEntry
	Attempts  int // made before
	// of the next attempt, or while one is made the end of its lease; zero when answered or given up
	Due     time.Time
	Status  string // what came of the last attempt
	Created time.Time
	Tried   time.Time
}

// Due returns at most limit deliveries whose time has come, with their
// webhooks, but for those of closed organizations, and keeps them from every other replica for the lease. One whose
// replica dies is due again when the lease ends, so an event is delivered at
// least once. The end of a lease is later than that of each before it, so it
// tells its holder from those who had the delivery earlier ([Store.Delivered]).
func (s *Store) Due(ctx context.Context, lease time.Duration, limit int) ([]Delivery, map[int64]Webhook, error) {
	now := s.now()
	until := now.Add(lease).UnixMilli()
	lock := ``
	if s.dialect == postgres {
		lock = ` FOR UPDATE SKIP LOCKED`
	}
	var ids []string
	err := s.tx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `UPDATE deliveries SET due_at = $1 WHERE id IN (
			SELECT id FROM deliveries WHERE due_at <= $2 AND org_id NOT IN (SELECT id FROM orgs WHERE closed = 1) ORDER BY due_at LIMIT $3`+lock+`) RETURNING id`,
			until, now.UnixMilli(), limit)
		if err != nil {
			return err
		}
		ids, err = drain(rows, scanOne[string])
		return err
	})
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	var out []Delivery
	hooks := map[int64]Webhook{}
	for _, id := range ids {
		d, err := one(s.deliveries(ctx, `WHERE d.id = $1 AND d.due_at = $2`, id, until))
		if errors.Is(err, sql.ErrNoRows) {
			continue // the webhook was deleted, or the lease has ended, meanwhile
		}
		if snap.CodeOf(err) == snap.CodeConflict {
			continue // the line was altered: it is not sent
		}
		if err != nil {
			return nil, nil, err
		}
		if _, known := hooks[d.WebhookID]; !known {
			if hooks[d.WebhookID], err = one(s.webhooks(ctx, `WHERE w.id = $1`, d.WebhookID)); err != nil {
				return nil, nil, err
			}
		}
		out = append(out, d)
	}
	return out, hooks, nil
}

func (s *Store) deliveries(ctx context.Context, where string, args ...any) ([]Delivery, error) {
	return collect(ctx, s,
		`SELECT d.id, d.webhook_id, d.attempts, d.due_at, d.status, d.created_at, d.tried_at, `+entryColumns+`
		FROM deliveries d JOIN audit a ON a.org_id = d.org_id AND a.seq = d.seq `+where,
		func(rows *sql.Rows) (d Delivery, err error) {
			var created int64
			var due, tried sql.NullInt64
			d.Event, _, err = scanLine(rows, &d.ID, &d.WebhookID, &d.Attempts, &due, &d.Status, &created, &tried)
			d.Due, d.Created, d.Tried = timeOf(due), time.UnixMilli(created).UTC(), timeOf(tried)
			return d, err
		}, args...)
}

// Deliveries returns the newest deliveries of one of the organization's
// webhooks. It fails with code not_found when that does not exist.
func (s *Store) Deliveries(ctx context.Context, c snap.Caller, webhookID int64, limit int) ([]Delivery, error) {
	if _, err := one(s.webhooks(ctx, `WHERE w.id = $1 AND w.org_id = $2`, webhookID, c.Org.ID)); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil, errNoWebhook(webhookID)
		}
		return nil, err
	}
	return s.deliveries(ctx,
		`WHERE d.webhook_id = $1 AND d.org_id = $2 ORDER BY d.seq DESC LIMIT $3`, webhookID, c.Org.ID, limit)
}

// Delivered records the result of an attempt at a delivery that [Store.Due] returned; a zero next
// ends the delivery. If the lease has ended and another replica has taken it, Delivered writes
// nothing and returns false: the new holder's result counts.
func (s *Store) Delivered(ctx context.Context, d Delivery, status string, next time.Time) (held bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx,
			`UPDATE deliveries SET attempts = attempts + 1, status = $2, due_at = $3, tried_at = $4 WHERE id = $1 AND due_at = $5`,
			d.ID, status, millis(next), s.now().UnixMilli(), millis(d.Due))
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		held = n > 0
		return err
	})
	return held, err
}

func joinActions(all []snap.AuditAction) string {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = string(a)
	}
	return strings.Join(names, " ")
}
