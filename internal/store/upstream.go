package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// UpstreamLogin is an unfinished sign-in at an identity provider.
type UpstreamLogin struct {
	Browser  []byte // SHA-256 of the browser's cookie; only that browser can complete the sign-in
	OrgID    int64
	Nonce    string
	Verifier string // of PKCE
	Next     string // path of the page to show after the sign-in
	Expires  time.Time
}

// AddUpstreamLogin stores a sign-in by the SHA-256 of its state.
func (s *Store) AddUpstreamLogin(ctx context.Context, u UpstreamLogin, hash []byte) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx,
			`DELETE FROM upstream_logins WHERE expires_at <= $1`, s.now().UnixMilli()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO upstream_logins(hash, browser, org_id, nonce, verifier, next, expires_at)
			VALUES($1, $2, $3, $4, $5, $6, $7)`,
			hash, u.Browser, u.OrgID, u.Nonce, u.Verifier, u.Next, u.Expires.UnixMilli())
		return err
	})
}

// ConsumeUpstreamLogin returns and deletes the sign-in with this state, so that the provider's
// response is accepted only once. It fails with not_found if there is none.
func (s *Store) ConsumeUpstreamLogin(ctx context.Context, hash []byte) (u UpstreamLogin, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `
			DELETE FROM upstream_logins WHERE hash = $1 AND expires_at > $2
			RETURNING browser, org_id, nonce, verifier, next, expires_at`, hash, s.now().UnixMilli()).
			Scan(&u.Browser, &u.OrgID, &u.Nonce, &u.Verifier, &u.Next, toTime(&u.Expires))
	})
	return u, noRowsAs(err, &snap.Error{Code: snap.CodeNotFound,
		Detail: "this sign-in has expired or is already complete", Hint: "sign in again"})
}
