package store

import (
	"context"
	"encoding/hex"

	"snap"
)

// BeginTransfer records that a transfer from a source into this empty database has begun. source is
// any string that identifies the source. Another call with the same source resumes the transfer; a
// different source is refused.
func (s *Store) BeginTransfer(ctx context.Context, source string) error {
	resumes, err := s.checkBegin(ctx, source)
	if err != nil || resumes {
		return err
	}
	return s.exec(ctx, `INSERT INTO transfer(blob, sha256) VALUES('', $1)`, source)
}

// checkBegin returns the error of BeginTransfer, and reports whether the transfer has already begun.
func (s *Store) checkBegin(ctx context.Context, source string) (resumes bool, err error) {
	begun, err := s.transferOf(ctx)
	if err != nil || begun == source {
		return begun == source, err
	}
	if begun != "" {
		return false, snap.Usage("a transfer from another service into this database has already begun",
			"resume that one, or use an empty database")
	}
	return false, s.CheckEmpty(ctx)
}

// CheckEmpty fails with code usage when the database is not empty.
func (s *Store) CheckEmpty(ctx context.Context) error {
	return requireEmpty(ctx, s.read)
}

// RecordCopied records that an object has been copied and verified.
func (s *Store) RecordCopied(ctx context.Context, o Object) error {
	return s.exec(ctx, `INSERT INTO transfer(blob, sha256) VALUES($1, $2)
		ON CONFLICT(blob) DO UPDATE SET sha256 = excluded.sha256`, o.Key, o.SHA256)
}

// IsCopied reports whether [Store.RecordCopied] recorded an object.
func (s *Store) IsCopied(ctx context.Context, o Object) (copied bool, err error) {
	err = s.read.QueryRowContext(ctx,
		`SELECT EXISTS(SELECT 1 FROM transfer WHERE blob = $1 AND sha256 = $2)`, o.Key, o.SHA256).Scan(&copied)
	return copied, err
}

// Identity returns a string that identifies this database's content: a digest of its organizations
// and of the service's secrets.
func (f *Frozen) Identity(ctx context.Context) (string, error) {
	ctx = withoutTimeLimit(ctx)
	var c content
	for _, text := range []string{`SELECT name, value FROM secrets`, `SELECT id, slug FROM orgs`} {
		part, err := contentOf(ctx, f.conn, text, 2)
		if err != nil {
			return "", err
		}
		for i, b := range part.sum {
			c.sum[i] ^= b
		}
	}
	return hex.EncodeToString(c.sum[:8]), nil
}

// Totals returns the numbers of rows and objects to copy, and the objects' size in bytes.
func (f *Frozen) Totals(ctx context.Context) (rows, objects, bytes int64, err error) {
	ctx = withoutTimeLimit(ctx)
	for _, t := range copiedTables() {
		var n int64
		if err := f.conn.QueryRowContext(ctx, `SELECT count(*) FROM `+t.name).Scan(&n); err != nil {
			return 0, 0, 0, err
		}
		rows += n
	}
	err = f.conn.QueryRowContext(ctx,
		`SELECT count(*), coalesce(CAST(sum(size) AS bigint), 0)
		FROM (SELECT blob, max(size) AS size FROM `+neededObjects+` AS o GROUP BY blob) AS o`).Scan(&objects, &bytes)
	return rows, objects, bytes, err
}

// transferOf returns the source of an unfinished transfer into this database, or "".
func (s *Store) transferOf(ctx context.Context) (from string, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT sha256 FROM transfer WHERE blob = ''`).Scan(&from)
	return from, noRowsAs(err, nil)
}

// CheckTransferred fails with code usage when a transfer into this database has not ended. The
// service calls it when it starts.
func (s *Store) CheckTransferred(ctx context.Context) error {
	from, err := s.transferOf(ctx)
	if err != nil || from == "" {
		return err
	}
	return snap.Usage("a transfer into this database has not finished",
		"run `snapcloud transfer` again: it resumes where it stopped")
}
