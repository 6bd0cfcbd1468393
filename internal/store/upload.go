package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"time"

	"snap"
)

// Upload is a push that has begun and is not complete. Its ID becomes the snapshot's.
type Upload struct {
	ID, Target, Name         string
	Type                     snap.Type
	Engine                   snap.Engine
	Size                     int64
	SHA256, Blob, BlobUpload string // Blob is the key in the object store, BlobUpload its name for the upload
	PartSize                 int64
	Certificate              string // as received, or empty
	Created, Touched         time.Time
}

// userID returns the ID of the caller's user for a column that may be null.
func userID(c snap.Caller) sql.NullInt64 {
	if c.User == nil {
		return sql.NullInt64{}
	}
	return nullID(c.User.ID)
}

// BeginUpload records that the caller starts a push. It fails with quota_exceeded if the push would
// exceed the quota of the caller or of the organization.
func (s *Store) BeginUpload(ctx context.Context, c snap.Caller, u Upload) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.checkQuotas(ctx, tx, c, u.Size); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO uploads(id, org_id, owner_id, pushed_with, target, name, type, engine, size, sha256, blob,
				blob_upload, part_size, created_at, touched_at, certificate)
			VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)`,
			u.ID, c.Org.ID, userID(c), nullID(c.Credential.ID), u.Target, u.Name, string(u.Type), string(u.Engine),
			u.Size, u.SHA256, u.Blob, u.BlobUpload, u.PartSize, s.now().UnixMilli(), u.Certificate)
		return err
	})
}

// FindPush returns the caller's own earlier push of the same bytes under the same target, name and
// type: done if it is complete, begun if it is not. Both are nil if there is none. FindPush never
// reveals the pushes of other callers. For an organization-level key, all pushes by such keys of
// the organization count as its own.
func (s *Store) FindPush(ctx context.Context, c snap.Caller, u Upload) (done *snap.Snapshot, begun *Upload, err error) {
	sn, err := scanSnapshot(s.row(ctx, selectOne+visible+` AND s.org_id = $3 AND coalesce(s.owner_id, 0) = $5
		AND s.sha256 = $6 AND s.target = $7 AND s.name = $8 AND s.type = $9 ORDER BY s.key DESC LIMIT 1`,
		append(s.viewerArgs(c), userID(c).Int64, u.SHA256, u.Target, u.Name, string(u.Type))...), c)
	switch {
	case err == nil:
		return &sn, nil, nil
	case !errors.Is(err, sql.ErrNoRows):
		return nil, nil, err
	}
	up, err := scanUpload(s.row(ctx,
		selectUpload+`WHERE coalesce(p.owner_id, 0) = $1 AND p.org_id = $2 AND p.sha256 = $3 AND p.target = $4
		AND p.name = $5 AND p.type = $6 ORDER BY p.created_at DESC LIMIT 1`,
		userID(c).Int64, c.Org.ID, u.SHA256, u.Target, u.Name, string(u.Type)))
	if err != nil {
		return nil, nil, noRowsAs(err, nil)
	}
	return nil, &up, nil
}

const selectUpload = `SELECT p.id, p.target, p.name, p.type, p.engine, p.size, p.sha256, p.blob, p.blob_upload,
	p.part_size, p.created_at, p.touched_at, p.certificate FROM uploads p `

func scanUpload(row scanner) (u Upload, err error) {
	err = row.Scan(&u.ID, &u.Target, &u.Name, &u.Type, &u.Engine, &u.Size, &u.SHA256, &u.Blob, &u.BlobUpload,
		&u.PartSize, toTime(&u.Created), toTime(&u.Touched), &u.Certificate)
	return u, err
}

// Upload returns a push that the caller began and records that it is still in progress. It fails
// with snap.ErrNotFound if the caller has no such push.
func (s *Store) Upload(ctx context.Context, c snap.Caller, id string) (u Upload, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		u, err = ownUpload(ctx, tx, c, id)
		if err != nil {
			return hide(err)
		}
		u.Touched = s.now().UTC()
		_, err = tx.ExecContext(ctx, `UPDATE uploads SET touched_at = $2 WHERE id = $1`, id, u.Touched.UnixMilli())
		return err
	})
	return u, err
}

func ownUpload(ctx context.Context, tx *sql.Tx, c snap.Caller, id string) (Upload, error) {
	return scanUpload(tx.QueryRowContext(ctx,
		selectUpload+`WHERE p.id = $1 AND p.org_id = $2 AND coalesce(p.owner_id, 0) = $3`,
		id, c.Org.ID, userID(c).Int64))
}

// CompleteUpload turns the caller's upload, whose bytes were verified, into a private snapshot that
// only its pusher and the organization's admins can see (SPEC 1), and applies the channels of its
// target. Calling it again returns the same snapshot. It fails with quota_exceeded if the snapshot
// would exceed the organization's quota.
func (s *Store) CompleteUpload(ctx context.Context, c snap.Caller, u Upload) (snap.Snapshot, error) {
	err := s.txUnique(ctx, func(tx *sql.Tx) error {
		begun, err := ownUpload(ctx, tx, c, u.ID)
		if err != nil {
			return noRowsAs(err, nil) // already complete, or never begun; looked up below
		}
		if err := s.checkStored(ctx, tx, c, begun.Size); err != nil {
			return err
		}
		if err := endUpload(ctx, tx, u.ID); err != nil {
			return err
		}
		return s.insertSnapshot(ctx, tx, c, begun)
	})
	if err != nil && !errors.Is(err, snap.ErrNotFound) { // another request may have completed it
		return snap.Snapshot{}, err
	}
	return s.Snapshot(ctx, c, u.ID)
}

// endUpload deletes an unfinished push. It fails with snap.ErrNotFound if another transaction
// deleted it after this one read it.
func endUpload(ctx context.Context, tx *sql.Tx, id string) error {
	result, err := tx.ExecContext(ctx, `DELETE FROM uploads WHERE id = $1`, id)
	return requireChanged(result, err, snap.ErrNotFound)
}

// insertSnapshot writes a snapshot and its first grants.
func (s *Store) insertSnapshot(ctx context.Context, tx *sql.Tx, c snap.Caller, u Upload) error {
	now := s.now()
	if err := s.addTarget(ctx, tx, c.Org.ID, u.Target); err != nil {
		return err
	}
	sn := snap.Snapshot{Key: newKey(now), ID: u.ID, Org: c.Org, Target: u.Target}
	named := namingOf(u.Name, u.Target)
	label, err := s.labelID(ctx, tx, named.label)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO snapshots(key, id, org_id, owner_id, pushed_with, target_id, target, name, folded, type, engine,
			size, sha256, blob, created_at, named_day, named_time, label_id, certificate)
		SELECT $1, $2, $3, $4, $5, id, name, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18
		FROM targets WHERE name = $6`,
		sn.Key, u.ID, c.Org.ID, userID(c), nullID(c.Credential.ID), u.Target, u.Name, snap.FoldCase(u.Name),
		string(u.Type), string(u.Engine), u.Size, u.SHA256, u.Blob, now.UnixMilli(),
		named.day, named.time, label, u.Certificate)
	if err != nil {
		return err
	}
	pusher, d := snap.AudienceOf(snap.KindKeys, c.Org.ID), snap.AuditDetail{Name: u.Name, Bytes: u.Size}
	if c.User != nil {
		pusher = snap.AudienceOf(snap.KindUser, c.User.ID)
		d.Owner, d.Account = c.User.Email, c.User.ID
	}
	for _, a := range []snap.Audience{snap.AudienceOf(snap.KindAdmins, c.Org.ID), pusher} {
		if _, err := s.grant(ctx, tx, c, sn, a, time.Time{}); err != nil {
			return err
		}
	}
	if err := s.recordOn(ctx, tx, c, sn, snap.AuditPushed, d); err != nil {
		return err
	}
	return s.applyChannels(ctx, tx, sn, u.Type)
}

// keyBits is how many bits of a key are random.
const keyBits = 22

// newKey returns a snapshot's internal key: the time in milliseconds, so that keys order snapshots
// by time, and 22 random bits. If two keys are equal, the second insert violates the primary key
// and its transaction is repeated.
func newKey(now time.Time) int64 {
	var b [8]byte
	rand.Read(b[:])
	return now.UnixMilli()<<keyBits | int64(binary.BigEndian.Uint64(b[:])&(1<<keyBits-1))
}

// addTarget stores a target and marks it to be indexed for the organization's searches.
func (s *Store) addTarget(ctx context.Context, tx *sql.Tx, orgID int64, target string) error {
	if _, err := tx.ExecContext(ctx,
		`INSERT INTO targets(name) VALUES($1) ON CONFLICT(name) DO NOTHING`, target); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx,
		`INSERT INTO org_targets(org_id, target_id, folded) SELECT $1, id, $3 FROM targets WHERE name = $2
		ON CONFLICT(org_id, target_id) DO NOTHING`, orgID, target, snap.FoldCase(target))
	return err
}

// StaleUploads returns at most limit pushes that no one has resumed since the given time, the
// oldest first. It is for the background work, which also removes their bytes.
func (s *Store) StaleUploads(ctx context.Context, before time.Time, limit int) ([]Upload, error) {
	return collect(ctx, s, selectUpload+`WHERE p.touched_at < $1 ORDER BY p.touched_at LIMIT $2`,
		func(rows *sql.Rows) (Upload, error) { return scanUpload(rows) }, before.UnixMilli(), limit)
}

// DropUpload deletes an unfinished push, if it exists.
func (s *Store) DropUpload(ctx context.Context, id string) error {
	return s.exec(ctx, `DELETE FROM uploads WHERE id = $1`, id)
}
