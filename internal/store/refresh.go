package store

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"snap"
)

// RefreshGrace is how long a used refresh token may be redeemed again if its successor has not been
// used. Without this, a client would lose its session if the response with the successor was lost.
const RefreshGrace = 60 * time.Second

// Rotation redeems a refresh token for the next one of its chain.
type Rotation struct {
	Hash     []byte // SHA-256 of the token that was sent
	Next     []byte // SHA-256 of its successor
	ClientID string
	Idle     time.Time // when the session ends if it is not used
}

// ErrTokenReused reports that a refresh token was used although it was not valid any more, and that
// its session was therefore ended. [Store.RotateRefresh] says when that is the case.
var ErrTokenReused = errors.New("refresh token reused, session ended")

// ErrClosed reports that a session's organization is closed. The refresh token was not consumed: it
// is valid again when the organization is opened.
var ErrClosed = errors.New("the organization is closed")

// RotateRefresh redeems a refresh token and returns its session. It fails with
// snap.ErrUnauthenticated when the token is unknown or belongs to another client, or when its
// session has ended, and with ErrClosed when its organization is closed. It fails with
// ErrTokenReused if the token was used before, unless RefreshGrace allows that, and also if the
// token was never used but another successor replaced it. Somebody else may then have a copy, so
// the session and all its tokens end.
func (s *Store) RotateRefresh(ctx context.Context, r Rotation) (n Session, err error) {
	var outcome error
	err = s.tx(ctx, func(tx *sql.Tx) error {
		outcome = nil
		n, err = s.lockRefresh(ctx, tx, r)
		if err != nil {
			return err
		}
		token, err := readRefresh(ctx, tx, r.Hash)
		if err != nil {
			return err
		}
		if token.superseded || token.used() && s.now().Sub(token.usedAt) >= RefreshGrace {
			outcome = ErrTokenReused
			return s.endReused(ctx, tx, n)
		}
		if token.used() {
			successorUsed, err := supersede(ctx, tx, r.Hash)
			if err != nil {
				return err
			}
			if successorUsed {
				outcome = ErrTokenReused
				return s.endReused(ctx, tx, n)
			}
		}
		return s.addSuccessor(ctx, tx, n, token, r)
	})
	if err == nil {
		err = outcome
	}
	return n, err
}

// lockRefresh finds the token's live session and locks its row, so that concurrent redemptions of
// one chain run one after the other.
func (s *Store) lockRefresh(ctx context.Context, tx *sql.Tx, r Rotation) (Session, error) {
	var id int64
	err := tx.QueryRowContext(ctx, `SELECT session_id FROM refresh_tokens WHERE hash = $1`, r.Hash).Scan(&id)
	if err != nil {
		return Session{}, noRowsAs(err, snap.ErrUnauthenticated)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE sessions SET client_id = client_id WHERE id = $1`, id); err != nil {
		return Session{}, err
	}
	n, err := one(txCollect(ctx, tx, selectSession+`id = $1`+liveSession, scanSession, id, s.now().UnixMilli()))
	if errors.Is(err, sql.ErrNoRows) || err == nil && n.ClientID != r.ClientID {
		return Session{}, snap.ErrUnauthenticated
	}
	if err != nil {
		return Session{}, err
	}
	var closed bool
	err = tx.QueryRowContext(ctx,
		`SELECT o.closed FROM users u JOIN orgs o ON o.id = u.org_id WHERE u.id = $1`, n.UserID).Scan(&closed)
	if err == nil && closed {
		err = ErrClosed
	}
	return n, err
}

type refreshToken struct {
	usedAt     time.Time // zero if it was not used
	superseded bool
}

func (t refreshToken) used() bool { return !t.usedAt.IsZero() }

func readRefresh(ctx context.Context, tx *sql.Tx, hash []byte) (t refreshToken, err error) {
	err = tx.QueryRowContext(ctx, `SELECT used_at, superseded FROM refresh_tokens WHERE hash = $1`, hash).
		Scan(toTime(&t.usedAt), &t.superseded)
	return t, err
}

// supersede marks the unused successor of a used token as superseded. If the successor was already
// used, it changes nothing and returns true.
func supersede(ctx context.Context, tx *sql.Tx, parent []byte) (successorUsed bool, err error) {
	var used int64
	err = tx.QueryRowContext(ctx,
		`SELECT count(*) FROM refresh_tokens WHERE parent = $1 AND used_at IS NOT NULL`, parent).Scan(&used)
	if err != nil || used > 0 {
		return used > 0, err
	}
	_, err = tx.ExecContext(ctx, `UPDATE refresh_tokens SET superseded = 1 WHERE parent = $1`, parent)
	return false, err
}

func (s *Store) addSuccessor(ctx context.Context, tx *sql.Tx, n Session, token refreshToken, r Rotation) error {
	now := s.now().UnixMilli()
	if !token.used() {
		if _, err := tx.ExecContext(ctx,
			`UPDATE refresh_tokens SET used_at = $1 WHERE hash = $2`, now, r.Hash); err != nil {
			return err
		}
		if err := forgetOld(ctx, tx, n.ID); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx,
		`INSERT INTO refresh_tokens(hash, session_id, parent) VALUES($1, $2, $3)`, r.Next, n.ID, r.Hash); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE sessions SET last_used_at = $1, idle_until = $2 WHERE id = $3`,
		now, r.Idle.UnixMilli(), n.ID); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, markUsed+`$2`, now, n.UserID)
	return err
}

// keptTokens is about how many tokens of one chain are stored, so that a chain that lasts for
// months stays small. Older tokens are unknown to the service.
const keptTokens = 64

func forgetOld(ctx context.Context, tx *sql.Tx, session int64) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM refresh_tokens WHERE session_id = $1 AND used_at < (
			SELECT used_at FROM refresh_tokens WHERE session_id = $1 AND used_at IS NOT NULL
			ORDER BY used_at DESC LIMIT 1 OFFSET $2)`, session, keptTokens)
	return err
}

// endReused ends a session whose refresh token was used twice, and notifies its user.
func (s *Store) endReused(ctx context.Context, tx *sql.Tx, n Session) error {
	_, err := s.endSessionsAs(ctx, tx, snap.AuditTokenReused, `id = $2`, n.ID)
	return err
}

// RevokeRefresh ends the session of a refresh token if the token belongs to this client (RFC 7009),
// and reports whether it did.
func (s *Store) RevokeRefresh(ctx context.Context, hash []byte, clientID string) (bool, error) {
	var ended int
	err := s.tx(ctx, func(tx *sql.Tx) (err error) {
		ended, err = s.endSessions(ctx, tx,
			`client_id = $2 AND id = (SELECT session_id FROM refresh_tokens WHERE hash = $3)`, clientID, hash)
		return err
	})
	return ended > 0, err
}
