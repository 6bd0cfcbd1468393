package auth

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer verifies the tokens that a CI system issues to its jobs. It is safe for concurrent use.
type Issuer struct {
	provider *Provider
	private  bool // allow_private

	mu      sync.Mutex
	keys    []jose.JSONWebKey
	fetched time.Time
}

// Limits on the tokens of CI systems and on their issuers' keys.
const (
	issuerKeysLife  = 5 * time.Minute  // a key that the issuer removed is accepted no longer than this
	issuerKeysRetry = 10 * time.Second // unknown key IDs cause at most one request per interval
	issuerLeeway    = 30 * time.Second // accepted difference between the issuer's clock and ours
	maxIssuedAge    = 24 * time.Hour   // how long after it was issued a token is accepted, whatever its expiry
	maxIssuedSize   = 16 << 10         // bytes of a token
	maxKeySet       = 1 << 20          // bytes of a key set
)

// NewIssuer returns the issuer with this URL. Like the URL of a [Provider], it must be public and
// use https unless private addresses are allowed.
func NewIssuer(issuer string, allowPrivate bool, now func() time.Time) (*Issuer, error) {
	p, err := NewProvider(issuer, allowPrivate, now)
	if err != nil {
		return nil, err
	}
	return &Issuer{provider: p, private: allowPrivate}, nil
}

// IssuedToken is the content of a verified token.
type IssuedToken struct {
	Issuer, Subject string
	ID              string // identifies the token among those of the issuer
	Expires         time.Time
	Claims          map[string]any // numbers are json.Number
}

// Verify returns the content of a token that the issuer signed for exactly this audience and that
// is valid now. It fails with ErrProviderDown when the issuer's keys cannot be read, and otherwise
// with the reason, which is for the log.
func (i *Issuer) Verify(ctx context.Context, raw, audience string) (IssuedToken, error) {
	if len(raw) > maxIssuedSize {
		return IssuedToken{}, errors.New("the token is too large")
	}
	token, err := jwt.ParseSigned(raw, AsymmetricAlgorithms())
	if err != nil {
		return IssuedToken{}, err
	}
	if len(token.Headers) != 1 {
		return IssuedToken{}, errors.New("the token has several signatures")
	}
	keys, err := i.keysFor(ctx, token.Headers[0])
	if err != nil {
		return IssuedToken{}, err
	}
	for _, key := range keys {
		var registered jwt.Claims
		var payload json.RawMessage
		if err = token.Claims(key.Key, &registered, &payload); err == nil {
			return i.accept(raw, audience, registered, payload)
		}
	}
	if len(keys) == 0 {
		err = fmt.Errorf("the issuer has no key %q for this algorithm", token.Headers[0].KeyID)
	}
	return IssuedToken{}, err
}

// accept checks the registered claims of a token whose signature was verified.
func (i *Issuer) accept(raw, audience string, c jwt.Claims, payload json.RawMessage) (IssuedToken, error) {
	now := i.provider.now()
	switch {
	case c.Issuer != i.provider.Issuer():
		return IssuedToken{}, errors.New("the token is from another issuer")
	case len(c.Audience) != 1 || c.Audience[0] != audience:
		return IssuedToken{}, fmt.Errorf("the token is for %q", []string(c.Audience))
	case c.Subject == "":
		return IssuedToken{}, errors.New("the token has no subject")
	case !usableID(c.Subject):
		return IssuedToken{}, errUnusable("sub")
	case c.Expiry == nil || c.IssuedAt == nil:
		return IssuedToken{}, errors.New("the token has no exp or iat")
	case !now.Before(c.Expiry.Time().Add(issuerLeeway)):
		return IssuedToken{}, errors.New("the token has expired")
	case c.NotBefore != nil && now.Add(issuerLeeway).Before(c.NotBefore.Time()):
		return IssuedToken{}, errors.New("the token is not valid yet")
	case now.Add(issuerLeeway).Before(c.IssuedAt.Time()):
		return IssuedToken{}, errors.New("the token was issued in the future")
	case now.Sub(c.IssuedAt.Time()) > maxIssuedAge:
		return IssuedToken{}, errors.New("the token was issued too long ago")
	}
	out := IssuedToken{Issuer: c.Issuer, Subject: c.Subject, ID: "jti " + c.ID,
		Expires: c.Expiry.Time().Add(issuerLeeway)}
	if c.ID == "" { // tokens of old Kubernetes versions; the signature is left out: it has several encodings
		out.ID = "text " + raw[:strings.LastIndex(raw, ".")]
	}
	d := json.NewDecoder(strings.NewReader(string(payload)))
	d.UseNumber()
	err := d.Decode(&out.Claims)
	return out, err
}

// keysFor returns the issuer's keys that may have created the signature with this header. It reads
// the key set again when the set is old or lacks the key, and fails with ErrProviderDown rather
// than using an old set.
func (i *Issuer) keysFor(ctx context.Context, h jose.Header) ([]jose.JSONWebKey, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.provider.now()
	if i.fetched.IsZero() || now.Sub(i.fetched) >= issuerKeysLife {
		if err := i.fetch(ctx); err != nil {
			return nil, err
		}
	}
	found := i.matching(h)
	if len(found) > 0 || now.Sub(i.fetched) < issuerKeysRetry {
		return found, nil
	}
	if err := i.fetch(ctx); err != nil {
		return nil, err
	}
	return i.matching(h), nil
}

func (i *Issuer) matching(h jose.Header) (found []jose.JSONWebKey) {
	for _, k := range i.keys {
		if k.KeyID == h.KeyID && (k.Algorithm == "" || k.Algorithm == h.Algorithm) {
			found = append(found, k)
		}
	}
	return found
}

// fetch reads the key set that the issuer's metadata names.
func (i *Issuer) fetch(ctx context.Context) error {
	set, err := i.keySet(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProviderDown, err)
	}
	i.keys, i.fetched = nil, i.provider.now()
	for _, k := range set.Keys {
		if weak, ok := k.Key.(*rsa.PublicKey); ok && weak.N.BitLen() < 2048 {
			continue
		}
		if k.Valid() && k.IsPublic() && k.Use != "enc" {
			i.keys = append(i.keys, k)
		}
	}
	return nil
}

func (i *Issuer) keySet(ctx context.Context) (set jose.JSONWebKeySet, err error) {
	d, err := i.provider.Discover(ctx)
	if err != nil {
		return set, err
	}
	var meta struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := d.Claims(&meta); err != nil {
		return set, err
	}
	if u, err := url.Parse(meta.JWKS); err != nil || u.Scheme != "https" && !(i.private && u.Scheme == "http") {
		return set, fmt.Errorf("the jwks_uri %q does not use https", meta.JWKS)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, meta.JWKS, nil)
	if err != nil {
		return set, err
	}
	res, err := i.provider.client.Do(req)
	if err != nil {
		return set, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return set, fmt.Errorf("the key set: status %d", res.StatusCode)
	}
	err = json.NewDecoder(io.LimitReader(res.Body, maxKeySet)).Decode(&set)
	return set, err
}
