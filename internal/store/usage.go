package store

import (
	"context"
	"database/sql"
	"fmt"

	"snap"
)

// Quotas limits what one user and one organization may store. Zero means no limit. All
// organization-level keys of an organization count as one user.
type Quotas struct {
	UserUploads, OrgUploads int   // open at one time
	UserBytes, OrgBytes     int64 // of stored snapshots
}

// Usage is the storage that a user or an organization uses.
type Usage struct {
	Snapshots int
	Bytes     int64 // of the snapshots
	Uploads   int   // begun but not complete
	Announced int64 // bytes of the unfinished uploads
}

// These statements return the usage of a user of an organization, and of a whole organization. Each
// sum reads only an index.
const (
	userUsage = `SELECT (SELECT count(*) FROM snapshots WHERE org_id = $1 AND coalesce(owner_id, 0) = $2),
  (SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM snapshots WHERE org_id = $1 AND coalesce(owner_id, 0) = $2),
  (SELECT count(*) FROM uploads WHERE org_id = $1 AND coalesce(owner_id, 0) = $2),
  (SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM uploads WHERE org_id = $1 AND coalesce(owner_id, 0) = $2)`
	orgUsage = `SELECT (SELECT count(*) FROM snapshots WHERE org_id = $1),
  (SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM snapshots WHERE org_id = $1),
  (SELECT count(*) FROM uploads WHERE org_id = $1),
  (SELECT CAST(coalesce(sum(size), 0) AS bigint) FROM uploads WHERE org_id = $1)`
)

func scanUsage(row scanner) (u Usage, err error) {
	err = row.Scan(&u.Snapshots, &u.Bytes, &u.Uploads, &u.Announced)
	return u, err
}

// Usage returns the usage of the caller. For an organization-level key it is the usage of all such
// keys of the organization.
func (s *Store) Usage(ctx context.Context, c snap.Caller) (Usage, error) {
	return scanUsage(s.row(ctx, userUsage, c.Org.ID, userID(c).Int64))
}

// OrgUsage returns the usage of an organization.
func (s *Store) OrgUsage(ctx context.Context, orgID int64) (Usage, error) {
	return scanUsage(s.row(ctx, orgUsage, orgID))
}

// checkQuotas fails with quota_exceeded if the caller may not begin a push of this many bytes.
// Bytes that have not arrived yet count only for the user who announced them, so that nobody can
// use up an organization's quota with announcements.
func (s *Store) checkQuotas(ctx context.Context, tx *sql.Tx, c snap.Caller, size int64) error {
	q := s.quotas
	if q == (Quotas{}) {
		return nil
	}
	if err := s.lockOrg(ctx, tx, c.Org.ID); err != nil {
		return err
	}
	mine, err := scanUsage(tx.QueryRowContext(ctx, userUsage, c.Org.ID, userID(c).Int64))
	if err != nil {
		return err
	}
	if q.UserUploads > 0 && mine.Uploads >= q.UserUploads {
		return tooManyUploads("you have", mine.Uploads)
	}
	if q.UserBytes > 0 && mine.Bytes+mine.Announced+size > q.UserBytes {
		return noBytesLeft("you have already stored or announced", mine.Bytes+mine.Announced, size, q.UserBytes)
	}
	if q.OrgUploads == 0 && q.OrgBytes == 0 {
		return nil
	}
	org, err := scanUsage(tx.QueryRowContext(ctx, orgUsage, c.Org.ID))
	if err != nil {
		return err
	}
	if q.OrgUploads > 0 && org.Uploads >= q.OrgUploads {
		return tooManyUploads("your organization has", org.Uploads)
	}
	return q.checkOrgBytes(org, size)
}

// checkStored fails with quota_exceeded if an upload whose bytes have arrived would exceed the
// organization's quota. That is possible when several uploads began while there was room for only
// one of them.
func (s *Store) checkStored(ctx context.Context, tx *sql.Tx, c snap.Caller, size int64) error {
	if s.quotas.OrgBytes == 0 {
		return nil
	}
	if err := s.lockOrg(ctx, tx, c.Org.ID); err != nil {
		return err
	}
	org, err := scanUsage(tx.QueryRowContext(ctx, orgUsage, c.Org.ID))
	if err != nil {
		return err
	}
	return s.quotas.checkOrgBytes(org, size)
}

func (q Quotas) checkOrgBytes(org Usage, size int64) error {
	if q.OrgBytes > 0 && org.Bytes+size > q.OrgBytes {
		return noBytesLeft("your organization has already stored", org.Bytes, size, q.OrgBytes)
	}
	return nil
}

func tooManyUploads(who string, n int) error {
	return &snap.Error{
		Code:   snap.CodeQuota,
		Detail: fmt.Sprintf("%s %d unfinished uploads; more are not allowed", who, n),
		Hint:   "finish one, or end one with `snapcli cloud uploads abort ID`; `snapcli cloud uploads` lists yours",
	}
}

func noBytesLeft(who string, used, size, limit int64) error {
	return &snap.Error{
		Code: snap.CodeQuota,
		Detail: fmt.Sprintf("the snapshot has %d bytes, and %s %d of the %d bytes allowed",
			size, who, used, limit),
		Hint: "delete snapshots that are no longer needed, or ask the service's operator to raise the quota",
	}
}

// Uploads returns the caller's unfinished pushes, newest first.
func (s *Store) Uploads(ctx context.Context, c snap.Caller) ([]Upload, error) {
	return collect(ctx, s,
		selectUpload+`WHERE p.org_id = $1 AND coalesce(p.owner_id, 0) = $2 ORDER BY p.created_at DESC, p.id`,
		func(rows *sql.Rows) (Upload, error) { return scanUpload(rows) }, c.Org.ID, userID(c).Int64)
}

// AbortUpload ends one of the caller's unfinished pushes. The bytes that arrived become garbage. It
// fails with snap.ErrNotFound if there is no such push.
func (s *Store) AbortUpload(ctx context.Context, c snap.Caller, u Upload) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		if _, err := ownUpload(ctx, tx, c, u.ID); err != nil {
			return hide(err)
		}
		if err := endUpload(ctx, tx, u.ID); err != nil {
			return err
		}
		return discard(ctx, tx, Garbage{u.Blob, u.BlobUpload})
	})
}
