package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"snap"
)

// Standing records a user's last sign-in, and when their identity provider last confirmed them.
type Standing struct {
	UserID, OrgID   int64
	Issuer, Subject string
	Email, Name     string
	Verified        bool      // the provider has verified Email
	SignedIn        time.Time // interactively
	Refresh         []byte    // the provider's refresh token, encrypted; nil if there is none
	Checked         time.Time // when the provider last confirmed the user
	Claimed         time.Time // until then, only the replica that claimed the check may ask the provider
	NotBefore       time.Time // the provider failed and is not asked again before then
}

// InteractiveSignIn is an interactive sign-in of a user.
type InteractiveSignIn struct {
	UserID  int64
	Began   time.Time // when it began, before the identity provider confirmed the user; zero means now
	Refresh []byte    // the encrypted refresh token of the provider, or nil
	SID     string    // the ID of their session at the provider, or empty
}

// RecordSignIn records that a user signed in interactively just now. If their provider had removed
// them before the sign-in began, they can use the service again, but their earlier sessions and
// keys stay ended. It fails with code forbidden if the provider reports the user as inactive, or if
// the user was removed or signed out after the sign-in began.
func (s *Store) RecordSignIn(ctx context.Context, in InteractiveSignIn) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.readmit(ctx, tx, in); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO sign_ins(user_id, org_id, signed_in_at, refresh, sid, checked_at, waits_from)
				VALUES($1, (SELECT u.org_id FROM users u WHERE u.id = $1), $2, $3, $4, $2, $2)
			ON CONFLICT(user_id) DO UPDATE SET signed_in_at = excluded.signed_in_at, refresh = excluded.refresh,
				sid = excluded.sid, checked_at = excluded.checked_at, claimed_until = 0, not_before = 0,
				used = 0, doubts = 0, waits_from = excluded.waits_from`,
			in.UserID, s.now().UnixMilli(), in.Refresh, in.SID)
		return err
	})
}

// Readmit enables a user who signed in at another auth service, as [Store.RecordSignIn] does.
func (s *Store) Readmit(ctx context.Context, in InteractiveSignIn) error {
	return s.tx(ctx, func(tx *sql.Tx) error { return s.readmit(ctx, tx, in) })
}

// The reasons why a sign-in does not enable a user.
var (
	errInactive = &snap.Error{Code: snap.CodeForbidden,
		Detail: "your identity provider reports that your account is not active",
		Hint:   "ask the administrator of your identity provider to assign you to this application"}
	errSignedOut = &snap.Error{Code: snap.CodeForbidden,
		Detail: "you were signed out while you signed in", Hint: "sign in again"}
)

// readmit enables a user whom their provider had removed before a sign-in began. It also ends
// sessions and keys that were being created while the old ones were ended. It records the session
// at the provider.
func (s *Store) readmit(ctx context.Context, tx *sql.Tx, in InteractiveSignIn) error {
	var inactive bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS(SELECT 1 FROM users u JOIN orgs o ON o.id = u.org_id
			JOIN scim_users n ON n.org_id = u.org_id AND n.external_id = u.external_id
		WHERE u.id = $1 AND n.active = 0 AND`+strings.ReplaceAll(workingSCIMKey, `$now`, `$2`)+`)`,
		in.UserID, s.now().UnixMilli()).Scan(&inactive)
	if err != nil {
		return err
	}
	if inactive {
		return errInactive
	}
	if err := s.recordSID(ctx, tx, in); err != nil {
		return err
	}
	began := in.Began
	if began.IsZero() {
		began = s.now()
	}
	enabled, err := changed(tx.ExecContext(ctx, `UPDATE users SET away = 0, disabled = 0
		WHERE id = $1 AND away = 1 AND signed_out_at <= $2`, in.UserID, began.UnixMilli()))
	if err != nil {
		return err
	}
	if !enabled {
		return requireSignedIn(ctx, tx, in.UserID, began)
	}
	if _, err := s.endSessions(ctx, tx, `user_id = $2`, in.UserID); err != nil {
		return err
	}
	if err := s.endKeys(ctx, tx, in.UserID); err != nil {
		return err
	}
	return s.recordUser(ctx, tx, in.UserID, "")
}

// keptSIDs is longer than any session that begins with a sign-in can last.
const keptSIDs = 200 * 24 * time.Hour

// recordSID records the user's session at the provider for [Store.EndByLogout].
func (s *Store) recordSID(ctx context.Context, tx *sql.Tx, in InteractiveSignIn) error {
	if in.SID == "" {
		return nil
	}
	now := s.now()
	if _, err := tx.ExecContext(ctx, `DELETE FROM provider_sessions WHERE user_id = $1 AND signed_in_at < $2`,
		in.UserID, now.Add(-keptSIDs).UnixMilli()); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO provider_sessions(user_id, sid, signed_in_at) VALUES($1, $2, $3)
		ON CONFLICT(user_id, sid) DO UPDATE SET signed_in_at = excluded.signed_in_at`,
		in.UserID, in.SID, now.UnixMilli())
	return err
}

// requireSignedIn fails when a user was signed out after a sign-in began.
func requireSignedIn(ctx context.Context, tx *sql.Tx, userID int64, began time.Time) error {
	var out int64
	err := tx.QueryRowContext(ctx, `SELECT signed_out_at FROM users WHERE id = $1`, userID).Scan(&out)
	if err == nil && out > began.UnixMilli() {
		err = errSignedOut
	}
	return err
}

const selectStanding = `
	SELECT i.user_id, u.org_id, u.issuer, u.subject, u.email, u.name, u.email_verified, i.signed_in_at, i.refresh,
		i.checked_at, i.claimed_until, i.not_before
	FROM sign_ins i JOIN users u ON u.id = i.user_id `

func scanStanding(rows *sql.Rows) (t Standing, err error) {
	err = rows.Scan(&t.UserID, &t.OrgID, &t.Issuer, &t.Subject, &t.Email, &t.Name, &t.Verified, toTime(&t.SignedIn),
		&t.Refresh, toTime(&t.Checked), toTime(&t.Claimed), toTime(&t.NotBefore))
	return t, err
}

// StandingOf returns a user's standing. It fails with snap.ErrUnauthenticated if the user never
// signed in.
func (s *Store) StandingOf(ctx context.Context, userID int64) (Standing, error) {
	t, err := one(collect(ctx, s, selectStanding+`WHERE i.user_id = $1`, scanStanding, userID))
	return t, noRowsAs(err, snap.ErrUnauthenticated)
}

// RefreshUser returns the user of a client's refresh token, used or not, if the token's session is
// live. It does not consume the token. It fails with snap.ErrUnauthenticated if there is no such
// token.
func (s *Store) RefreshUser(ctx context.Context, hash []byte, clientID string) (userID int64, err error) {
	now := s.now().UnixMilli()
	err = s.read.QueryRowContext(ctx, `
		SELECT n.user_id FROM refresh_tokens t JOIN sessions n ON n.id = t.session_id
		WHERE t.hash = $1 AND n.client_id = $2 AND n.ended_at IS NULL AND n.idle_until > $3 AND n.expires_at > $3`,
		hash, clientID, now).Scan(&userID)
	return userID, noRowsAs(err, snap.ErrUnauthenticated)
}

// DueStandings returns the users of an organization about whom the identity provider must be asked:
// the provider last confirmed them at the given time or earlier, and they have used a session or
// key since then. Users who have waited longest come first. If the provider failed to answer about
// a user, that user moves to the end of the queue.
func (s *Store) DueStandings(ctx context.Context, orgID int64, confirmed time.Time, limit int) ([]Standing, error) {
	return collect(ctx, s, selectDue, scanStanding, orgID, confirmed.UnixMilli(), s.now().UnixMilli(), limit)
}

const selectDue = selectStanding + `
	WHERE i.org_id = $1 AND i.waits_from <= $2 AND i.used = 1 AND i.refresh IS NOT NULL
		AND i.checked_at <= $2 AND i.claimed_until <= $3 AND i.not_before <= $3 AND u.disabled = 0
	ORDER BY i.waits_from LIMIT $4`

// markUsed records at the time $1 that a user is active, so that the next check includes them. It
// is the beginning of a statement; the user's ID must be appended. It writes at most once between
// two checks.
const markUsed = `UPDATE sign_ins SET used = 1, org_id = (SELECT u.org_id FROM users u WHERE u.id = sign_ins.user_id)
	WHERE used = 0 AND refresh IS NOT NULL AND checked_at < $1 AND user_id = `

// ClaimCheck reserves the check of a user for one replica and for the given duration, because a
// refresh token must not be used twice. It returns the number of checks since the token was last
// known to be unused, including this one: until [Store.KeepRefresh] or [Store.RecordUnused] records
// the outcome, nobody knows whether the provider replaced the token. It returns 0 if another
// replica has the reservation, or if the provider failed a moment ago.
func (s *Store) ClaimCheck(ctx context.Context, t Standing, life time.Duration) (doubts int, err error) {
	now := s.now()
	err = s.attempt(ctx, func() error {
		return s.write.QueryRowContext(ctx, `
			UPDATE sign_ins SET claimed_until = $1, doubts = doubts + 1
			WHERE user_id = $2 AND claimed_until <= $3 AND not_before <= $3 AND checked_at = $4 RETURNING doubts`,
			now.Add(life).UnixMilli(), t.UserID, now.UnixMilli(), t.Checked.UnixMilli()).Scan(&doubts)
	})
	return doubts, noRowsAs(err, nil)
}

// KeepRefresh records an encrypted, unused refresh token of a user's identity provider. Nil means
// that none is left. It changes nothing if the user signed in, or was signed out, since the
// standing was read.
func (s *Store) KeepRefresh(ctx context.Context, t Standing, refresh []byte) error {
	return s.exec(ctx, `
		UPDATE sign_ins SET refresh = $1, doubts = 0 WHERE user_id = $2 AND checked_at = $3 AND refresh IS NOT NULL`,
		refresh, t.UserID, t.Checked.UnixMilli())
}

// RecordUnused records that a claimed check of a user did not use the refresh token. Earlier doubts
// about the token remain.
func (s *Store) RecordUnused(ctx context.Context, t Standing) error {
	return s.exec(ctx, `UPDATE sign_ins SET doubts = doubts - 1
		WHERE user_id = $1 AND checked_at = $2 AND refresh IS NOT NULL AND doubts > 0`,
		t.UserID, t.Checked.UnixMilli())
}

// DoubtRefresh records for all users that their refresh tokens may be old, because the database is
// from an earlier time. If the identity provider refuses such a token, this does not prove that the
// user left.
func (s *Store) DoubtRefresh(ctx context.Context) error { return s.exec(ctx, doubtRefresh) }

const doubtRefresh = `UPDATE sign_ins SET doubts = 1 WHERE refresh IS NOT NULL AND doubts = 0`

// RecordConfirmed records that the identity provider confirmed a user at a time; a time in the
// future counts as now. It changes nothing if the last confirmation was later. The user need not
// have signed in here: another auth service may have signed them in.
func (s *Store) RecordConfirmed(ctx context.Context, userID int64, at time.Time) error {
	return s.exec(ctx, `
		INSERT INTO sign_ins(user_id, signed_in_at, checked_at) VALUES($2, 0, $1)
		ON CONFLICT(user_id) DO UPDATE SET checked_at = excluded.checked_at, claimed_until = 0, not_before = 0,
			used = 0, waits_from = excluded.checked_at WHERE sign_ins.checked_at <= excluded.checked_at`,
		earlier(at, s.now()).UnixMilli(), userID)
}

// RecordUnconfirmed records that the identity provider could not confirm a user. The provider is
// not asked about them again until wait has passed; recheck is the usual interval between two
// checks.
func (s *Store) RecordUnconfirmed(ctx context.Context, userID int64, wait, recheck time.Duration) error {
	next := s.now().Add(wait)
	return s.exec(ctx,
		`UPDATE sign_ins SET claimed_until = 0, not_before = $1, waits_from = $2 WHERE user_id = $3`,
		next.UnixMilli(), next.Add(-recheck).UnixMilli(), userID)
}

// EndRefused immediately ends all sessions and user-scoped keys of a user, because the identity
// provider refused their refresh token and so no longer knows them. It returns false and changes
// nothing if the user signed in, or was signed out, since the standing was read. The audit log
// names the caller of the context's origin as the actor.
func (s *Store) EndRefused(ctx context.Context, t Standing) (ended bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		ended, err = changed(tx.ExecContext(ctx, `UPDATE sign_ins SET claimed_until = 0
			WHERE user_id = $1 AND checked_at = $2 AND refresh IS NOT NULL`, t.UserID, t.Checked.UnixMilli()))
		if err != nil || !ended {
			return err
		}
		return s.endUser(ctx, tx, t.UserID)
	})
	return ended, err
}

// endUser ends all sessions and user-scoped keys of a user whom the identity provider no longer
// knows. The user is disabled until their next sign-in, so that requests with a credential that is
// created at the same time fail too.
func (s *Store) endUser(ctx context.Context, tx *sql.Tx, userID int64) error {
	var first bool
	err := tx.QueryRowContext(ctx, `SELECT away = 0 AND (disabled = 0 OR signed_out_at = 0) FROM users
		WHERE id = $1`, userID).Scan(&first)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE users SET away = CASE WHEN disabled = 1 THEN away ELSE 1 END, disabled = 1,
		signed_out_at = $2 WHERE id = $1`, userID, s.now().UnixMilli()); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sign_ins SET refresh = NULL, signed_in_at = 0, claimed_until = 0
		WHERE user_id = $1`, userID); err != nil {
		return err
	}
	d, org, err := s.userDetail(ctx, tx, `u.id = $1`, userID)
	if err != nil {
		return err
	}
	if first { // a repeated report is recorded once
		left := snap.AuditEntry{Action: snap.AuditUserLeft, Detail: d}
		if err := s.record(ctx, tx, org, snap.OriginOf(ctx).Caller, left); err != nil {
			return err
		}
	}
	if _, err := s.endSessions(ctx, tx, `user_id = $2`, userID); err != nil {
		return err
	}
	return s.endKeys(ctx, tx, userID)
}

// endKeys revokes all keys of a user.
func (s *Store) endKeys(ctx context.Context, tx *sql.Tx, userID int64) error {
	ids, err := txCollect(ctx, tx,
		`UPDATE api_keys SET revoked_at = $1 WHERE revoked_at IS NULL AND user_id = $2 RETURNING id`,
		scanOne[int64], s.now().UnixMilli(), userID)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.recordKey(ctx, tx, id, snap.AuditKeyRevoked); err != nil {
			return err
		}
	}
	return nil
}

// Logout is a verified logout token of an identity provider (OpenID Connect Back-Channel Logout
// 1.0). It names a person, one of their sessions, or both.
type Logout struct {
	OrgID        int64
	Issuer       string
	Subject, SID string
	Hash         []byte    // SHA-256 of the token's issuer and ID
	Until        time.Time // when the token expires
}

// EndByLogout immediately ends every session of the people that a logout token names, and returns
// the number of these sessions. If the token names only a session at the provider, these are the
// people who signed in with it. It fails with code conflict if the token was used before.
func (s *Store) EndByLogout(ctx context.Context, l Logout) (ended int, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		ended = 0
		if _, err := tx.ExecContext(ctx,
			`DELETE FROM logout_tokens WHERE until <= $1`, s.now().UnixMilli()); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx,
			`INSERT INTO logout_tokens(hash, until) VALUES($1, $2) ON CONFLICT(hash) DO NOTHING`,
			l.Hash, l.Until.UnixMilli())
		if err := requireChanged(res, err, errLogoutUsed); err != nil {
			return err
		}
		users, err := txCollect(ctx, tx, `
			UPDATE sign_ins SET refresh = NULL WHERE user_id IN (SELECT u.id FROM users u
				WHERE u.org_id = $1 AND u.issuer = $2 AND ($3 = '' OR u.subject = $3))
				AND ($4 = '' OR $3 <> '' OR sid = $4 OR user_id IN (SELECT p.user_id FROM provider_sessions p
					WHERE p.sid = $4)) RETURNING user_id`, scanOne[int64], l.OrgID, l.Issuer, l.Subject, l.SID)
		if err != nil {
			return err
		}
		for _, id := range users {
			if _, err := tx.ExecContext(ctx,
				`UPDATE users SET signed_out_at = $2 WHERE id = $1`, id, s.now().UnixMilli()); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM provider_sessions WHERE user_id = $1`, id); err != nil {
				return err
			}
			n, err := s.endSessions(ctx, tx, `user_id = $2`, id)
			if err != nil {
				return err
			}
			ended += n
		}
		return nil
	})
	return ended, err
}

var errLogoutUsed = &snap.Error{Code: snap.CodeConflict, Detail: "the logout token was used before"}
