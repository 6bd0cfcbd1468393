package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"snap"
)

// lowestServing is the newest migration of the previous release. Programs that do not know it must
// not serve a database that this program has migrated. Every release sets it; see CONTRIBUTING.md.
const lowestServing = 16

// excludeOlder excludes programs that cannot read archived lines of the audit log from a database
// that has some. Its arguments are archiveSchema and the version of this program.
const excludeOlder = `UPDATE serving SET lowest = $1, version = $2
	WHERE lowest < $1 AND EXISTS(SELECT 1 FROM audit_archive)`

// serving says which programs may serve the database, and where its service was moved.
type serving struct {
	lowest  int64  // the newest migration that a program must know
	version string // the version of the program that wrote the limit
	movedTo string // as [Options.Place] returns it; empty unless the service was moved
	movedAt time.Time
}

func (s *Store) serving(ctx context.Context) (v serving, err error) {
	if known, err := s.hasTable(ctx, "serving"); err != nil || !known {
		return v, err
	}
	err = s.read.QueryRowContext(ctx, `SELECT lowest, version, moved_to, moved_at FROM serving`).
		Scan(&v.lowest, &v.version, &v.movedTo, toTime(&v.movedAt))
	return v, noRowsAs(err, nil)
}

// refusal returns the error, of code usage, for a program whose newest migration is too old to
// serve the database, and nil for other programs.
func (v serving) refusal(newest int64) error {
	if newest >= v.lowest {
		return nil
	}
	return snap.Usage(fmt.Sprintf("this is snapcloud %s with schema %d, and only programs with schema %d or newer may "+
		"serve the database: snapcloud %s has updated it", snap.Version(), newest, v.lowest, v.version),
		"run snapcloud "+v.version+" or newer")
}

// recordServing records that programs older than the previous release must not serve the database.
// If the database has archived lines of the audit log, programs that cannot read them must not
// serve it either.
func (s *Store) recordServing(ctx context.Context) error {
	err := s.exec(ctx, `INSERT INTO serving(id, lowest, version) VALUES(1, $1, $2)
		ON CONFLICT(id) DO UPDATE SET lowest = excluded.lowest, version = excluded.version
		WHERE serving.lowest < excluded.lowest`, lowestServing, snap.Version())
	if err != nil {
		return err
	}
	return s.exec(ctx, excludeOlder, archiveSchema, snap.Version())
}

// ForgetMove deletes the record that `snapcloud transfer` copied this service to another location.
// It also calls [Store.DoubtRefresh], because refresh tokens may have been replaced there.
func (s *Store) ForgetMove(ctx context.Context) error {
	if err := s.DoubtRefresh(ctx); err != nil {
		return err
	}
	return s.exec(ctx, `UPDATE serving SET moved_to = '', moved_at = NULL`)
}

// CheckMoved fails with code usage when `snapcloud transfer` has copied this service to another
// location.
func (s *Store) CheckMoved(ctx context.Context) error {
	v, err := s.serving(ctx)
	if err != nil || v.movedTo == "" {
		return err
	}
	return snap.Usage(fmt.Sprintf("this service was moved to %s on %s", v.movedTo, v.movedAt.Format(time.RFC3339)),
		"use it there, or run `snapcloud serve --again` once to serve from here, without the changes that were "+
			"made there since then")
}

// Place returns the location of the database for people to read, without credentials.
func (o Options) Place() string {
	if u, err := url.Parse(o.URL); o.URL != "" && err == nil {
		return u.Scheme + "://" + u.Host + u.Path
	}
	return filepath.Join(o.DataDir, "snapcloud.db")
}

// RecordMove records that the service was copied to another location, and allows writes again. The
// parameter to is that location as [Options.Place] returns it.
func (f *Frozen) RecordMove(ctx context.Context, to string) error {
	if _, err := f.conn.ExecContext(ctx, `UPDATE serving SET moved_to = $1, moved_at = $2`, to,
		f.s.now().UnixMilli()); err != nil {
		return err
	}
	_, err := f.conn.ExecContext(ctx, `COMMIT`)
	return err
}
