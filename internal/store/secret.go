package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// Secret returns the service's secret of this name: size random bytes, made
// once and the same for every replica from then on.
func (s *Store) Secret(ctx context.Context, name string, size int) (value []byte, err error) {
	err = s.txUnique(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT value FROM secrets WHERE name = $1`, name).Scan(&value)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		value = make([]byte, size)
		rand.Read(value)
		_, err = tx.ExecContext(ctx, `INSERT INTO secrets(name, value) VALUES($1, $2)`, name, value)
		return err
	})
	if err == nil && len(value) != size {
		err = fmt.Errorf("the secret %s has %d bytes instead of %d", name, len(value), size)
	}
	return value, err
}
