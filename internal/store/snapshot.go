package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"snap"
)

// viewerArgs returns the parameters that identify the caller in a statement: $1 the principal, $2
// now, $3 the organization, $4 whether the caller is an admin.
func (s *Store) viewerArgs(c snap.Caller) []any {
	return []any{c.Principal(), s.now().UnixMilli(), c.Org.ID, flag(c.IsAdmin())}
}

// snapshotColumns are the columns of snapshots s and users u that [scanSnapshot] reads, before
// shared and received. Shares are counted only for callers who may manage them, and only for
// snapshots that may have some.
const snapshotColumns = `s.key, s.id, s.org_id,
  CASE WHEN s.org_id <> $3 THEN (SELECT o.slug FROM orgs o WHERE o.id = s.org_id) END,
  CASE WHEN s.org_id <> $3 THEN (SELECT o.name FROM orgs o WHERE o.id = s.org_id) END,
  u.id, u.email, u.name, s.target, s.name, s.type, s.engine, s.size, s.sha256, s.created_at,
  CASE WHEN s.org_id = $3 THEN s.description ELSE '' END, CASE WHEN s.org_id = $3 THEN s.tags ELSE '' END,
  CASE WHEN s.widened <> 0 AND ($4 <> 0 OR s.owner_id = $1) THEN (SELECT count(*) FROM grants g
      WHERE g.snapshot = s.key AND g.audience` + isGroup + ` AND ` + liveGrant + `) ELSE 0 END,
  CASE WHEN s.widened <> 0 AND ($4 <> 0 OR s.owner_id = $1) THEN (SELECT count(*) FROM grants g WHERE g.snapshot = s.key
      AND g.audience` + isRecipients + ` AND ` + liveGrant + `) ELSE 0 END`

// sharedHere and receivedHere look up when the org-wide share and the share with the caller's
// organization end. A listing usually gets these ends from the ranges that it merges. 0 means that
// a grant never ends, and NULL that there is no grant. These queries avoid EXISTS, for which
// PostgreSQL may build a hash table of all grants of the audience.
const (
	sharedHere = `(SELECT coalesce(g.expires_at, 0) FROM grants g
		WHERE g.audience = CAST($3 AS bigint)` + membersOf + ` AND g.snapshot = s.key AND ` + liveGrant + `)`
	receivedHere = `(SELECT coalesce(g.expires_at, 0) FROM grants g
		WHERE g.audience = CAST($3 AS bigint)` + recipientsOf + ` AND g.snapshot = s.key AND ` + liveGrant + `)`
)

// visible is snap.Visible in SQL for snapshot s: a live grant on it names one of the caller's
// audiences. The offsets keep PostgreSQL from converting the subqueries to joins, which would read
// all of the caller's audiences or all grants.
const visible = `EXISTS (SELECT 1 FROM grants g WHERE g.snapshot = s.key AND ` + liveGrant + ` AND EXISTS (
    SELECT 1 FROM membership m WHERE m.principal = $1 AND m.kind = g.audience` + kindOf + `
        AND m.audience = g.audience LIMIT 1 OFFSET 0)
  LIMIT 1 OFFSET 0)`

const selectOne = `SELECT ` + snapshotColumns + `, ` + sharedHere + `, ` + receivedHere + `
  FROM snapshots s LEFT JOIN users u ON u.id = s.owner_id AND s.org_id = $3 WHERE `

// selectByID reads the snapshot whose ID is $5 if the caller may see it. A hidden snapshot and an
// ID that never existed cost the same reads: one row of the index of IDs (the next one if the ID
// does not exist) and one grant for each of the caller's audiences. Only a visible snapshot costs
// more. If the ID does not exist, the key is that of the next row plus one. The last condition,
// which uses no index, rejects a row that happens to have that key.
const selectByID = selectOne + `s.key = (
  SELECT k.key FROM (SELECT CASE WHEN n.id = $5 THEN n.key ELSE n.key + 1 END AS key
    FROM snapshots n WHERE n.id >= $5 ORDER BY n.id LIMIT 1) k
  WHERE EXISTS (SELECT 1 FROM membership m WHERE m.principal = $1
    AND (SELECT count(*) FROM grants g WHERE g.audience = m.audience AND g.snapshot = k.key AND ` + liveGrant + `) > 0
  LIMIT 1 OFFSET 0)) AND s.id || '' = $5`

// scanSnapshot reads a row of snapshotColumns, shared and received for a caller.
func scanSnapshot(row scanner, c snap.Caller) (sn snap.Snapshot, err error) {
	var slug, orgName, email, name sql.NullString
	var tags string
	var owner, shared, received sql.NullInt64
	var created int64
	err = row.Scan(&sn.Key, &sn.ID, &sn.Org.ID, &slug, &orgName, &owner, &email, &name,
		&sn.Target, &sn.Name, &sn.Type, &sn.Engine, &sn.Size, &sn.SHA256, &created, &sn.Description, &tags, &sn.Groups,
		&sn.Orgs, &shared, &received)
	if err != nil {
		return snap.Snapshot{}, err
	}
	sn.Created = time.UnixMilli(created).UTC()
	if tags != "" {
		if err := json.Unmarshal([]byte(tags), &sn.Labels); err != nil {
			return snap.Snapshot{}, err
		}
	}
	sn.Org.Slug, sn.Org.Name = slug.String, orgName.String
	if sn.Org.ID == c.Org.ID {
		sn.Org = c.Org
	}
	if owner.Valid {
		sn.Owner = &snap.User{ID: owner.Int64, Email: email.String, Name: name.String}
	}
	switch {
	case received.Valid:
		sn.Shared, sn.Received, sn.Expires = true, true, timeOrNever(received.Int64)
	case shared.Valid:
		sn.Shared, sn.Expires = true, timeOrNever(shared.Int64)
	}
	sn.Outside = sn.Orgs > 0 && sn.Org.ID == c.Org.ID
	if snap.Allowed(c, snap.ActShare, sn) != nil {
		sn.Groups = 0
	}
	if snap.Allowed(c, snap.ActShareOrg, sn) != nil {
		sn.Orgs = 0
	}
	return sn, nil
}

// snapshots runs a statement that returns rows for scanSnapshot, and sorts the snapshots newest
// first.
func (s *Store) snapshots(ctx context.Context, c snap.Caller, text string, args ...any) ([]snap.Snapshot, error) {
	all, err := collect(ctx, s, text, func(rows *sql.Rows) (snap.Snapshot, error) {
		return scanSnapshot(rows, c)
	}, args...)
	newestFirst(all)
	return all, err
}

// Snapshot returns one snapshot by its public ID. It fails with snap.ErrNotFound if the snapshot
// does not exist or the caller is not allowed to see it. Both cases cost the same work.
func (s *Store) Snapshot(ctx context.Context, c snap.Caller, id string) (snap.Snapshot, error) {
	sn, err := scanSnapshot(s.row(ctx, selectByID, append(s.viewerArgs(c), id)...), c)
	return sn, hide(err)
}

// Bytes describes where a snapshot's bytes are, with their size and checksum.
type Bytes struct {
	Blob, SHA256 string
	Size         int64
}

// Bytes is like [Store.Snapshot], for requests that need only the bytes, such as each range of a
// download.
func (s *Store) Bytes(ctx context.Context, c snap.Caller, id string) (b Bytes, err error) {
	err = s.row(ctx, selectBytes, c.Principal(), s.now().UnixMilli(), id).Scan(&b.Blob, &b.SHA256, &b.Size)
	return b, hide(err)
}

const selectBytes = `SELECT s.blob, s.sha256, s.size FROM snapshots s WHERE s.id = $3 AND ` + visible

// Delete immediately deletes a snapshot and all grants on it. It returns the key of its bytes,
// which are now garbage, or "" while another snapshot or an upload uses the same bytes. It fails
// with snap.ErrNotFound if the caller can no longer see the snapshot.
func (s *Store) Delete(ctx context.Context, c snap.Caller, sn snap.Snapshot) (blobKey string, err error) {
	err = s.change(ctx, c, sn, func(tx *sql.Tx) error {
		blobKey, err = s.delete(ctx, tx, c, sn)
		return err
	})
	return blobKey, err
}

// delete is [Store.Delete] within a transaction of [Store.change].
func (s *Store) delete(ctx context.Context, tx *sql.Tx, c snap.Caller, sn snap.Snapshot) (blobKey string, err error) {
	if err := tx.QueryRowContext(ctx,
		`DELETE FROM snapshots WHERE key = $1 RETURNING blob`, sn.Key).Scan(&blobKey); err != nil {
		return "", err
	}
	if err := forgetWords(ctx, tx, sn); err != nil {
		return "", err
	}
	unused, err := discardUnused(ctx, tx, blobKey)
	if err != nil {
		return "", err
	}
	if !unused {
		blobKey = ""
	}
	return blobKey, s.recordOn(ctx, tx, c, sn, snap.AuditDeleted, snap.AuditDetail{Name: sn.Name, Bytes: sn.Size})
}

// change runs f in a transaction if the caller can still see the snapshot. Until the transaction
// ends, no other transaction can change the snapshot's shares.
func (s *Store) change(ctx context.Context, c snap.Caller, sn snap.Snapshot, f func(*sql.Tx) error) error {
	text := `SELECT s.key FROM snapshots s WHERE s.key = $3 AND ` + visible + s.rowLock(`FOR UPDATE OF s`)
	return s.tx(ctx, func(tx *sql.Tx) error {
		var key int64
		if err := tx.QueryRowContext(ctx, text, c.Principal(), s.now().UnixMilli(), sn.Key).Scan(&key); err != nil {
			return hide(err)
		}
		return f(tx)
	})
}

// hide converts a missing row to snap.ErrNotFound.
func hide(err error) error { return noRowsAs(err, snap.ErrNotFound) }
