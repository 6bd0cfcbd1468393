package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"snap"
)

// A process of the service tells the others that it runs by a lease of its
// own: nothing needs it but what must not be done beside a running service.
const (
	runningPrefix = "serve:"
	// RunningLife is how long a process that has said nothing more counts as running.
	RunningLife = 30 * time.Second
)

// SayRunning notes that a process of the service, named by holder, runs.
func (s *Store) SayRunning(ctx context.Context, holder string) error {
	_, err := s.Lease(ctx, runningPrefix+holder, holder, RunningLife)
	return err
}

// SayStopped notes that it has ended.
func (s *Store) SayStopped(ctx context.Context, holder string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name = $1`, runningPrefix+holder)
		return err
	})
}

// Running returns how many processes of the service run, and until when the
// last of them counts as running if it has ended without a word.
func (s *Store) Running(ctx context.Context) (n int, until time.Time, err error) {
	var last sql.NullInt64
	err = s.read.QueryRowContext(ctx,
		`SELECT count(*), max(until) FROM leases WHERE name LIKE 'serve:%' AND until > $1`, s.now().UnixMilli()).Scan(&n, &last)
	return n, timeOf(last), err
}

// transferOf returns where a transfer into this database that has not ended
// comes from, or "".
func (s *Store) transferOf(ctx context.Context) (from string, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT sha256 FROM transfer WHERE blob = ''`).Scan(&from)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return from, err
}

// CheckTransferred reports, with code usage, that a transfer into this database has not
// ended. A service that starts asks it.
func (s *Store) CheckTransferred(ctx context.Context) error {
	from, err := s.transferOf(ctx)
	if err != nil || from == "" {
		return err
	}
	return snap.Usage("a transfer into this database has not ended",
		"run `snapcloud transfer` again: it resumes where it stopped")
}

// RestoringDir is the folder in data_dir in which a restore prepares what it
// puts in place at its end.
const RestoringDir = ".restoring"

// CheckRestored reports, with code usage, that a restore into the data directory
// has not ended. Whoever opens the database asks it before.
func CheckRestored(o Options) error {
	_, err := os.Stat(filepath.Join(o.DataDir, RestoringDir))
	if begun := err == nil; !begun || o.URL != "" {
		return nil
	}
	return snap.Usage("a restore into "+o.DataDir+" has not ended",
		"run `snapcloud restore` again: it resumes where it stopped")
}
