package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"snap/internal/store"
)

// The lifetime of signing keys. A key signs for signingLife. It then stays in the key set for
// retiredLife, which is longer than the life of any token that it signed, and longer than any
// replica caches the keys.
const (
	signingLife  = 30 * 24 * time.Hour
	retiredLife  = time.Hour
	keyCacheLife = time.Minute // how long a replica caches the keys
)

type signingKey struct {
	kid     string
	private *ecdsa.PrivateKey
	created time.Time
}

// keyring caches the signing keys of the store.
type keyring struct {
	store  *store.Store
	sealer *Sealer
	now    func() time.Time

	mu     sync.Mutex
	keys   []signingKey // the newest first
	loaded time.Time
}

// signer returns the newest key. It creates a key if there is none or the newest is too old.
func (k *keyring) signer(ctx context.Context) (signingKey, error) {
	keys, err := k.load(ctx)
	if err != nil {
		return signingKey{}, err
	}
	if len(keys) > 0 && k.now().Sub(keys[0].created) < signingLife {
		return keys[0], nil
	}
	if err := k.rotate(ctx); err != nil {
		return signingKey{}, fmt.Errorf("create a signing key: %w", err)
	}
	keys, err = k.load(ctx)
	if err != nil || len(keys) == 0 {
		return signingKey{}, errors.Join(errors.New("there is no signing key"), err)
	}
	return keys[0], nil
}

// public returns the public key with this ID, or nil if there is none. It reloads the keys for an
// unknown ID, because another replica may have created the key.
func (k *keyring) public(ctx context.Context, kid string) (crypto.PublicKey, error) {
	for try := range 2 {
		keys, err := k.load(ctx)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if key.kid == kid {
				return key.private.Public(), nil
			}
		}
		if try == 0 && !k.forget() {
			break
		}
	}
	return nil, nil
}

// forget makes the next load read the store. It returns false and does nothing if the keys were
// just loaded, so that made-up key IDs do not each cause a query.
func (k *keyring) forget() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now().Sub(k.loaded) < time.Second {
		return false
	}
	k.loaded = time.Time{}
	return true
}

func (k *keyring) load(ctx context.Context) ([]signingKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if age := k.now().Sub(k.loaded); len(k.keys) > 0 && age >= 0 && age < keyCacheLife {
		return k.keys, nil
	}
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		return nil, err
	}
	var keys []signingKey
	for i, s := range stored {
		if i > 0 && k.now().Sub(stored[i-1].Created) > retiredLife {
			continue // replaced so long ago that all tokens it signed have expired
		}
		key, err := k.parse(s)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	k.keys, k.loaded = keys, k.now()
	return keys, nil
}

// rotate adds a new key and drops the old keys that are no longer needed.
func (k *keyring) rotate(ctx context.Context) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	now := k.now()
	kid := rand.Text()[:16]
	next := store.SigningKey{KID: kid, Private: k.sealer.seal(kid, der), Created: now}
	if err := k.store.AddSigningKey(ctx, next, now.Add(-signingLife)); err != nil {
		return err
	}
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		return err
	}
	for i, s := range stored {
		if i > 0 && now.Sub(stored[i-1].Created) > retiredLife {
			if err := k.store.DropSigningKey(ctx, s.KID); err != nil {
				return err
			}
		}
	}
	k.mu.Lock()
	k.loaded = time.Time{}
	k.mu.Unlock()
	return nil
}

func (k *keyring) parse(s store.SigningKey) (signingKey, error) {
	der, err := k.sealer.open(s.KID, s.Private)
	if err != nil {
		return signingKey{}, fmt.Errorf("read signing key %s: %w", s.KID, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return signingKey{}, fmt.Errorf("read signing key %s: %w", s.KID, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return signingKey{}, fmt.Errorf("read signing key %s: not an elliptic curve key", s.KID)
	}
	return signingKey{kid: s.KID, private: private, created: s.Created}, nil
}
