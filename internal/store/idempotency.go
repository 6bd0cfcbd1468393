package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"time"

	"snap"
)

// Reply is the response to a request that carried an Idempotency-Key.
type Reply struct {
	Status int
	Body   []byte
}

// The lifetimes of a stored response, and of a claim whose request never got a response, for
// example because the service was stopped.
const (
	replyLife = 24 * time.Hour
	claimLife = time.Minute
)

// Claim begins a request that changes something and carries an Idempotency-Key. The parameter
// request holds the method, path and body. If the same caller already made the same request with
// this key, Claim returns the response. If reply is nil, the code that called Claim must carry out
// the request and then call [Store.SaveReply] or [Store.Unclaim]. Claim fails with code conflict
// when the key was used for another request, or when the request is still in progress.
func (s *Store) Claim(ctx context.Context, c snap.Caller, key string, request []byte) (reply *Reply, err error) {
	sum := sha256.Sum256(request)
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		reply = nil
		var a Reply
		var stored []byte
		var created int64
		err := tx.QueryRowContext(ctx,
			`SELECT request, status, body, created_at FROM idempotency WHERE principal = $1 AND key = $2`,
			c.Principal(), key).Scan(&stored, &a.Status, &a.Body, &created)
		age := s.now().Sub(time.UnixMilli(created))
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return s.claim(ctx, tx, c, key, sum[:])
		case err != nil:
			return err
		case age >= replyLife || a.Status == 0 && age >= claimLife:
			if _, err := tx.ExecContext(ctx,
				`DELETE FROM idempotency WHERE principal = $1 AND key = $2`, c.Principal(), key); err != nil {
				return err
			}
			return s.claim(ctx, tx, c, key, sum[:])
		case !bytes.Equal(stored, sum[:]):
			return &snap.Error{Code: snap.CodeConflict,
				Detail: "this Idempotency-Key was already used for a different request",
				Hint:   "use a new key for every new request"}
		case a.Status == 0:
			return &snap.Error{Code: snap.CodeConflict,
				Detail: "the request with this Idempotency-Key is still running",
				Hint:   "try again in a moment"}
		}
		reply = &a
		return nil
	})
	return reply, err
}

func (s *Store) claim(ctx context.Context, tx *sql.Tx, c snap.Caller, key string, sum []byte) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO idempotency(principal, key, request, status, body, created_at) VALUES($1, $2, $3, 0, $4, $5)`,
		c.Principal(), key, sum, []byte{}, s.now().UnixMilli())
	return err
}

// SaveReply stores the response to a claimed request for a day.
func (s *Store) SaveReply(ctx context.Context, c snap.Caller, key string, a Reply) error {
	return s.exec(ctx, `UPDATE idempotency SET status = $3, body = $4 WHERE principal = $1 AND key = $2`,
		c.Principal(), key, a.Status, append([]byte{}, a.Body...))
}

// Unclaim forgets a claimed request, so that it may be tried again.
func (s *Store) Unclaim(ctx context.Context, c snap.Caller, key string) error {
	return s.exec(ctx, `DELETE FROM idempotency WHERE principal = $1 AND key = $2 AND status = 0`,
		c.Principal(), key)
}
