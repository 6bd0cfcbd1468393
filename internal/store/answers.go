package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"snap"
)

// answerLife is how long an answer is kept for its Idempotency-Key.
const answerLife = 24 * time.Hour

// Answer is what a changing request was answered.
type Answer struct {
	Status int
	Body   []byte
}

// Answer returns what the caller's request with this Idempotency-Key was
// answered, or nil if it was not, or more than a day ago. request is a digest
// of the request; another request under the same key is a conflict.
func (s *Store) Answer(ctx context.Context, c snap.Caller, key string, request []byte) (*Answer, error) {
	var a Answer
	var before []byte
	err := s.read.QueryRowContext(ctx,
		`SELECT request, status, body FROM idempotency WHERE principal = $1 AND key = $2 AND created_at > $3`,
		c.Principal(), key, s.now().Add(-answerLife).UnixMilli()).Scan(&before, &a.Status, &a.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(before, request) {
		return nil, &snap.Error{Code: snap.CodeConflict, Detail: "this Idempotency-Key was used for another request", Hint: "use a fresh key for every request"}
	}
	return &a, nil
}

// KeepAnswer keeps an answer for its Idempotency-Key, and forgets those that
// are more than a day old.
func (s *Store) KeepAnswer(ctx context.Context, c snap.Caller, key string, request []byte, a Answer) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `DELETE FROM idempotency WHERE created_at <= $1`, s.now().Add(-answerLife).UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			`INSERT INTO idempotency(principal, key, request, status, body, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			c.Principal(), key, request, a.Status, append([]byte{}, a.Body...), s.now().UnixMilli())
		return err
	})
}
