package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// Session is a signed-in device (kind LoginToken) or browser (kind Browser). It ends when somebody
// ends it, at Idle unless it is used before then, and at Expires at the latest.
type Session struct {
	ID       int64
	UserID   int64
	Kind     snap.CredentialKind
	Name     string // the program and host that signed in
	Address  string
	ClientID string // of the OAuth client, for LoginToken
	Scope    string
	Began    time.Time // when the session's sign-in began; zero means now
	Created  time.Time
	LastUsed time.Time
	Idle     time.Time
	Expires  time.Time

	Confirmed time.Time // when the identity provider last confirmed the user; zero if never
}

// AddBrowserSession stores the session of a browser by the SHA-256 of its cookie.
func (s *Store) AddBrowserSession(ctx context.Context, n Session, hash []byte) (Session, error) {
	err := s.tx(ctx, func(tx *sql.Tx) (err error) {
		n, err = s.addSession(ctx, tx, n, hash)
		return err
	})
	return n, err
}

// AddTokenSession stores the session of an access token from another auth service, by the SHA-256
// of the token, unless it already exists. It fails with snap.ErrUnauthenticated if that session has
// ended.
func (s *Store) AddTokenSession(ctx context.Context, n Session, hash []byte) (Session, error) {
	err := s.tx(ctx, func(tx *sql.Tx) error {
		_, err := s.insertSession(ctx, tx, n, hash) // not in the audit log: each refresh brings a new token
		return err
	})
	if err != nil && !violatesUnique(err) {
		return Session{}, err
	}
	return s.SessionByHash(ctx, hash)
}

func (s *Store) addSession(ctx context.Context, tx *sql.Tx, n Session, hash []byte) (Session, error) {
	n, err := s.insertSession(ctx, tx, n, hash)
	if err != nil {
		return n, err
	}
	return n, s.recordSession(ctx, tx, n.ID, snap.AuditSessionStarted)
}

// keptSessions is how long a session's row is kept after Expires, so that a token or cookie that is
// used late is still recognized as ended.
const keptSessions = 24 * time.Hour

func (s *Store) insertSession(ctx context.Context, tx *sql.Tx, n Session, hash []byte) (Session, error) {
	if _, err := tx.ExecContext(ctx,
		`DELETE FROM sessions WHERE expires_at < $1`, s.now().Add(-keptSessions).UnixMilli()); err != nil {
		return n, err
	}
	n.Created = s.now()
	n.LastUsed = n.Created
	// Because of the lock, a concurrent sign-out of the user either commits first, so that no
	// session is added, or waits and then ends this session.
	err := tx.QueryRowContext(ctx, `
		INSERT INTO sessions(user_id, kind, hash, name, address, client_id, scope, created_at, last_used_at,
			idle_until, expires_at)
		SELECT id, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM users
		WHERE id = $1 AND signed_out_at <= $12`+s.rowLock(`FOR SHARE`)+` RETURNING id`,
		n.UserID, string(n.Kind), hash, n.Name, n.Address, n.ClientID, n.Scope, n.Created.UnixMilli(),
		n.LastUsed.UnixMilli(), n.Idle.UnixMilli(), n.Expires.UnixMilli(), n.began().UnixMilli()).Scan(&n.ID)
	if err != nil {
		return n, noRowsAs(err, errSignedOut)
	}
	_, err = tx.ExecContext(ctx, markUsed+`$2`, n.Created.UnixMilli(), n.UserID)
	return n, err
}

func (n Session) began() time.Time {
	if n.Began.IsZero() {
		return n.Created
	}
	return n.Began
}

// endSessions ends the live sessions that match a condition and returns their number.
func (s *Store) endSessions(ctx context.Context, tx *sql.Tx, where string, args ...any) (ended int, err error) {
	return s.endSessionsAs(ctx, tx, snap.AuditSessionEnded, where, args...)
}

// endSessionsAs is like endSessions, with another action in the audit log.
func (s *Store) endSessionsAs(ctx context.Context, tx *sql.Tx, action snap.AuditAction, where string,
	args ...any) (ended int, err error) {
	ids, err := txCollect(ctx, tx, `UPDATE sessions SET ended_at = $1 WHERE ended_at IS NULL AND `+where+`
		RETURNING id`, scanOne[int64], append([]any{s.now().UnixMilli()}, args...)...)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if err := s.recordSession(ctx, tx, id, action); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// liveSession continues the condition of a query for sessions that are live at the time $2.
const liveSession = ` AND ended_at IS NULL AND idle_until > $2 AND expires_at > $2`

// SessionByHash returns the live session whose cookie or access token has this SHA-256, or
// snap.ErrUnauthenticated.
func (s *Store) SessionByHash(ctx context.Context, hash []byte) (Session, error) {
	return s.liveSession(ctx, `hash = $1`, hash)
}

// LiveSession returns the session with this ID if it is live, or snap.ErrUnauthenticated.
func (s *Store) LiveSession(ctx context.Context, id int64) (Session, error) {
	return s.liveSession(ctx, `id = $1`, id)
}

func (s *Store) liveSession(ctx context.Context, where string, arg any) (Session, error) {
	n, err := one(collect(ctx, s, selectSession+where+liveSession, scanSession, arg, s.now().UnixMilli()))
	return n, noRowsAs(err, snap.ErrUnauthenticated)
}

// TouchSession records that a session was used from an address, and sets idle as the time at which
// the session ends if it is not used again. It writes at most once a minute.
func (s *Store) TouchSession(ctx context.Context, n Session, address string, idle time.Time) error {
	now := s.now()
	if now.Sub(n.LastUsed) < touchEvery {
		return nil
	}
	_, err := s.write.ExecContext(ctx,
		`UPDATE sessions SET last_used_at = $1, address = $2, idle_until = $3 WHERE id = $4 AND last_used_at <= $5`,
		now.UnixMilli(), address, idle.UnixMilli(), n.ID, now.Add(-touchEvery).UnixMilli())
	if err == nil {
		_, err = s.write.ExecContext(ctx, markUsed+`$2`, now.UnixMilli(), n.UserID)
	}
	return ignoreDiskFull(err)
}

// Sessions returns the caller's live sessions, the newest first.
func (s *Store) Sessions(ctx context.Context, c snap.Caller) ([]Session, error) {
	if c.User == nil {
		return nil, nil
	}
	return s.UserSessions(ctx, c.User.ID)
}

// UserSessions returns a user's live sessions, the newest first.
func (s *Store) UserSessions(ctx context.Context, userID int64) ([]Session, error) {
	return collect(ctx, s,
		selectSession+`user_id = $1`+liveSession+` ORDER BY id DESC`, scanSession, userID, s.now().UnixMilli())
}

// EndSession ends a session of the caller or, for an owner or admin, of anybody in the
// organization. It fails with not_found for other sessions.
func (s *Store) EndSession(ctx context.Context, c snap.Caller, id int64) error {
	if c.User == nil {
		return errNoSession
	}
	condition, owner := `user_id = $3`, c.User.ID
	if c.IsAdmin() {
		condition, owner = `user_id IN (SELECT id FROM users WHERE org_id = $3)`, c.Org.ID
	}
	return s.tx(ctx, func(tx *sql.Tx) error {
		n, err := s.endSessions(ctx, tx, `id = $2 AND `+condition, id, owner)
		if err == nil && n == 0 {
			return errNoSession
		}
		return err
	})
}

// OrgSessions returns the live sessions of everybody in the caller's organization, the newest
// first. Authorization is the caller's job (snap.Allowed).
func (s *Store) OrgSessions(ctx context.Context, c snap.Caller) ([]Session, error) {
	return collect(ctx, s, selectSession+`user_id IN (SELECT id FROM users WHERE org_id = $1)`+liveSession+
		` ORDER BY id DESC`, scanSession, c.Org.ID, s.now().UnixMilli())
}

// EndSessionByHash ends the browser session whose cookie has this SHA-256, if there is one, on
// behalf of its user.
func (s *Store) EndSessionByHash(ctx context.Context, hash []byte) error {
	ctx = snap.ActingAs(ctx, snap.Caller{})
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := s.endSessions(ctx, tx, `hash = $2`, hash)
		return err
	})
}

var errNoSession = &snap.Error{Code: snap.CodeNotFound, Detail: "no such session",
	Hint: "list your sessions to see which exist"}

const selectSession = `SELECT id, user_id, kind, name, address, client_id, scope, created_at, last_used_at, idle_until,
	expires_at, (SELECT i.checked_at FROM sign_ins i WHERE i.user_id = sessions.user_id) FROM sessions WHERE `

func scanSession(rows *sql.Rows) (n Session, err error) {
	err = rows.Scan(&n.ID, &n.UserID, &n.Kind, &n.Name, &n.Address, &n.ClientID, &n.Scope, toTime(&n.Created),
		toTime(&n.LastUsed), toTime(&n.Idle), toTime(&n.Expires), toTime(&n.Confirmed))
	return n, err
}

// Accounts returns the users of an organization who came from an issuer, by their subject at the
// issuer.
func (s *Store) Accounts(ctx context.Context, orgID int64, issuer string) (map[string]snap.Member, error) {
	rows, err := s.read.QueryContext(ctx,
		`SELECT subject, id, email, disabled FROM users WHERE org_id = $1 AND issuer = $2`, orgID, issuer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]snap.Member{}
	for rows.Next() {
		var subject string
		var m snap.Member
		if err := rows.Scan(&subject, &m.ID, &m.Email, &m.Disabled); err != nil {
			return nil, err
		}
		all[subject] = m
	}
	return all, rows.Err()
}
