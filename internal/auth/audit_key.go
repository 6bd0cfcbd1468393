package auth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"

	"snap"
	"snap/internal/auditlog"
	"snap/internal/store"
)

// AuditKey returns the key that signs the checkpoints of the audit logs. All replicas share the
// key. AuditKey creates it if there is none, and stores it encrypted like the signing keys. A key
// that was stored before auth.key_encryption_key was set is encrypted now.
func AuditKey(ctx context.Context, st *store.Store, sealer *Sealer) (auditlog.Key, error) {
	stored, err := st.SecretOrCreate(ctx, store.AuditKeyName, func() ([]byte, error) {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(private)
		return sealer.seal(store.AuditKeyName, der), err
	})
	if err != nil {
		return auditlog.Key{}, err
	}
	der, err := sealer.open(store.AuditKeyName, stored)
	if err != nil {
		return auditlog.Key{}, explainSealedAudit(err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return auditlog.Key{}, err
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return auditlog.Key{}, errors.New("the key that signs the audit log is not an Ed25519 key")
	}
	if sealed := sealer.seal(store.AuditKeyName, der); bytes.Equal(stored, der) && !bytes.Equal(sealed, der) {
		err = st.ReplaceSecret(ctx, store.AuditKeyName, stored, sealed)
	}
	return auditlog.NewKey(private), err
}

// explainSealedAudit is like explainSealed, for the key that signs audit checkpoints.
func explainSealedAudit(err error) error {
	if !errors.Is(err, errNoSealer) && !errors.Is(err, errWrongSealer) {
		return err
	}
	return snap.Usage("the key that signs the audit log is encrypted with another auth.key_encryption_key, or none "+
		"is set",
		"set auth.key_encryption_key to the key it was encrypted with; if that key is lost, delete the row "+
			store.AuditKeyName+" of the table secrets, after which verifiers of the audit log see a new key")
}
