package store

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Inspection is the result of [Inspect]. The fields Skew, Webhooks, URLSecret, AuditKey and
// SigningKeys are not set if the database lacks migrations that this program knows.
type Inspection struct {
	Exists         bool  // if false, the first start creates the database
	Schema, Newest int64 // the database's newest migration, and the newest that this program knows
	// Refusal is the error with which this program refuses to serve the database, or nil.
	Refusal error
	// Ahead is how far the clock of a database on another machine is ahead of this machine's.
	Ahead time.Duration
	// Skew is the largest difference between the clocks of running replicas.
	Skew time.Duration
	// Orgs are the slugs of the organizations.
	Orgs []string
	// Webhooks are the URLs that events are sent to.
	Webhooks []string
	// URLSecret is the secret that [Store.URLSecret] returns; nil before the first start.
	URLSecret []byte
	// AuditKey is the secret [AuditKeyName]; nil before the first start.
	AuditKey []byte
	// SigningKeys are the keys that sign tokens, the newest first.
	SigningKeys []SigningKey
}

// Inspect examines the database without changing its schema. It fails with code usage when a
// restore has not ended.
func Inspect(ctx context.Context, o Options) (Inspection, error) {
	if err := CheckRestored(o); err != nil {
		return Inspection{}, err
	}
	if _, err := os.Stat(filepath.Join(o.DataDir, "snapcloud.db")); o.URL == "" && errors.Is(err, os.ErrNotExist) {
		return Inspection{}, nil
	}
	s, err := open(o)
	if err != nil {
		return Inspection{}, err
	}
	defer s.Close()
	provider, err := s.migrationProvider()
	if err != nil {
		return Inspection{}, err
	}
	i := Inspection{Exists: true}
	if i.Schema, i.Newest, err = provider.GetVersions(ctx); err != nil {
		return i, refusedConnection(err)
	}
	serving, err := s.serving(ctx)
	if err != nil {
		return i, err
	}
	i.Refusal = cmp.Or(serving.refusal(i.Newest), s.CheckMoved(ctx))
	if i.Ahead, err = s.ahead(ctx); err != nil || i.Schema == 0 {
		return i, err
	}
	i.Refusal = cmp.Or(i.Refusal, s.CheckTransferred(ctx))
	i.Orgs, err = collect(ctx, s, `SELECT slug FROM orgs WHERE closed = 0 ORDER BY slug`, scanOne[string])
	if err != nil || i.Schema < i.Newest {
		return i, err
	}
	if i.Skew, err = s.ClockSkew(ctx); err != nil {
		return i, err
	}
	i.Webhooks, err = collect(ctx, s, `SELECT DISTINCT url FROM webhooks ORDER BY url`, scanOne[string])
	if err != nil {
		return i, err
	}
	for name, to := range map[string]*[]byte{urlSecretName: &i.URLSecret, AuditKeyName: &i.AuditKey} {
		err := s.row(ctx, `SELECT value FROM secrets WHERE name = $1`, name).Scan(to)
		if noRowsAs(err, nil) != nil {
			return i, err
		}
	}
	i.SigningKeys, err = s.SigningKeys(ctx)
	return i, err
}

// ahead returns how far PostgreSQL's clock is ahead of this process's clock, measured at the middle
// of the query. It returns 0 for SQLite, which uses this machine's clock.
func (s *Store) ahead(ctx context.Context) (time.Duration, error) {
	if s.dialect == sqlite {
		return 0, nil
	}
	asked, began := s.now(), time.Now()
	var server time.Time
	if err := s.read.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&server); err != nil {
		return 0, err
	}
	return server.Sub(asked.Add(time.Since(began) / 2)).Round(time.Millisecond), nil
}
