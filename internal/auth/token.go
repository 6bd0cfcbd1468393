package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap"
	"snap/internal/store"
)

// AccessLife is the lifetime of an access token. A token also ends with its session, because every
// request checks the session in the store.
const AccessLife = 10 * time.Minute

// leeway is the accepted difference between the clocks of two replicas.
const leeway = 5 * time.Second

// The types of our tokens, in the JOSE header. They keep an ID token from being used as an access
// token (RFC 9068 section 4).
const (
	typeAccess = "at+jwt"
	typeID     = "JWT"
)

// Tokens issues the access tokens and ID tokens of people who signed in, and verifies access
// tokens. Access tokens follow the JWT profile of RFC 9068. Both are signed with ES256 keys that
// all replicas share.
type Tokens struct {
	issuer, audience string
	now              func() time.Time
	keys             *keyring
}

// NewTokens returns a Tokens for one issuer and one audience, the API. The sealer encrypts the
// signing keys in the store; nil leaves them unencrypted.
func NewTokens(s *store.Store, issuer, audience string, sealer *Sealer, now func() time.Time) *Tokens {
	return &Tokens{issuer: issuer, audience: audience, now: now, keys: &keyring{store: s, sealer: sealer, now: now}}
}

// Claims is the content of an access token.
type Claims struct {
	Session  int64
	Subject  string // the user's identifier
	ClientID string
	Scope    string
	Expires  time.Time // set in verified tokens; new tokens live for [AccessLife]
}

type accessClaims struct {
	jwt.Claims
	ClientID string `json:"client_id"`
	Scope    string `json:"scope,omitempty"`
	Session  string `json:"sid"`
}

// Access returns a new access token that lives for [AccessLife].
func (t *Tokens) Access(ctx context.Context, c Claims) (string, error) {
	return t.sign(ctx, typeAccess, accessClaims{
		Claims:   t.registered(c.Subject, t.audience),
		ClientID: c.ClientID,
		Scope:    c.Scope,
		Session:  strconv.FormatInt(c.Session, 10),
	})
}

// Identity is the content of an ID token about a user.
type Identity struct {
	Subject  string
	ClientID string
	Email    string
	Name     string
	AuthTime time.Time
}

type idClaims struct {
	jwt.Claims
	Email    string `json:"email,omitempty"`
	Name     string `json:"name,omitempty"`
	AuthTime int64  `json:"auth_time"`
}

// ID returns an ID token for a client (OpenID Connect Core section 2). The API never accepts it.
func (t *Tokens) ID(ctx context.Context, i Identity) (string, error) {
	return t.sign(ctx, typeID, idClaims{
		Claims: t.registered(i.Subject, i.ClientID), Email: i.Email, Name: i.Name, AuthTime: i.AuthTime.Unix(),
	})
}

func (t *Tokens) registered(subject, audience string) jwt.Claims {
	now := t.now()
	return jwt.Claims{
		ID: rand.Text(), Issuer: t.issuer, Subject: subject, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(AccessLife)),
	}
}

func (t *Tokens) sign(ctx context.Context, typ string, claims any) (string, error) {
	key, err := t.keys.signer(ctx)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key.private, KeyID: key.kid}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Verify returns the claims of one of our access tokens. It fails with snap.ErrUnauthenticated if
// the token has another algorithm, type, issuer or audience, if it has expired, or if it was signed
// with an unknown key. It does not check whether the session is live.
func (t *Tokens) Verify(ctx context.Context, token string) (Claims, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(parsed.Headers) != 1 {
		return Claims{}, snap.ErrUnauthenticated
	}
	header := parsed.Headers[0]
	if typ, _ := header.ExtraHeaders[jose.HeaderType].(string); typ != typeAccess {
		return Claims{}, snap.ErrUnauthenticated
	}
	key, err := t.keys.public(ctx, header.KeyID)
	if err != nil {
		return Claims{}, err
	}
	var c accessClaims
	if key == nil || parsed.Claims(key, &c) != nil || !t.acceptable(c.Claims) {
		return Claims{}, snap.ErrUnauthenticated
	}
	session, err := strconv.ParseInt(c.Session, 10, 64)
	if err != nil {
		return Claims{}, snap.ErrUnauthenticated
	}
	return Claims{Session: session, Subject: c.Subject, ClientID: c.ClientID, Scope: c.Scope, Expires: c.Expiry.Time()},
		nil
}

func (t *Tokens) acceptable(c jwt.Claims) bool {
	expected := jwt.Expected{Issuer: t.issuer, AnyAudience: jwt.Audience{t.audience}, Time: t.now()}
	return c.Expiry != nil && c.ValidateWithLeeway(expected, leeway) == nil
}

// JWKS returns the public keys as a JSON Web Key Set (RFC 7517).
func (t *Tokens) JWKS(ctx context.Context) ([]byte, error) {
	keys, err := t.keys.load(ctx)
	if err != nil {
		return nil, err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.kid,
			Algorithm: string(jose.ES256), Use: "sig"})
	}
	return json.Marshal(set)
}
