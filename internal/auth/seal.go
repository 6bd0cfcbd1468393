package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"snap"
	"snap/internal/store"
)

// sealedV1 is the first byte of a sealed secret; the nonce and the AES-256-GCM ciphertext follow.
// An unsealed key is DER and begins with 0x30.
const sealedV1 = 1

// The reasons why a secret cannot be decrypted.
var (
	errNoSealer    = errors.New("the stored secrets are encrypted, and auth.key_encryption_key is not set")
	errWrongSealer = errors.New("auth.key_encryption_key is not the key that encrypted the stored secrets")
)

// Sealer encrypts private keys and other secrets before they are stored, so that a person who reads
// a dump of the database cannot sign tokens (AUTH T10). A nil Sealer leaves keys unencrypted.
type Sealer struct {
	key  []byte
	aead cipher.AEAD
}

// NewSealer returns the sealer with this key, 32 bytes as base64, or nil when the key is empty. The
// error does not contain the key.
func NewSealer(key string) (*Sealer, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return nil, nil
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(secret) != 32 {
		return nil, errors.New("must be 32 bytes as base64, as `openssl rand -base64 32` prints them")
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Sealer{secret, aead}, nil
}

// seal encrypts a private key and binds it to the key ID under which it is stored.
func (s *Sealer) seal(kid string, private []byte) []byte {
	if s == nil {
		return private
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return s.aead.Seal(append([]byte{sealedV1}, nonce...), nonce, private, []byte(kid))
}

// open decrypts the result of seal. A key that was stored unencrypted is returned unchanged. The
// next rotation replaces such a signing key with an encrypted one, and [AuditKey] encrypts the key
// of the audit logs.
func (s *Sealer) open(kid string, stored []byte) ([]byte, error) {
	if len(stored) == 0 || stored[0] != sealedV1 {
		return stored, nil
	}
	if s == nil {
		return nil, errNoSealer
	}
	sealed := stored[1:]
	if len(sealed) < s.aead.NonceSize() {
		return nil, fmt.Errorf("the stored secret %s is truncated", kid)
	}
	n := s.aead.NonceSize()
	private, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(kid))
	if err != nil {
		return nil, errWrongSealer
	}
	return private, nil
}

// Seal encrypts a secret and binds it to the name under which it is stored. The sealer must not be
// nil.
func (s *Sealer) Seal(name string, secret []byte) []byte { return s.seal(name, secret) }

// Open decrypts the result of [Sealer.Seal] for the same name.
func (s *Sealer) Open(name string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 || sealed[0] != sealedV1 {
		return nil, fmt.Errorf("%s is not sealed", name)
	}
	secret, err := s.open(name, sealed)
	if errors.Is(err, errWrongSealer) {
		err = fmt.Errorf("%s cannot be decrypted with auth.key_encryption_key", name)
	}
	return secret, err
}

// Bind derives a key of 32 bytes from a secret that is stored unencrypted under this name, so that
// a person who reads a dump of the database cannot compute it. A nil Sealer returns the secret.
func (s *Sealer) Bind(name string, secret []byte) ([]byte, error) {
	if s == nil {
		return secret, nil
	}
	return hkdf.Key(sha256.New, s.key, secret, name, sha256.Size)
}

// Check fails with code usage when the stored signing keys cannot be read with the configured
// sealer. The service calls it when it starts.
func (t *Tokens) Check(ctx context.Context) error {
	_, err := t.keys.load(ctx)
	return explainSealed(err)
}

// Check fails with code usage when the sealer cannot decrypt the newest of the stored signing keys
// or the stored key of the audit logs. Keys that do not exist yet are no error.
func (s *Sealer) Check(signing []store.SigningKey, audit []byte) error {
	if len(signing) > 0 {
		if _, err := s.open(signing[0].KID, signing[0].Private); err != nil {
			return explainSealed(err)
		}
	}
	_, err := s.open(store.AuditKeyName, audit)
	return explainSealedAudit(err)
}

// explainSealed converts the reasons why a signing key cannot be decrypted to an error of code
// usage. It returns any other error unchanged.
func explainSealed(err error) error {
	for _, known := range []error{errNoSealer, errWrongSealer} {
		if errors.Is(err, known) {
			return snap.Usage(known.Error(),
				"set auth.key_encryption_key to the key they were encrypted with, the same on every replica; if that "+
					"key is lost, delete all rows of the table signing_keys; logins then refresh their tokens")
		}
	}
	return err
}

// Reseal returns a function that re-encrypts a stored private key for another sealer, for copying a
// database. The function fails with code usage when the sealer from cannot decrypt the key, or when
// the key is encrypted and the sealer to is nil.
func Reseal(from, to *Sealer) func(kid string, stored []byte) ([]byte, error) {
	return func(kid string, stored []byte) ([]byte, error) {
		private, err := from.open(kid, stored)
		if errors.Is(err, errNoSealer) || errors.Is(err, errWrongSealer) {
			return nil, snap.Usage(err.Error(), "set auth.key_encryption_key in the source's configuration to the key "+
				"that encrypted them")
		}
		if err != nil {
			return nil, err
		}
		if to == nil && len(stored) > 0 && stored[0] == sealedV1 {
			return nil, snap.Usage("the source's secrets are encrypted, and the destination has no "+
				"auth.key_encryption_key", "set it in the destination's configuration")
		}
		return to.seal(kid, private), nil
	}
}
