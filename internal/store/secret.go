package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// Secret returns the service's secret with this name: size random bytes that are created once and
// shared by all replicas.
func (s *Store) Secret(ctx context.Context, name string, size int) (value []byte, err error) {
	value, err = s.SecretOrCreate(ctx, name, func() ([]byte, error) {
		random := make([]byte, size)
		rand.Read(random)
		return random, nil
	})
	if err == nil && len(value) != size {
		err = fmt.Errorf("the secret %s has %d bytes instead of %d", name, len(value), size)
	}
	return value, err
}

// urlSecretName is the name of the secret that [Store.URLSecret] returns.
const urlSecretName = "urls"

// URLSecret returns the secret from which the ID of the service and the key that signs its URLs are
// derived.
func (s *Store) URLSecret(ctx context.Context) ([]byte, error) {
	return s.Secret(ctx, urlSecretName, 32)
}

// SecretOrCreate is like [Store.Secret], but calls create for the value, which can have any size.
func (s *Store) SecretOrCreate(ctx context.Context, name string, create func() ([]byte, error)) (value []byte,
	err error) {
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM secrets WHERE name = $1`, name).Scan(&value)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if value, err = create(); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO secrets(name, value) VALUES($1, $2)`, name, value)
		return err
	})
	return value, err
}

// ReplaceSecret replaces the value of a secret if the current value equals old.
func (s *Store) ReplaceSecret(ctx context.Context, name string, old, value []byte) error {
	_, err := s.write.ExecContext(ctx, `UPDATE secrets SET value = $3 WHERE name = $1 AND value = $2`, name, old, value)
	return err
}

// AuditKeyName is the name of the secret that signs the checkpoints of audit logs. The secret is
// encrypted like the signing keys.
const AuditKeyName = "audit"
