package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"snap"
)

// Each webhook is a lane: its messages wait in the order of the audit log, and one replica at a
// time sends them. A lane that hangs or fails does not delay the others.

// maxInRow is the number of failures in a row at which a lane pauses. The lane then tries one
// message at a time and pauses longer after each failure, from pauseFirst to pauseLongest.
const (
	maxInRow     = 5
	pauseFirst   = 30 * time.Second
	pauseLongest = 30 * time.Minute
)

// KeepDeliveries is how long a message of a webhook is kept, sent or not.
const KeepDeliveries = 30 * 24 * time.Hour

// WaitingLane is a webhook that has messages to be sent now.
type WaitingLane struct {
	Webhook, Org int64
	until        int64 // value of lane_until when the row was read
}

// Lanes returns the webhooks that have messages to be sent now and to which no replica is sending.
// The webhook that has waited longest for its turn comes first. Webhooks of closed organizations
// wait.
func (s *Store) Lanes(ctx context.Context) ([]WaitingLane, error) {
	return collect(ctx, s, `SELECT w.id, w.org_id, w.lane_until FROM webhooks w
		JOIN orgs o ON o.id = w.org_id AND o.closed = 0
		WHERE w.lane_until <= $1 AND w.next_at <= $1 AND w.disabled_at IS NULL
		AND EXISTS(SELECT 1 FROM deliveries d WHERE d.webhook_id = w.id AND d.due_at <= $1)
		ORDER BY w.lane_until, w.id`,
		func(rows *sql.Rows) (l WaitingLane, err error) {
			err = rows.Scan(&l.Webhook, &l.Org, &l.until)
			return l, err
		}, s.now().UnixMilli())
}

// Lane is a lease on a webhook: the right to send its messages until a certain time. A lease ends
// later than every earlier lease, so its end identifies its holder.
type Lane struct {
	Webhook  Webhook
	Until    time.Time
	Messages []Delivery // in the order in which they are to be sent
}

// laneTimeout limits how long it may take to claim a lane, and to release it after a failure.
const laneTimeout = 10 * time.Second

// ClaimLane gives a lane to the caller, with at most limit of its messages. It returns false if
// another replica has the lane, or if the webhook was disabled or deleted in the meantime. If the
// caller's replica dies, the messages are due again when the lease ends, so each message is sent at
// least once. If ClaimLane fails, for example because the service stops in the meantime, it
// releases the lane.
func (s *Store) ClaimLane(ctx context.Context, w WaitingLane, lease time.Duration, limit int) (l Lane, held bool,
	err error) {
	now := s.now()
	defer func() {
		if err == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), laneTimeout)
		defer cancel()
		l.Webhook.ID = w.Webhook
		err = errors.Join(err, s.ReleaseLane(ctx, l))
	}()
	l.Until = time.UnixMilli(now.Add(lease).UnixMilli()).UTC()
	var ids []string
	// Stopping the service does not interrupt this transaction. Otherwise the database could still
	// carry out an abandoned commit after the lane was released.
	claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), laneTimeout)
	defer cancel()
	err = s.tx(claiming, func(tx *sql.Tx) error {
		var failures int
		err := tx.QueryRowContext(claiming, `UPDATE webhooks SET lane_until = $3
			WHERE id = $1 AND lane_until = $2 AND disabled_at IS NULL RETURNING failures`,
			w.Webhook, w.until, l.Until.UnixMilli()).Scan(&failures)
		if errors.Is(err, sql.ErrNoRows) {
			held = false
			return nil
		}
		if err != nil {
			return err
		}
		held = true
		if failures >= maxInRow {
			limit = 1
		}
		ids, err = txCollect(claiming, tx, `UPDATE deliveries SET due_at = $3 WHERE due_at <= $2 AND id IN (
			SELECT id FROM deliveries WHERE webhook_id = $1 AND due_at <= $2 ORDER BY seq LIMIT $4) RETURNING id`,
			scanOne[string], w.Webhook, now.UnixMilli(), l.Until.UnixMilli(), limit)
		return err
	})
	if err != nil || !held {
		return l, false, err
	}
	return s.fill(ctx, l, w.Webhook, ids)
}

// fill reads the webhook and the messages of a lane.
func (s *Store) fill(ctx context.Context, l Lane, webhook int64, ids []string) (_ Lane, held bool, err error) {
	l.Webhook, err = one(s.webhooks(ctx, `WHERE w.id = $1`, webhook))
	if err != nil {
		return l, false, noRowsAs(err, nil) // the webhook may have been deleted in the meantime
	}
	for _, id := range ids {
		d, err := one(s.deliveries(ctx, `WHERE d.id = $1`, id))
		switch {
		case errors.Is(err, sql.ErrNoRows), snap.CodeOf(err) == snap.CodeConflict:
			if _, err := s.Sent(ctx, l, Delivery{ID: id}, Outcome{Status: statusNoLine}); err != nil {
				return l, false, err
			}
		case err != nil:
			return l, false, err
		default:
			l.Messages = append(l.Messages, d)
		}
	}
	slices.SortFunc(l.Messages, func(a, b Delivery) int { return cmp.Compare(a.Event.Seq, b.Event.Seq) })
	return l, true, nil
}

// statusNoLine is the status of a message whose line of the audit log is altered or gone.
const statusNoLine = "not sent: its line of the audit log was altered"

// Outcome is the result of an attempt to send a message.
type Outcome struct {
	Status string
	OK     bool
	// Gone is set when the receiver says that it wants no more messages.
	Gone bool
	// Next is when to try again after a failure; zero means that the message is given up.
	Next time.Time
}

// Sent records the result of an attempt to send a message of a lane. It returns false, and writes
// nothing, if the lease has ended and another replica has the message: the new holder's result
// counts. Sent disables the webhook when the receiver is gone, or when a message is given up and
// the receiver has accepted nothing since that message was recorded. The audit log gets a line when
// the webhook is disabled.
func (s *Store) Sent(ctx context.Context, l Lane, d Delivery, o Outcome) (held bool, err error) {
	next := o.Next
	if o.Gone {
		next = time.UnixMilli(0) // sent once somebody enables the webhook
	}
	err = s.tx(ctx, func(tx *sql.Tx) error {
		held, err = changed(tx.ExecContext(ctx, `UPDATE deliveries SET attempts = attempts + 1, status = $2,
			due_at = $3, tried_at = $4 WHERE id = $1 AND due_at = $5`,
			d.ID, o.Status, millis(next), s.now().UnixMilli(), l.Until.UnixMilli()))
		if err != nil || !held || o.Status == statusNoLine {
			return err
		}
		return s.recordAttempt(ctx, tx, l.Webhook, d, o)
	})
	return held, err
}

// recordAttempt changes the state of a webhook after an attempt.
func (s *Store) recordAttempt(ctx context.Context, tx *sql.Tx, w Webhook, d Delivery, o Outcome) error {
	now := s.now()
	if o.OK {
		_, err := tx.ExecContext(ctx, `UPDATE webhooks SET failures = 0, next_at = 0, ok_at = $2 WHERE id = $1`,
			w.ID, now.UnixMilli())
		return err
	}
	var failures int
	var accepted int64
	if err := tx.QueryRowContext(ctx, `UPDATE webhooks SET failures = failures + 1 WHERE id = $1
		RETURNING failures, ok_at`, w.ID).Scan(&failures, &accepted); err != nil {
		return err
	}
	switch {
	case o.Gone:
		return s.disable(ctx, tx, w, "the receiver answered 410 Gone")
	case o.Next.IsZero() && accepted < d.Created.UnixMilli():
		return s.disable(ctx, tx, w, "no message was accepted for days")
	case failures < maxInRow:
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE webhooks SET next_at = $2 WHERE id = $1`, w.ID,
		now.Add(pauseAfter(failures)).UnixMilli())
	return err
}

// pauseAfter returns how long a lane pauses after this many failures in a row.
func pauseAfter(failures int) time.Duration {
	return min(pauseFirst<<min(failures-maxInRow, 10), pauseLongest)
}

func (s *Store) disable(ctx context.Context, tx *sql.Tx, w Webhook, why string) error {
	if _, err := tx.ExecContext(ctx, `UPDATE webhooks SET disabled_at = $2, disabled_why = $3
		WHERE id = $1`, w.ID, s.now().UnixMilli(), why); err != nil {
		return err
	}
	c, err := s.serviceCaller(ctx, w.OrgID, snap.PartWebhooks)
	if err != nil {
		return err
	}
	return s.record(ctx, tx, w.OrgID, c, snap.AuditEntry{Action: snap.AuditWebhookDisabled,
		Detail: snap.AuditDetail{Webhook: w.ID, Reason: why}})
}

// ReleaseLane gives a lane back before its lease ends. Messages that were not tried are due again
// immediately.
func (s *Store) ReleaseLane(ctx context.Context, l Lane) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE deliveries SET due_at = 0 WHERE webhook_id = $1 AND due_at = $2`,
			l.Webhook.ID, l.Until.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE webhooks SET lane_until = $3 WHERE id = $1 AND lane_until = $2`,
			l.Webhook.ID, l.Until.UnixMilli(), s.now().UnixMilli())
		return err
	})
}

// EnableWebhook enables a webhook of the caller's organization again. Messages that were recorded
// while it was disabled are due immediately. EnableWebhook fails with code not_found if there is no
// such webhook.
func (s *Store) EnableWebhook(ctx context.Context, c snap.Caller, id int64) (Webhook, error) {
	return s.changeWebhook(ctx, c, id, snap.AuditWebhookEnabled,
		`disabled_at = NULL, disabled_why = '', failures = 0, next_at = 0`)
}

// RotateSecret gives a webhook of the caller's organization a new secret. The previous secret also
// signs until the given time. RotateSecret fails with code not_found if there is no such webhook.
func (s *Store) RotateSecret(ctx context.Context, c snap.Caller, id int64, secret []byte, until time.Time) (Webhook,
	error) {
	return s.changeWebhook(ctx, c, id, snap.AuditWebhookRotated,
		`old_secret = secret, old_secret_until = $4, secret = $3`, secret, until.UnixMilli())
}

// changeWebhook sets columns of a webhook and records the change. The values are $3 and up.
func (s *Store) changeWebhook(ctx context.Context, c snap.Caller, id int64, action snap.AuditAction, set string,
	values ...any) (Webhook, error) {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		d := snap.AuditDetail{Webhook: id}
		err := tx.QueryRowContext(ctx, `UPDATE webhooks SET `+set+` WHERE id = $1 AND org_id = $2 RETURNING url`,
			append([]any{id, c.Org.ID}, values...)...).Scan(&d.URL)
		if err != nil {
			return noRowsAs(err, errNoWebhook(id))
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: action, Detail: d})
	})
	if err != nil {
		return Webhook{}, err
	}
	return s.Webhook(ctx, c, id)
}

// Replay says which messages to send again: the message with this ID, or the messages recorded
// since a time and after the position that the previous call of [Store.Replay] returned. Accepted
// messages are sent again only if All is set or the ID is given.
type Replay struct {
	ID    string
	Since time.Time
	All   bool
	After int64
}

// MaxReplay is the maximum number of messages that one call of [Store.Replay] sends again.
const MaxReplay = 1000

// Replay makes messages of a webhook of the caller's organization due again, the oldest first. It
// returns how many, and the position of the last one. Messages that are already waiting do not
// change. Replay fails with code not_found if there is no such webhook or message.
func (s *Store) Replay(ctx context.Context, c snap.Caller, webhook int64, r Replay) (n int, last int64, err error) {
	if _, err := s.Webhook(ctx, c, webhook); err != nil {
		return 0, 0, err
	}
	condition, args := `created_at >= $4 AND ($5 = 1 OR status NOT LIKE 'answered 2__') AND seq > $6`,
		[]any{webhook, c.Org.ID, MaxReplay, r.Since.UnixMilli(), flag(r.All), r.After}
	if r.ID != "" {
		condition, args = `id = $4`, []any{webhook, c.Org.ID, MaxReplay, r.ID}
		_, err := one(s.deliveries(ctx, `WHERE d.id = $1 AND d.webhook_id = $2 AND d.org_id = $3`, r.ID, webhook,
			c.Org.ID))
		if err != nil {
			return 0, 0, noRowsAs(err, &snap.Error{Code: snap.CodeNotFound,
				Detail: "the webhook has no message " + r.ID, Hint: "list its deliveries to see which exist"})
		}
	}
	var queued []int64
	err = s.tx(ctx, func(tx *sql.Tx) (err error) {
		queued, err = txCollect(ctx, tx, `UPDATE deliveries SET due_at = 0, attempts = 0
			WHERE due_at IS NULL AND id IN (SELECT id FROM deliveries
				WHERE webhook_id = $1 AND org_id = $2 AND due_at IS NULL AND `+condition+` ORDER BY seq LIMIT $3)
			RETURNING seq`, scanOne[int64], args...)
		return err
	})
	if err != nil || len(queued) == 0 {
		return 0, 0, err
	}
	return len(queued), slices.Max(queued), nil
}

// Backlog counts the messages that wait to be sent to all webhooks of the service.
type Backlog struct {
	Messages int64            // for webhooks that are not disabled
	Oldest   time.Time        // when the oldest of them was recorded; zero if there is none
	Webhooks map[string]int64 // number of webhooks in each state
}

// States of webhooks, as [Backlog] counts them.
const (
	WebhookOK       = "ok"
	WebhookPaused   = "paused"
	WebhookDisabled = "disabled"
)

// Backlog counts the messages that wait to be sent.
func (s *Store) Backlog(ctx context.Context) (b Backlog, err error) {
	if err := s.row(ctx, `SELECT count(*), min(d.created_at) FROM deliveries d
		JOIN webhooks w ON w.id = d.webhook_id AND w.disabled_at IS NULL WHERE d.due_at IS NOT NULL`).
		Scan(&b.Messages, toTime(&b.Oldest)); err != nil {
		return b, err
	}
	var all, paused, disabled int64
	err = s.row(ctx, `SELECT count(*), count(CASE WHEN disabled_at IS NULL AND failures >= $1 THEN 1 END),
		count(disabled_at) FROM webhooks`, maxInRow).Scan(&all, &paused, &disabled)
	b.Webhooks = map[string]int64{WebhookOK: all - paused - disabled, WebhookPaused: paused, WebhookDisabled: disabled}
	return b, err
}
