package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"snap"
)

// An audit line is written in the transaction of the change it records, so
// that there is never one without the other.

// record adds a line to an organization's audit log. The caller, the time and
// the request's origin are filled in. It is the last statement of its
// transaction, because it holds the end of the organization's chain until then.
func (s *Store) record(ctx context.Context, tx *sql.Tx, orgID int64, c snap.Caller, e snap.AuditEntry) error {
	var prev string
	err := tx.QueryRowContext(ctx, `
		INSERT INTO audit_heads(org_id, seq, hash) VALUES($1, 1, '')
		ON CONFLICT(org_id) DO UPDATE SET seq = audit_heads.seq + 1 RETURNING seq, hash`, orgID).Scan(&e.Seq, &prev)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	e.At = time.UnixMilli(s.now().UnixMilli()).UTC()
	e.ActorOrg = c.Org.Slug
	if c.User != nil {
		e.Actor = c.User.Email
	}
	e.Credential = strings.TrimSpace(string(c.Credential.Kind) + " " + c.Credential.Name)
	origin := snap.OriginOf(ctx)
	e.Address, e.RequestID = origin.Address, origin.RequestID
	e.Hash = e.Sum(prev)
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := s.appendLine(ctx, tx, orgID, e, string(body)); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// appendLine writes a line, its hash as the end of the chain, and which webhooks
// are to be told of it. On PostgreSQL that is one statement: everybody else of
// the organization waits for the end of the chain meanwhile.
func (s *Store) appendLine(ctx context.Context, tx *sql.Tx, orgID int64, e snap.AuditEntry, body string) error {
	line := []any{orgID, e.Seq, e.At.UnixMilli(), string(e.Action), e.Actor, e.Snapshot, body, e.Hash}
	if s.dialect == postgres {
		_, err := tx.ExecContext(ctx,
			`WITH line AS (`+insertLine+`), head AS (UPDATE audit_heads SET hash = $8 WHERE org_id = $1) `+insertDeliveries, line...)
		return err
	}
	if _, err := tx.ExecContext(ctx, insertLine, line...); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE audit_heads SET hash = $2 WHERE org_id = $1`, orgID, e.Hash); err != nil {
		return err
	}
	if !slices.Contains(WebhookEvents(), e.Action) {
		return nil
	}
	_, err := tx.ExecContext(ctx, insertDeliveries, line[:4]...)
	return err
}

const insertLine = `INSERT INTO audit(org_id, seq, at, action, actor, snapshot, body, hash) VALUES($1, $2, $3, $4, $5, $6, $7, $8)`

// recordOn records what a caller did with a snapshot: in the log of the
// snapshot's organization and, when the caller is of another one, in theirs,
// without what only the owner may know.
func (s *Store) recordOn(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot, action snap.AuditAction,
	d snap.AuditDetail) error {
	d.Target = sn.Target
	e := snap.AuditEntry{Action: action, Snapshot: sn.ID, Detail: d}
	logs := []int64{sn.Org.ID}
	if c.Org.ID != 0 && c.Org.ID != sn.Org.ID {
		logs = append(logs, c.Org.ID)
		if logs[0] > logs[1] { // one order for all, so that no two wait for each other
			logs[0], logs[1] = logs[1], logs[0]
		}
	}
	for _, org := range logs {
		if err := s.record(ctx, tx, org, c, e); err != nil {
			return err
		}
	}
	return nil
}

// Note records something that a caller did with a snapshot and that changes
// nothing: a pull that started or ended, a share that was refused.
func (s *Store) Note(ctx context.Context, c snap.Caller, sn snap.Snapshot, action snap.AuditAction,
	d snap.AuditDetail) error {
	return s.tx(ctx, func(tx *sql.Tx) error { return s.recordOn(ctx, tx, c, sn, action, d) })
}

// AuditQuery chooses lines of an organization's audit log.
type AuditQuery struct {
	Snapshot, Actor string
	Action          snap.AuditAction
	Since, Until    time.Time // from, and before
	OldestFirst     bool
	Limit           int
	Cursor          string // Next of the page before
}

// AuditPage is one page of an audit log.
type AuditPage struct {
	Items []snap.AuditEntry
	Next  string
}

// Audit returns lines of the caller's organization's log. Whether the caller
// may read it is asked before (snap.ActAdminister).
func (s *Store) Audit(ctx context.Context, c snap.Caller, q AuditQuery) (AuditPage, error) {
	where, args := []string{`org_id = $1`}, []any{c.Org.ID}
	and := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+` $`+strconv.Itoa(len(args)))
	}
	if q.Snapshot != "" {
		and(`snapshot =`, q.Snapshot)
	}
	if q.Actor != "" {
		and(`actor =`, q.Actor)
	}
	if q.Action != "" {
		and(`action =`, string(q.Action))
	}
	if !q.Since.IsZero() {
		and(`at >=`, q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		and(`at <`, q.Until.UnixMilli())
	}
	order, beyond := `DESC`, `seq <`
	if q.OldestFirst {
		order, beyond = `ASC`, `seq >`
	}
	if q.Cursor != "" {
		seq, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil {
			return AuditPage{}, snap.Invalid("the cursor is not one of this listing", "begin again without a cursor")
		}
		and(beyond, seq)
	}
	items, err := collect(ctx, s,
		`SELECT body FROM audit WHERE `+strings.Join(where, ` AND `)+` ORDER BY seq `+order+` LIMIT $`+strconv.Itoa(len(args)+1),
		scanEntry, append(args, q.Limit+1)...)
	if err != nil || len(items) <= q.Limit {
		return AuditPage{Items: items}, err
	}
	items = items[:q.Limit]
	return AuditPage{Items: items, Next: strconv.FormatInt(items[q.Limit-1].Seq, 10)}, nil
}

func scanEntry(rows *sql.Rows) (e snap.AuditEntry, err error) {
	var body string
	if err := rows.Scan(&body); err != nil {
		return e, err
	}
	return entryOf(body)
}

func entryOf(body string) (e snap.AuditEntry, err error) {
	err = json.Unmarshal([]byte(body), &e)
	return e, err
}

// History returns everything the log tells of one snapshot and of the
// organization's users until a time, the oldest first: what it takes to say
// who could see the snapshot then.
func (s *Store) History(ctx context.Context, c snap.Caller, snapshotID string, until time.Time) ([]snap.AuditEntry,
	error) {
	return collect(ctx, s,
		`SELECT body FROM audit WHERE org_id = $1 AND (snapshot = $2 OR action = $3) AND at <= $4 ORDER BY seq`,
		scanEntry, c.Org.ID, snapshotID, string(snap.AuditUserChanged), until.UnixMilli())
}
