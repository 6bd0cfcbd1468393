package certificate

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"snap"
)

// The prefixes of keys in their text form.
const (
	publicPrefix  = "snapkey-"
	privatePrefix = "SNAPCLI-SIGNING-KEY-"
)

// idLength is the length of a key's ID.
const idLength = 16

// Public is a public key.
type Public struct{ key ed25519.PublicKey }

// Private is a private key. It implements the signer of DSSE.
type Private struct{ key ed25519.PrivateKey }

// KnownKey is a public key whose certificates are accepted, unless the key is revoked.
type KnownKey struct {
	Public  Public
	Name    string
	Revoked bool
}

// New returns a random key.
func New() Private {
	_, key, _ := ed25519.GenerateKey(rand.Reader) // never fails, see crypto/rand
	return Private{key}
}

// String returns the key as text. It is a secret.
func (k Private) String() string {
	return privatePrefix + base64.RawURLEncoding.EncodeToString(k.key.Seed())
}

// ParsePrivate parses a key in the form of [Private.String]. It fails with code usage.
func ParsePrivate(text string) (Private, error) {
	seed, err := decode(text, privatePrefix, ed25519.SeedSize)
	if err != nil {
		return Private{}, snap.Usage("the signing key is damaged: it is not "+privatePrefix+" followed by a valid key",
			"restore it, or make a new one with `snapcli keys new`")
	}
	return Private{ed25519.NewKeyFromSeed(seed)}, nil
}

// PublicKey returns the public key.
func (k Private) PublicKey() Public {
	public, _ := k.key.Public().(ed25519.PublicKey)
	return Public{public}
}

// Sign implements the signer of DSSE.
func (k Private) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.key, data), nil
}

// KeyID implements the signer of DSSE.
func (k Private) KeyID() (string, error) { return k.PublicKey().ID(), nil }

// String returns the key as text.
func (k Public) String() string { return publicPrefix + base64.RawURLEncoding.EncodeToString(k.key) }

// ParsePublic parses a key in the form of [Public.String]. It fails with code invalid.
func ParsePublic(text string) (Public, error) {
	key, err := decode(text, publicPrefix, ed25519.PublicKeySize)
	if err != nil {
		return Public{}, snap.Invalid("this is not a public key; public keys begin with "+publicPrefix,
			"print one with `snapcli keys export`")
	}
	return Public{key}, nil
}

func decode(text, prefix string, size int) ([]byte, error) {
	bare, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(bare)
	if !ok || err != nil || len(b) != size {
		return nil, errors.New("not a key")
	}
	return b, nil
}

// ID returns the first 16 hexadecimal digits of the key's SHA-256.
func (k Public) ID() string {
	sum := sha256.Sum256(k.key)
	return hex.EncodeToString(sum[:])[:idLength]
}

// Verify implements the verifier of DSSE.
func (k Public) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(k.key, data, sig) {
		return errors.New("the signature does not match")
	}
	return nil
}

// KeyID implements the verifier of DSSE.
func (k Public) KeyID() (string, error) { return k.ID(), nil }

// Public implements the verifier of DSSE.
func (k Public) Public() crypto.PublicKey { return k.key }

// isID reports whether a string has the form of a key's ID.
func isID(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(text) == idLength && hex.EncodeToString(b) == text
}
