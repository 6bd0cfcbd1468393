package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"snap"
	"snap/internal/certificate"
)

// CertificateKey is a public key whose certificates an organization accepts, unless the key is
// revoked.
type CertificateKey struct {
	Public  certificate.Public
	Name    string
	Created time.Time
	Revoked time.Time // zero if it is not revoked
}

// maxCertificateKeys is the maximum number of keys of an organization, including revoked ones.
const maxCertificateKeys = 1000

// CertificateKeys returns the keys of the caller's organization, the oldest first.
func (s *Store) CertificateKeys(ctx context.Context, c snap.Caller) ([]CertificateKey, error) {
	return collect(ctx, s, selectCertificateKeys, scanCertificateKey, c.Org.ID)
}

const selectCertificateKeys = `SELECT public, name, created_at, revoked_at FROM certificate_keys
	WHERE org_id = $1 ORDER BY created_at, id`

func scanCertificateKey(rows *sql.Rows) (k CertificateKey, err error) {
	var public string
	if err = rows.Scan(&public, &k.Name, toTime(&k.Created), toTime(&k.Revoked)); err != nil {
		return k, err
	}
	k.Public, err = certificate.ParsePublic(public)
	return k, err
}

// AddCertificateKey registers a key. It fails with code conflict if the key is registered already,
// even if it is revoked, and with code invalid if the organization has too many keys.
func (s *Store) AddCertificateKey(ctx context.Context, c snap.Caller, public certificate.Public,
	name string) (CertificateKey, error) {
	k := CertificateKey{Public: public, Name: name, Created: time.UnixMilli(s.now().UnixMilli()).UTC()}
	err := s.tx(ctx, func(tx *sql.Tx) error {
		if err := s.lockOrg(ctx, tx, c.Org.ID); err != nil {
			return err
		}
		all, err := certificateKeys(ctx, tx, c.Org.ID)
		if err != nil {
			return err
		}
		if len(all) >= maxCertificateKeys {
			return snap.Invalid(fmt.Sprintf("the organization has %d certificate keys; more are not allowed",
				len(all)), "")
		}
		for _, old := range all {
			if old.Public.ID() == public.ID() {
				return &snap.Error{Code: snap.CodeConflict,
					Detail: fmt.Sprintf("the certificate key %s is registered already", public.ID()),
					Hint:   "list the certificate keys; a revoked one stays revoked"}
			}
		}
		if _, err := tx.ExecContext(ctx,
			`INSERT INTO certificate_keys(org_id, id, public, name, created_at) VALUES($1, $2, $3, $4, $5)`,
			c.Org.ID, public.ID(), public.String(), name, k.Created.UnixMilli()); err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditCertificateKeyAdded,
			Detail: snap.AuditDetail{Name: name, PublicKey: public.String()}})
	})
	return k, err
}

// RevokeCertificateKey permanently refuses the certificates of a key. Revoking a key again changes
// nothing. RevokeCertificateKey fails with code not_found if there is no such key.
func (s *Store) RevokeCertificateKey(ctx context.Context, c snap.Caller, id string) error {
	return s.tx(ctx, func(tx *sql.Tx) error {
		d := snap.AuditDetail{}
		var revoked sql.NullInt64
		err := tx.QueryRowContext(ctx,
			`UPDATE certificate_keys SET name = name WHERE org_id = $1 AND id = $2 RETURNING name, public, revoked_at`,
			c.Org.ID, id).Scan(&d.Name, &d.PublicKey, &revoked)
		if err != nil || revoked.Valid {
			return noRowsAs(err, &snap.Error{Code: snap.CodeNotFound,
				Detail: fmt.Sprintf("there is no certificate key %.40q", id),
				Hint:   "list the certificate keys to see which exist"})
		}
		if _, err := tx.ExecContext(ctx, `UPDATE certificate_keys SET revoked_at = $3 WHERE org_id = $1 AND id = $2`,
			c.Org.ID, id, s.now().UnixMilli()); err != nil {
			return err
		}
		return s.record(ctx, tx, c.Org.ID, c, snap.AuditEntry{Action: snap.AuditCertificateKeyRevoked, Detail: d})
	})
}

// CheckCertificate checks a certificate that was received with a push of a file. It fails with code
// invalid if the certificate cannot be read, belongs to another file, or was altered after a
// registered key signed it. An unknown or revoked key is accepted here; it matters only when the
// snapshot is shared.
func (s *Store) CheckCertificate(ctx context.Context, c snap.Caller, envelope []byte, sha256 string) error {
	keys, err := s.CertificateKeys(ctx, c)
	if err != nil {
		return err
	}
	_, _, err = certificate.Check(envelope, sha256, known(keys))
	var refused *snap.Error
	switch {
	case errors.Is(err, certificate.ErrUnknownKey), errors.Is(err, certificate.ErrRevokedKey):
		return nil
	case errors.As(err, &refused):
		return snap.Invalid(refused.Detail, refused.Hint)
	}
	return err
}

// AddCertificate stores the certificate of an unfinished push. It has no effect if the push already
// has one.
func (s *Store) AddCertificate(ctx context.Context, c snap.Caller, id, envelope string) error {
	return s.exec(ctx, `UPDATE uploads SET certificate = $2
		WHERE id = $1 AND org_id = $3 AND certificate = ''`, id, envelope, c.Org.ID)
}

// Certify stores the certificate of a snapshot. It has no effect if the snapshot already has one.
func (s *Store) Certify(ctx context.Context, c snap.Caller, sn snap.Snapshot, envelope string) error {
	return s.change(ctx, c, sn, func(tx *sql.Tx) error {
		added, err := changed(tx.ExecContext(ctx, `UPDATE snapshots SET certificate = $2
			WHERE key = $1 AND org_id = $3 AND certificate = ''`, sn.Key, envelope, c.Org.ID))
		if err != nil || !added {
			return err
		}
		return s.recordOn(ctx, tx, c, sn, snap.AuditCertified, snap.AuditDetail{Name: sn.Name})
	})
}

// Envelope returns a snapshot's certificate as received, or "" if there is none. It fails with
// snap.ErrNotFound if the caller can no longer see the snapshot.
func (s *Store) Envelope(ctx context.Context, c snap.Caller, sn snap.Snapshot) (envelope string, err error) {
	err = s.row(ctx, `SELECT s.certificate FROM snapshots s WHERE s.key = $3 AND `+visible,
		c.Principal(), s.now().UnixMilli(), sn.Key).Scan(&envelope)
	return envelope, hide(err)
}

// Certificate returns the state of a snapshot's certificate: whether a key that the snapshot's
// organization registered signed it. It fails with snap.ErrNotFound if the caller can no longer see
// the snapshot.
func (s *Store) Certificate(ctx context.Context, c snap.Caller, sn snap.Snapshot) (snap.Certificate, error) {
	envelope, err := s.Envelope(ctx, c, sn)
	if err != nil || envelope == "" {
		return snap.Certificate{State: snap.CertificateMissing}, err
	}
	keys, err := collect(ctx, s, selectCertificateKeys, scanCertificateKey, sn.Org.ID)
	return stateOf(envelope, sn.SHA256, keys), err
}

// certificateOf is [Store.Certificate] within a transaction, for any caller.
func certificateOf(ctx context.Context, tx *sql.Tx, sn snap.Snapshot) (snap.Certificate, error) {
	var envelope, sum string
	err := tx.QueryRowContext(ctx, `SELECT certificate, sha256 FROM snapshots WHERE key = $1`, sn.Key).
		Scan(&envelope, &sum)
	if err != nil {
		return snap.Certificate{}, err
	}
	keys, err := certificateKeys(ctx, tx, sn.Org.ID)
	return stateOf(envelope, sum, keys), err
}

func certificateKeys(ctx context.Context, tx *sql.Tx, orgID int64) ([]CertificateKey, error) {
	return txCollect(ctx, tx, selectCertificateKeys, scanCertificateKey, orgID)
}

func known(keys []CertificateKey) (all []certificate.KnownKey) {
	for _, k := range keys {
		all = append(all, certificate.KnownKey{Public: k.Public, Name: k.Name, Revoked: !k.Revoked.IsZero()})
	}
	return all
}

// stateOf returns the state of the certificate of a file with this SHA-256.
func stateOf(envelope, sha256 string, keys []CertificateKey) snap.Certificate {
	if envelope == "" {
		return snap.Certificate{State: snap.CertificateMissing}
	}
	_, by, err := certificate.Check([]byte(envelope), sha256, known(keys))
	c := snap.Certificate{State: snap.CertificateValid, Key: certificate.NamedKey([]byte(envelope)), KeyName: by.Name}
	switch {
	case errors.Is(err, certificate.ErrUnknownKey):
		c.State = snap.CertificateUnknown
	case errors.Is(err, certificate.ErrRevokedKey):
		c.State = snap.CertificateRevoked
	case err != nil:
		return snap.Certificate{State: snap.CertificateInvalid}
	}
	return c
}
