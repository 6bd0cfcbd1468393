package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

const issuer, audience = "https://cloud.test/auth", "https://cloud.test"

func (g *gate) tokens() *auth.Tokens {
	return auth.NewTokens(g.store, issuer, audience, nil, g.clock.Now)
}

// privateKey reads the current signing key.
func (g *gate) privateKey() (crypto.PrivateKey, string) {
	g.t.Helper()
	keys, err := g.store.SigningKeys(context.Background())
	if err != nil || len(keys) == 0 {
		g.t.Fatalf("signing keys: %v", err)
	}
	private, err := x509.ParsePKCS8PrivateKey(keys[0].Private)
	if err != nil {
		g.t.Fatal(err)
	}
	return private, keys[0].KID
}

func craft(t *testing.T, alg jose.SignatureAlgorithm, key any, kid, typ string, claims map[string]any) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithHeader("kid", kid)
	if typ != "" {
		o = o.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// T7: an ID token, another algorithm or key, and a wrong type, audience, issuer or
// time are all refused.
func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	_, n := g.signIn(g.mia, request("POST", "/"))
	good, err := g.tokens().Access(t.Context(), auth.Claims{Session: n.ID, Subject: "1", ClientID: "snapcli"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.tokens().Verify(t.Context(), good); err != nil {
		t.Fatalf("a good token: %v", err)
	}
	private, kid := g.privateKey()
	public, _ := x509.MarshalPKIXPublicKey(private.(*ecdsa.PrivateKey).Public())
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	now := g.clock.Now().Unix()
	claims := func(changes ...any) map[string]any {
		c := map[string]any{"iss": issuer, "aud": audience, "sub": "1", "iat": now, "exp": now + 60,
			"sid": strconv.FormatInt(n.ID, 10), "client_id": "snapcli"}
		for i := 0; i < len(changes); i += 2 {
			if c[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
				delete(c, changes[i].(string))
			}
		}
		return c
	}
	es256 := func(typ string, c map[string]any) string { return craft(t, jose.ES256, private, kid, typ, c) }
	if _, err := g.tokens().Verify(t.Context(), es256("at+jwt", claims())); err != nil {
		t.Fatalf("the crafted good token: %v", err)
	}
	id, err := g.tokens().ID(t.Context(), auth.Identity{Subject: "1", ClientID: audience})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"at+jwt",`+
		`"kid":"`+kid+`"}`)) + "." + parts[1] + "."
	for name, bad := range map[string]string{
		"ID token":         id,
		"alg none":         none,
		"HS256 by the key": craft(t, jose.HS256, pemKey, kid, "at+jwt", claims()),
		"another key":      craft(t, jose.ES256, other, kid, "at+jwt", claims()),
		"unknown kid":      craft(t, jose.ES256, other, "unknown", "at+jwt", claims()),
		"no type":          es256("", claims()),
		"type JWT":         es256("JWT", claims()),
		"audience":         es256("at+jwt", claims("aud", "snapcli")),
		"no audience":      es256("at+jwt", claims("aud", nil)),
		"issuer":           es256("at+jwt", claims("iss", "https://evil.test/auth")),
		"no issuer":        es256("at+jwt", claims("iss", nil)),
		"expired":          es256("at+jwt", claims("exp", now-6)),
		"no expiry":        es256("at+jwt", claims("exp", nil)),
		"not yet":          es256("at+jwt", claims("nbf", now+600)),
		"no session":       es256("at+jwt", claims("sid", nil)),
		"changed payload": parts[0] + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+issuer+`"}`)) + "." + parts[2],
		"cut":   good[:len(good)-4],
		"empty": "",
	} {
		if _, err := g.tokens().Verify(t.Context(), bad); err != error(snap.ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// RFC 9068 section 2: the claims of an access token. T1: it lives ten minutes.
func TestAccessTokenForm(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	token, err := g.tokens().Access(t.Context(),
		auth.Claims{Session: 7, Subject: "42", ClientID: "snapcli", Scope: "openid"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := parsed.UnsafeClaimsWithoutVerification(&c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"iss", "exp", "aud", "sub", "client_id", "iat", "jti", "sid"} {
		if c[name] == nil {
			t.Errorf("no claim %s", name)
		}
	}
	if life := c["exp"].(float64) - c["iat"].(float64); life != 600 {
		t.Errorf("it lives %v s", life)
	}
	if typ := parsed.Headers[0].ExtraHeaders[jose.HeaderType]; typ != "at+jwt" {
		t.Errorf("typ %v", typ)
	}
}

func kids(t *testing.T, tokens *auth.Tokens) []string {
	t.Helper()
	data, err := tokens.JWKS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), `"d"`) {
		t.Fatal("the key set contains a private key")
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range set.Keys {
		ids = append(ids, k.KeyID)
	}
	return ids
}

// T10: after 30 days another key signs; the old key stays in the key set
// until every token that it signed has expired, on every replica, and is then removed.
func TestSigningKeyRotation(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	one, two := g.tokens(), g.tokens()
	sign := func(replica *auth.Tokens) string {
		token, err := replica.Access(t.Context(), auth.Claims{Session: 1, Subject: "1", ClientID: "snapcli"})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	sign(one)
	first := kids(t, two)
	g.clock.Advance(30*24*time.Hour - time.Second)
	old := sign(two)
	if len(first) != 1 || len(kids(t, one)) != 1 {
		t.Fatal("more than one key before the rotation")
	}
	g.clock.Advance(time.Second)
	young := sign(one)
	both := kids(t, one)
	if len(both) != 2 || both[1] != first[0] {
		t.Fatalf("keys after the rotation: %v", both)
	}
	g.clock.Advance(auth.AccessLife - 2*time.Second)
	for name, token := range map[string]string{"old": old, "young": young} {
		for _, replica := range []*auth.Tokens{one, two} {
			if _, err := replica.Verify(t.Context(), token); err != nil {
				t.Errorf("%s token: %v", name, err)
			}
		}
	}
	g.clock.Advance(time.Hour)
	if left := kids(t, two); len(left) != 1 || left[0] != both[0] {
		t.Errorf("keys an hour later: %v", left)
	}
}

// T10: replicas that rotate the key at the same time end up with the same new key.
func TestReplicasRotateTogether(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	a := store.SigningKey{KID: "a", Private: []byte("a"), Created: g.clock.Now()}
	b := store.SigningKey{KID: "b", Private: []byte("b"), Created: g.clock.Now().Add(time.Second)}
	for _, k := range []store.SigningKey{a, b} {
		if err := g.store.AddSigningKey(t.Context(), k, g.clock.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := g.store.SigningKeys(t.Context())
	if err != nil || len(keys) != 1 || keys[0].KID != "a" {
		t.Errorf("keys %v, %v", keys, err)
	}
}

// T10: the file with the signing keys can be read only by its owner, even when an older one could
// be read by others.
func TestSigningKeysAreNotReadableByOthers(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	if _, err := g.tokens().Access(t.Context(), auth.Claims{Session: 1}); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		files, err := filepath.Glob(filepath.Join(g.dir, "snapcloud.db*"))
		if err != nil || len(files) < 2 {
			t.Fatalf("files %v, %v", files, err)
		}
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v", file, info.Mode().Perm())
			}
		}
		if round == 1 {
			break
		}
		if err := os.Chmod(filepath.Join(g.dir, "snapcloud.db"), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := store.Open(t.Context(), store.Options{DataDir: g.dir, Now: g.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
	}
}
