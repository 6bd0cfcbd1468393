package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"snap"
)

// CheckExists fails with code usage if the SQLite database does not exist, because [Open] would
// create it. It does not check for a database in PostgreSQL.
func CheckExists(o Options) error {
	if o.URL != "" {
		return nil
	}
	_, err := os.Stat(filepath.Join(o.DataDir, "snapcloud.db"))
	if errors.Is(err, os.ErrNotExist) {
		return snap.Usage("there is no database in "+o.DataDir, "name the service's configuration with --config")
	}
	return err
}

// RunningAt is like [Store.Running], but does not migrate the database. A database that was never
// migrated has no running process.
func RunningAt(ctx context.Context, o Options) (n int, err error) {
	s, err := open(o)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if known, err := s.hasTable(ctx, "leases"); err != nil || !known {
		return 0, err
	}
	n, _, err = s.Running(ctx)
	return n, err
}

// CheckBeginAt fails if [Store.BeginTransfer] would fail, but does not migrate the database. A missing
// database counts as empty and is not created.
func CheckBeginAt(ctx context.Context, o Options, source string) error {
	if CheckExists(o) != nil {
		return nil
	}
	s, err := open(o)
	if err != nil {
		return err
	}
	defer s.Close()
	if known, err := s.hasTable(ctx, "orgs"); err != nil || !known {
		return err
	}
	_, err = s.checkBegin(ctx, source)
	return err
}

const hasTableSQLite = `SELECT EXISTS(SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1)`

func (s *Store) hasTable(ctx context.Context, table string) (known bool, err error) {
	text := hasTableSQLite
	if s.dialect == postgres {
		text = `SELECT to_regclass($1) IS NOT NULL`
	}
	err = s.read.QueryRowContext(ctx, text, table).Scan(&known)
	return known, err
}

// Frozen is a database that is read as of one moment while all writes are blocked.
type Frozen struct {
	s    *Store
	conn *sql.Conn
}

// Freeze begins to read the database as of now, and blocks all writes until [Frozen.Release].
func (s *Store) Freeze(ctx context.Context) (*Frozen, error) {
	conn, err := s.write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	begin := []string{`BEGIN IMMEDIATE`}
	if s.dialect == postgres { // lock before the first read, which determines the moment of all reads
		begin = []string{`BEGIN ISOLATION LEVEL REPEATABLE READ`, `SET LOCAL lock_timeout = '10s'`,
			`SET LOCAL idle_in_transaction_session_timeout = 0`, `LOCK TABLE ` + tableNames() + ` IN SHARE MODE`}
	}
	f := &Frozen{s, conn}
	for _, text := range begin {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the database against writes: %w", err), f.Release())
		}
	}
	return f, nil
}

func tableNames() string {
	var list []string
	for _, t := range tables() {
		list = append(list, t.name)
	}
	return strings.Join(list, ", ")
}

// Release allows writes again.
func (f *Frozen) Release() error {
	_, err := f.conn.ExecContext(context.Background(), `ROLLBACK`)
	if err != nil && strings.Contains(err.Error(), "no transaction is active") || errors.Is(err, sql.ErrConnDone) ||
		Unavailable(err) {
		err = nil // the transaction ended with its connection
	}
	return errors.Join(err, f.conn.Close())
}

// Object is an object that holds a snapshot's bytes, or lines of the audit log, as the database
// describes it.
type Object struct {
	Key    string
	Size   int64
	SHA256 string
}

// Objects returns at most limit objects that the database needs and whose keys are greater than
// after, in the order of their keys.
func (f *Frozen) Objects(ctx context.Context, after string, limit int) ([]Object, error) {
	return objects(withoutTimeLimit(ctx), f.conn, neededObjects, after, limit)
}

// querier is a database, connection or transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
}

// neededObjects selects the objects that hold snapshots and lines of the audit log.
const neededObjects = `(SELECT blob, size, sha256 FROM snapshots
	UNION ALL SELECT blob, size, sha256 FROM audit_archive)`

func objects(ctx context.Context, q querier, needed, after string, limit int) ([]Object, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT blob, max(size), max(sha256) FROM `+needed+` AS o WHERE blob > $1 GROUP BY blob ORDER BY blob LIMIT $2`,
		after, limit)
	if err != nil {
		return nil, err
	}
	return drain(rows, func(rows *sql.Rows) (o Object, err error) {
		err = rows.Scan(&o.Key, &o.Size, &o.SHA256)
		return o, err
	})
}
