package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// A notice informs a user of an event in the audit log that concerns one of their snapshots or
// sessions and that they did not cause themselves.

const (
	noticeLife = 30 * 24 * time.Hour
	maxNotices = 20
)

// addNotice makes a line of an organization's log a notice for a user.
func (s *Store) addNotice(ctx context.Context, tx *sql.Tx, orgID, seq, userID int64) error {
	now := s.now()
	if _, err := tx.ExecContext(ctx,
		`DELETE FROM notices WHERE user_id = $1 AND at < $2`, userID, now.Add(-noticeLife).UnixMilli()); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO notices(user_id, org_id, seq, at) VALUES($1, $2, $3, $4)`,
		userID, orgID, seq, now.UnixMilli())
	return err
}

// Notices returns the caller's newest notices, the newest first.
func (s *Store) Notices(ctx context.Context, c snap.Caller) ([]snap.AuditEntry, error) {
	if c.User == nil {
		return nil, nil
	}
	return collect(ctx, s, `SELECT `+entryColumns+` FROM notices n JOIN audit a ON a.org_id = n.org_id AND a.seq = n.seq
		WHERE n.user_id = $1 AND n.at > $2 ORDER BY n.at DESC, n.seq DESC LIMIT $3`,
		scanEntry, c.User.ID, s.now().Add(-noticeLife).UnixMilli(), maxNotices)
}
