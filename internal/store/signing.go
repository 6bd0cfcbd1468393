package store

import (
	"context"
	"database/sql"
	"time"
)

// SigningKey is a key that signs access tokens. All replicas share the keys. The newest one signs,
// and the older ones verify tokens until they are dropped.
type SigningKey struct {
	KID     string
	Private []byte // as the auth package wrote it
	Created time.Time
}

// SigningKeys returns the signing keys, the newest first.
func (s *Store) SigningKeys(ctx context.Context) ([]SigningKey, error) {
	return collect(ctx, s, `SELECT kid, private, created_at FROM signing_keys ORDER BY created_at DESC, kid`,
		func(rows *sql.Rows) (k SigningKey, err error) {
			err = rows.Scan(&k.KID, &k.Private, toTime(&k.Created))
			return k, err
		})
}

// AddSigningKey stores a key, unless another replica has already stored one that was created after
// the given time.
func (s *Store) AddSigningKey(ctx context.Context, k SigningKey, since time.Time) error {
	_, err := s.write.ExecContext(ctx, `
		INSERT INTO signing_keys(kid, private, created_at) SELECT $1, $2, $3
		WHERE NOT EXISTS(SELECT 1 FROM signing_keys WHERE created_at > $4)`,
		k.KID, k.Private, k.Created.UnixMilli(), since.UnixMilli())
	return err
}

// DropSigningKey deletes a key. Tokens that it signed are refused from then on.
func (s *Store) DropSigningKey(ctx context.Context, kid string) error {
	_, err := s.write.ExecContext(ctx, `DELETE FROM signing_keys WHERE kid = $1`, kid)
	return err
}
