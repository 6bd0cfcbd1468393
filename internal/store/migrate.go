package store

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date with the files in migrations. "Adding a migration" in
// CONTRIBUTING.md lists the steps to add one. Only one process migrates at a time: an advisory lock
// ensures that on PostgreSQL, and a lock file next to the database on SQLite.
func (s *Store) migrate(ctx context.Context, dir string) error {
	if s.dialect == postgres {
		unlock, err := s.lockMigrations(ctx)
		if err != nil {
			return err
		}
		defer unlock()
	} else {
		fileLock := flock.New(filepath.Join(dir, "migrate.lock"))
		if _, err := fileLock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		defer fileLock.Unlock()
	}
	provider, err := s.migrationProvider()
	if err != nil {
		return err
	}
	if err := s.checkServing(ctx, provider); err != nil {
		return err
	}
	if _, err = provider.Up(withoutTimeLimit(ctx)); err != nil {
		return err
	}
	return s.recordServing(ctx)
}

// lockMigrations waits until no other process migrates. Its lock belongs to a transaction, not to a
// session, so that it also works through a pooler in transaction mode. Earlier releases take the
// lock with the same number for a whole session, so the two still exclude each other.
func (s *Store) lockMigrations(ctx context.Context) (unlock func(), err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err = tx.ExecContext(ctx, `SET LOCAL idle_in_transaction_session_timeout = 0`); err == nil {
		_, err = tx.ExecContext(withoutTimeLimit(ctx), `SELECT pg_advisory_xact_lock($1)`, lock.DefaultLockID)
	}
	if err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return func() { _ = tx.Rollback() }, nil
}

// checkServing sets s.schema, and fails when this program is too old to serve the database.
func (s *Store) checkServing(ctx context.Context, provider *goose.Provider) error {
	serving, err := s.serving(ctx)
	if err != nil {
		return err
	}
	sources := provider.ListSources()
	s.schema = sources[len(sources)-1].Version
	return serving.refusal(s.schema)
}

// migrationProvider returns the migrations of the schema in the database's dialect.
func (s *Store) migrationProvider() (*goose.Provider, error) {
	dialect, folder := goose.DialectSQLite3, "migrations/sqlite"
	if s.dialect == postgres {
		dialect, folder = goose.DialectPostgres, "migrations/postgres"
	}
	files, err := fs.Sub(migrations, folder)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, s.write, files)
}
