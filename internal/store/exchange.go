package store

import (
	"context"
	"database/sql"
	"time"

	"snap"
)

// Exchange is a verified token of a CI system and the credential to issue for it.
type Exchange struct {
	Org             snap.OrgRef
	Rule            string    // fingerprint of the trust rule that the token matched
	Issuer, Subject string    // of the token
	Token           []byte    // SHA-256 of the token's identity
	Until           time.Time // when the token expires
	Kind            snap.CredentialKind
	UserID          int64 // the service user that the credential acts as; 0 for the organization
	Name            string
	Scopes          []snap.Scope
	Hash            []byte    // SHA-256 of the credential
	Hint            string    // first 8 and last 4 characters of the credential
	Expires         time.Time // of the credential
	// Previous is the SHA-256 of a credential that was issued to the same subject under the same
	// rule. That credential is renewed: it keeps its ID, so that uploads and download links keep
	// working. Only its holder may use the same token again.
	Previous []byte
}

// The errors of [Store.Exchange].
var (
	errTokenUsed = &snap.Error{Code: snap.CodeConflict, Detail: "the token was used before"}
	errRuleGone  = &snap.Error{Code: snap.CodeForbidden, Detail: "the trust rule is no longer configured"}
)

// renewalPeriod is how long after its expiry the credential of a CI job can be renewed with a token
// that is still valid.
const renewalPeriod = 24 * time.Hour

// Exchange stores a credential for a token, or renews the previous one. It fails with conflict if
// the token was already exchanged, on any replica, for a credential other than Previous. It fails
// with forbidden when the rule was removed. Of several concurrent calls with the same token, one
// succeeds.
func (s *Store) Exchange(ctx context.Context, e Exchange) (Key, error) {
	var id int64
	ctx = snap.ActingAs(ctx, snap.Acting(e.Org, "CI job "+e.Subject))
	err := s.tx(ctx, func(tx *sql.Tx) (err error) {
		now := s.now()
		if _, err := tx.ExecContext(ctx, `DELETE FROM exchanged_tokens WHERE until <= $1`,
			now.UnixMilli()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM api_keys WHERE trust <> '' AND expires_at <= $1`,
			now.Add(-renewalPeriod).UnixMilli()); err != nil {
			return err
		}
		var fingerprint string
		err = tx.QueryRowContext(ctx, `SELECT fingerprint FROM trust_rules WHERE org_id = $1 AND fingerprint = $2`+
			s.rowLock(`FOR SHARE`), e.Org.ID, e.Rule).Scan(&fingerprint)
		if err != nil {
			return noRowsAs(err, errRuleGone)
		}
		if id, err = s.renewable(ctx, tx, e); err != nil {
			return err
		}
		if id, err = s.writeCredential(ctx, tx, e, id); err != nil {
			return err
		}
		if err := s.recordExchange(ctx, tx, e, id); err != nil {
			return err
		}
		return s.recordKey(ctx, tx, id, snap.AuditKeyCreated)
	})
	if err != nil {
		return Key{}, err
	}
	return one(s.keys(ctx, `WHERE k.id = $1`, id))
}

// renewable returns the ID of the previous credential if it may be renewed, and 0 otherwise.
func (s *Store) renewable(ctx context.Context, tx *sql.Tx, e Exchange) (id int64, err error) {
	if e.Previous == nil {
		return 0, nil
	}
	err = tx.QueryRowContext(ctx, `
		SELECT id FROM api_keys WHERE hash = $1 AND org_id = $2 AND trust = $3 AND token_issuer = $4
			AND token_subject = $5 AND kind = $6 AND coalesce(user_id, 0) = $7 AND scopes = $8
			AND revoked_at IS NULL AND expires_at > $9`+s.rowLock(`FOR UPDATE`),
		e.Previous, e.Org.ID, e.Rule, e.Issuer, e.Subject, string(e.Kind), e.UserID, joinWords(e.Scopes),
		s.now().Add(-renewalPeriod).UnixMilli()).Scan(&id)
	return id, noRowsAs(err, nil)
}

// writeCredential renews the credential with this ID, or adds a new one if id is 0.
func (s *Store) writeCredential(ctx context.Context, tx *sql.Tx, e Exchange, id int64) (int64, error) {
	if id != 0 {
		_, err := tx.ExecContext(ctx, `UPDATE api_keys SET hash = $1, hint = $2, expires_at = $3 WHERE id = $4`,
			e.Hash, e.Hint, e.Expires.UnixMilli(), id)
		return id, err
	}
	err := tx.QueryRowContext(ctx, `
		INSERT INTO api_keys(hash, kind, name, hint, org_id, user_id, scopes, created_at, expires_at, trust,
			token_issuer, token_subject)
		VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id`,
		e.Hash, string(e.Kind), e.Name, e.Hint, e.Org.ID, nullID(e.UserID), joinWords(e.Scopes), s.now().UnixMilli(),
		e.Expires.UnixMilli(), e.Rule, e.Issuer, e.Subject).Scan(&id)
	return id, err
}

// recordExchange records that a token was used for a credential. It fails if the token was already
// used for another credential.
func (s *Store) recordExchange(ctx context.Context, tx *sql.Tx, e Exchange, id int64) error {
	res, err := tx.ExecContext(ctx, `
		INSERT INTO exchanged_tokens(hash, key_id, until) VALUES($1, $2, $3)
		ON CONFLICT(hash) DO UPDATE SET until = excluded.until WHERE exchanged_tokens.key_id = excluded.key_id`,
		e.Token, id, e.Until.UnixMilli())
	return requireChanged(res, err, errTokenUsed)
}

// ApplyTrust records the trust rules of an organization's configuration, by their fingerprints.
// Credentials that were issued under other rules end immediately on every replica, and no replica
// issues new ones under those rules.
func (s *Store) ApplyTrust(ctx context.Context, orgID int64, fingerprints []string) error {
	list := jsonArray(fingerprints)
	return s.tx(ctx, func(tx *sql.Tx) error {
		listed := ` IN (SELECT value FROM ` + s.eachText("$2") + `)`
		if _, err := tx.ExecContext(ctx, `DELETE FROM trust_rules WHERE org_id = $1 AND fingerprint NOT`+listed,
			orgID, list); err != nil {
			return err
		}
		for _, f := range fingerprints {
			if _, err := tx.ExecContext(ctx, `INSERT INTO trust_rules(org_id, fingerprint) VALUES($1, $2)
				ON CONFLICT DO NOTHING`, orgID, f); err != nil {
				return err
			}
		}
		ids, err := txCollect(ctx, tx, `UPDATE api_keys SET revoked_at = $3
			WHERE org_id = $1 AND trust <> '' AND revoked_at IS NULL AND trust NOT`+listed+` RETURNING id`,
			scanOne[int64], orgID, list, s.now().UnixMilli())
		for _, id := range ids {
			if err == nil {
				err = s.recordKey(ctx, tx, id, snap.AuditKeyRevoked)
			}
		}
		return err
	})
}

// Account returns the user of an organization with this issuer and subject. It fails with not_found
// if there is no such user or the user is disabled.
func (s *Store) Account(ctx context.Context, orgID int64, issuer, subject string) (u snap.User, err error) {
	err = s.row(ctx,
		`SELECT id, email, name FROM users WHERE org_id = $1 AND issuer = $2 AND subject = $3 AND disabled = 0`,
		orgID, issuer, subject).Scan(&u.ID, &u.Email, &u.Name)
	return u, noRowsAs(err, &snap.Error{Code: snap.CodeNotFound, Detail: "the organization has no such user"})
}
