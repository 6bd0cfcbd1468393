package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"snap"
	"snap/internal/store"
)

// A key consists of its kind, 32 random characters (190 bits) and the CRC-32 of both in 6
// characters.
const (
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	keyRandom   = 32
	keyChecksum = 6
)

var keyForm = regexp.MustCompile(`^` + snap.KeyPattern + `$`)

// randomKey returns a new key of a kind.
func randomKey(kind snap.CredentialKind) string {
	body := string(kind) + "_" + randomBase62(keyRandom)
	return body + checksum(body)
}

func randomBase62(n int) string {
	out := make([]byte, 0, n)
	var buf [64]byte
	for len(out) < n {
		rand.Read(buf[:])
		for _, b := range buf {
			// 248 is the largest multiple of 62 that fits in a byte; larger values would favor some
			// digits.
			if b < 248 && len(out) < n {
				out = append(out, base62[b%62])
			}
		}
	}
	return string(out)
}

// checksum returns the CRC-32 of the beginning of a key, as six base62 digits.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [keyChecksum]byte
	for i := keyChecksum - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}

// wellFormedKey reports whether text has the form and checksum of a key. A mistyped key is thus
// refused without a database query.
func wellFormedKey(secret string) bool {
	if !keyForm.MatchString(secret) {
		return false
	}
	cut := len(secret) - keyChecksum
	return checksum(secret[:cut]) == secret[cut:]
}

// keyHint returns the part of a key that is shown later: the first 8 and last 4 characters.
func keyHint(secret string) string { return secret[:8] + "..." + secret[len(secret)-4:] }

// KeySpec describes a key to create.
type KeySpec struct {
	OrgID     int64
	UserID    int64 // for user-scoped keys
	Kind      snap.CredentialKind
	Name      string
	Scopes    []snap.Scope   // for organization-level keys; none means pull and push
	Networks  []netip.Prefix // where the key may be used, see [snap.ParseNetworks]; none means anywhere
	Expires   time.Time      // zero means never
	CreatedBy int64          // the user who creates it; 0 means the operator
}

// NewSecret returns the secret of a new key of a kind, its hash for the store, and the part of it
// that may be shown later.
func NewSecret(kind snap.CredentialKind) (secret string, sum []byte, hint string) {
	secret = randomKey(kind)
	return secret, HashOf(secret), keyHint(secret)
}

// HashOf returns the SHA-256 by which the store finds a secret or a token.
func HashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// NewKey creates an API key and returns its secret, which cannot be retrieved later. It fails with
// invalid when the fields of k do not fit together, and with policy_refused when the key would last
// longer than the organization's policy allows. Authorization is the caller's job.
func (a *Authenticator) NewKey(ctx context.Context, k KeySpec) (secret string, key store.Key, err error) {
	k.Name = strings.TrimSpace(k.Name)
	if err := a.checkSpec(&k); err != nil {
		return "", store.Key{}, err
	}
	org, err := a.store.Org(ctx, k.OrgID)
	if err != nil {
		return "", store.Key{}, err
	}
	if err := org.Policy.CheckKeyExpiry(k.Expires, a.now()); err != nil {
		return "", store.Key{}, err
	}
	secret, sum, hint := NewSecret(k.Kind)
	key, err = a.store.AddKey(ctx, store.Key{
		Kind: k.Kind, Name: k.Name, Hint: hint, Org: snap.OrgRef{ID: k.OrgID},
		UserID: k.UserID, Scopes: k.Scopes, Networks: k.Networks, Expires: k.Expires,
	}, sum, k.CreatedBy)
	if err != nil {
		return "", store.Key{}, fmt.Errorf("store the key: %w", err)
	}
	return secret, key, nil
}

// checkSpec returns an error if the fields of k do not fit together. It sets the default scopes.
func (a *Authenticator) checkSpec(k *KeySpec) error {
	switch {
	case k.Kind == snap.SCIMKey:
		if k.UserID != 0 || len(k.Scopes) > 0 {
			return snap.Invalid("a SCIM key acts as no user and takes no scopes", "omit --user and --scopes")
		}
	case !k.Kind.IsKey():
		return snap.Invalid("the kind of a key must be cak, clt or sak",
			"cak acts as a user, clt and sak as the organization")
	case k.Kind.OrgLevel() != (k.UserID == 0):
		return snap.Invalid("a cak key acts as a user; clt and sak keys act as the organization", "")
	case k.Kind == snap.UserKey && len(k.Scopes) > 0:
		return snap.Invalid("a cak key takes no scopes: the role of its user decides",
			"omit the scopes, or create a clt key")
	}
	switch {
	case k.Name == "" || utf8.RuneCountInString(k.Name) > 100:
		return snap.Invalid("a key needs a name of 1 to 100 characters",
			"name it after the place where it is used, such as ci")
	case !k.Expires.IsZero() && !k.Expires.After(a.now()):
		return snap.Invalid("the key would already have expired", "give a time in the future")
	}
	if k.Kind.OrgLevel() && len(k.Scopes) == 0 {
		k.Scopes = []snap.Scope{snap.ScopePull, snap.ScopePush}
	}
	for _, s := range k.Scopes {
		if !slices.Contains(snap.Scopes(), s) {
			return snap.Invalid(fmt.Sprintf("%q is not a scope", s), "the scopes are pull, push and private")
		}
	}
	return nil
}
