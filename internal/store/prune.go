package store

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"snap"
)

// Pruned is how many rows of each kind a run of [Store.Prune] deleted.
type Pruned struct{ Accounts, Groups int }

// Prune deletes unused accounts and groups of an open organization, at most limit of each.
//
// An account is deleted if its person left before the given time and nothing refers to the account.
// A person has left when the identity provider removed them, or the configuration no longer lists
// them. A person whom the operator disabled has not left: their account keeps them from signing in
// again. The audit log keeps its lines about the account, with its ID and e-mail, and gets a line
// about the deletion.
//
// A group is deleted if nobody is in it, nothing is shared with it, no channel names it and SCIM
// does not report it. It appears again when an identity provider names it.
func (s *Store) Prune(ctx context.Context, orgID int64, before time.Time, limit int) (n Pruned, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		n = Pruned{}
		open, err := s.lockOpen(ctx, tx, orgID)
		if err != nil || !open {
			return err
		}
		if n.Accounts, err = s.pruneAccounts(ctx, tx, orgID, before, limit); err != nil {
			return err
		}
		n.Groups, err = s.pruneGroups(ctx, tx, orgID, limit)
		return err
	})
	return n, err
}

// lockOpen reports whether an organization is open. Until the transaction ends, nobody signs in to
// it and no report of its identity provider is applied.
func (s *Store) lockOpen(ctx context.Context, tx *sql.Tx, orgID int64) (open bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT closed = 0 FROM orgs WHERE id = $1`+s.rowLock(`FOR NO KEY UPDATE`), orgID).
		Scan(&open)
	return open, err
}

// leftBefore selects accounts u of the organization $1 whose people left before the time $2 and to
// which nothing refers: no snapshot, upload, share, session, key, channel, webhook or login.
const leftBefore = `u.org_id = $1 AND (u.away = 1 OR u.unlisted = 1) AND u.disabled = 1
	AND u.signed_out_at > 0 AND u.signed_out_at <= $2 AND coalesce(u.groups_as_of, 0) <= $2
	AND NOT EXISTS(SELECT 1 FROM snapshots x WHERE x.owner_id = u.id)
	AND NOT EXISTS(SELECT 1 FROM uploads x WHERE x.owner_id = u.id)
	AND NOT EXISTS(SELECT 1 FROM grants x WHERE x.created_by = u.id)
	AND NOT EXISTS(SELECT 1 FROM sessions x WHERE x.user_id = u.id)
	AND NOT EXISTS(SELECT 1 FROM api_keys x WHERE x.user_id = u.id OR x.created_by = u.id)
	AND NOT EXISTS(SELECT 1 FROM channels x WHERE x.created_by = u.id)
	AND NOT EXISTS(SELECT 1 FROM webhooks x WHERE x.created_by = u.id)
	AND NOT EXISTS(SELECT 1 FROM device_grants x WHERE x.user_id = u.id)`

func (s *Store) pruneAccounts(ctx context.Context, tx *sql.Tx, orgID int64, before time.Time, limit int) (int, error) {
	// Earlier releases did not record when the configuration stopped listing somebody.
	if _, err := tx.ExecContext(ctx, `UPDATE users SET signed_out_at = $2
		WHERE org_id = $1 AND unlisted = 1 AND signed_out_at = 0`, orgID, s.now().UnixMilli()); err != nil {
		return 0, err
	}
	ids, err := txCollect(ctx, tx, `SELECT u.id FROM users u WHERE `+leftBefore+`
		ORDER BY u.signed_out_at, u.id LIMIT $3`, scanOne[int64], orgID, before.UnixMilli(), limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	c, err := s.serviceCaller(ctx, orgID, snap.PartRetention)
	if err != nil {
		return 0, err
	}
	lines := make([]snap.AuditEntry, 0, len(ids))
	for _, id := range ids {
		d, _, err := s.userDetail(ctx, tx, `u.id = $1`, id)
		if err != nil {
			return 0, err
		}
		d.Groups = nil
		lines = append(lines, snap.AuditEntry{Action: snap.AuditUserPruned, Detail: d})
	}
	if err := s.recordAll(ctx, tx, c, lines); err != nil {
		return 0, err
	}
	ofAccounts := ` IN (SELECT v FROM ` + s.each("$1") + ` AS e)`
	return len(ids), deleteAll(ctx, tx, jsonArray(ids),
		`DELETE FROM membership WHERE principal`+ofAccounts,
		`DELETE FROM sign_ins WHERE user_id`+ofAccounts,
		`DELETE FROM notices WHERE user_id`+ofAccounts,
		`DELETE FROM words WHERE kind = `+strconv.Itoa(wordsOfOwner)+` AND id`+ofAccounts,
		`DELETE FROM users WHERE id`+ofAccounts,
		`DELETE FROM principals WHERE id`+ofAccounts)
}

// unusedGroup selects groups g that have no members and to which nothing refers.
const unusedGroup = `NOT EXISTS(SELECT 1 FROM membership m WHERE m.audience = g.id` + groupOf + `)
	AND NOT EXISTS(SELECT 1 FROM grants x WHERE x.audience = g.id` + groupOf + `)
	AND NOT EXISTS(SELECT 1 FROM channels x WHERE x.group_id = g.id)
	AND NOT EXISTS(SELECT 1 FROM scim_groups x WHERE x.group_id = g.id)`

// pruneGroups deletes unused groups. It locks them and then checks again that they are unused,
// because a share with one of them may have been committed since the first check.
func (s *Store) pruneGroups(ctx context.Context, tx *sql.Tx, orgID int64, limit int) (int, error) {
	ids, err := txCollect(ctx, tx, `SELECT g.id FROM groups g WHERE g.org_id = $1 AND `+unusedGroup+`
		ORDER BY g.id LIMIT $2`+s.rowLock(`FOR UPDATE OF g`), scanOne[int64], orgID, limit)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	ids, err = txCollect(ctx, tx, `DELETE FROM groups AS g WHERE g.id IN (SELECT v FROM `+s.each("$1")+` AS e)
		AND `+unusedGroup+` RETURNING id`, scanOne[int64], jsonArray(ids))
	if err != nil {
		return 0, err
	}
	return len(ids), deleteAll(ctx, tx, jsonArray(ids),
		`DELETE FROM principals WHERE id IN (SELECT v FROM `+s.each("$1")+` AS e)`)
}

// deleteAll runs statements that delete the rows of a list of IDs.
func deleteAll(ctx context.Context, tx *sql.Tx, ids string, statements ...string) error {
	for _, text := range statements {
		if _, err := tx.ExecContext(ctx, text, ids); err != nil {
			return err
		}
	}
	return nil
}
