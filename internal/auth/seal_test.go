package auth_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// pkcs8 is the beginning of every private P-256 key in PKCS #8 (RFC 5208).
const pkcs8 = "308187020100301306072a8648ce3d020106082a8648ce3d030107"

func sealer(t *testing.T, with byte) *auth.Sealer {
	t.Helper()
	s, err := auth.NewSealer(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{with}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (g *gate) sealedTokens(s *auth.Sealer) *auth.Tokens {
	return auth.NewTokens(g.store, issuer, audience, s, g.clock.Now)
}

// databaseHolds reports whether one of the database's files contains these
// bytes.
func (g *gate) databaseHolds(what []byte) bool {
	g.t.Helper()
	files, err := filepath.Glob(filepath.Join(g.dir, "*"))
	if err != nil || len(files) == 0 {
		g.t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			g.t.Fatal(err)
		}
		if bytes.Contains(data, what) {
			return true
		}
	}
	return false
}

// T10: with a key encryption key, the database contains no private key.
func TestSigningKeysAreSealed(t *testing.T) {
	t.Parallel()
	private, err := hex.DecodeString(pkcs8)
	if err != nil {
		t.Fatal(err)
	}
	open, sealed := newGate(t), newGate(t)
	access(t, open.tokens())
	access(t, sealed.sealedTokens(sealer(t, 1)))
	if !open.databaseHolds(private) {
		t.Fatal("the search does not find a key that is not sealed")
	}
	if sealed.databaseHolds(private) {
		t.Error("a private key is in the database")
	}
}

func access(t *testing.T, tokens *auth.Tokens) string {
	t.Helper()
	token, err := tokens.Access(t.Context(), auth.Claims{Session: 1, Subject: "1", ClientID: "snapcli"})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// T10: only the right key opens sealed keys. Each error says what to do.
func TestSealedKeysNeedTheirKey(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	access(t, g.sealedTokens(sealer(t, 1)))
	for want, s := range map[string]*auth.Sealer{
		"":                              sealer(t, 1),
		"not the key that encrypted":    sealer(t, 2),
		"key_encryption_key is not set": nil,
	} {
		err := g.sealedTokens(s).Check(t.Context())
		if want == "" {
			if err != nil {
				t.Errorf("the right key: %v", err)
			}
			continue
		}
		e, known := err.(*snap.Error)
		if !known || e.Code != snap.CodeUsage || !strings.Contains(e.Detail, want) ||
			!strings.Contains(e.Hint, "auth.key_encryption_key") {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if _, err := g.sealedTokens(s).Access(t.Context(), auth.Claims{Session: 1}); err == nil ||
			snap.CodeOf(err) == snap.CodeUsage {
			t.Errorf("a token was signed, or the client sees the configuration: %v", err)
		}
	}
}

// T10: a sealed key belongs to its key ID, and a changed byte is noticed.
func TestChangedSealedKeyIsRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := sealer(t, 1)
	access(t, g.sealedTokens(s))
	stored := g.signingKeys()[0]
	flipped := bytes.Clone(stored.Private)
	flipped[len(flipped)-1] ^= 1
	for name, k := range map[string]store.SigningKey{
		"another key ID": {KID: "other", Private: stored.Private},
		"a changed byte": {KID: stored.KID, Private: flipped},
		"cut off":        {KID: stored.KID, Private: stored.Private[:5]},
	} {
		other := newGate(t)
		k.Created = other.clock.Now()
		if err := other.store.AddSigningKey(t.Context(), k, other.clock.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := other.sealedTokens(s).Check(t.Context()); err == nil {
			t.Errorf("%s: read anyway", name)
		}
	}
}

// An error about the key of the audit logs does not call it a signing key of tokens.
func TestResealOfTheAuditKey(t *testing.T) {
	t.Parallel()
	stored := sealer(t, 1).Seal(store.AuditKeyName, []byte("key"))
	for want, c := range map[string]struct {
		from, to *auth.Sealer
		stored   []byte
	}{
		"auth.key_encryption_key is not set":                    {nil, nil, stored},
		"not the key that encrypted the stored secrets":         {sealer(t, 2), nil, stored},
		"the destination has no auth.key_encryption_key":        {sealer(t, 1), nil, stored},
		"the stored secret " + store.AuditKeyName + " is trunc": {sealer(t, 1), nil, stored[:5]},
	} {
		_, err := auth.Reseal(c.from, c.to)(store.AuditKeyName, c.stored)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "signing") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func (g *gate) signingKeys() []store.SigningKey {
	g.t.Helper()
	keys, err := g.store.SigningKeys(context.Background())
	if err != nil || len(keys) == 0 {
		g.t.Fatalf("signing keys %v, %v", keys, err)
	}
	return keys
}

// T10: an earlier, unsealed key stays readable. The rotation creates a sealed one, and both
// replicas accept tokens of either key, with SQLite and with PostgreSQL.
func TestRotationSeals(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		rotationSeals(t, newGate(t))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		g := &gate{t: t, clock: clocktest.New(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))}
		s, err := store.Open(t.Context(), store.Options{URL: servertest.Postgres(t), Now: g.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		g.store = s
		rotationSeals(t, g)
	})
}

func rotationSeals(t *testing.T, g *gate) {
	t.Helper()
	access(t, g.tokens())
	one, two := g.sealedTokens(sealer(t, 1)), g.sealedTokens(sealer(t, 1))
	g.clock.Advance(30*24*time.Hour - time.Second)
	before := access(t, one)
	g.clock.Advance(time.Second)
	after := access(t, two)
	for name, token := range map[string]string{"before": before, "after": after} {
		for _, replica := range []*auth.Tokens{one, two} {
			g.clock.Advance(2 * time.Second)
			if _, err := replica.Verify(t.Context(), token); err != nil {
				t.Errorf("the token from %s the rotation: %v", name, err)
			}
		}
	}
	keys := g.signingKeys()
	if len(keys) != 2 {
		t.Fatalf("%d keys after the rotation", len(keys))
	}
	for i, sealed := range []bool{true, false} {
		if _, err := x509.ParsePKCS8PrivateKey(keys[i].Private); (err != nil) != sealed {
			t.Errorf("key %d: want sealed %v: %v", i, sealed, err)
		}
	}
}

// The error for a wrong key encryption key names the secret, which need not be a signing key.
func TestOpenWithAnotherKey(t *testing.T) {
	t.Parallel()
	_, err := sealer(t, 2).Open("sign-in:7", sealer(t, 1).Seal("sign-in:7", []byte("secret")))
	if err == nil || err.Error() != "sign-in:7 cannot be decrypted with auth.key_encryption_key" {
		t.Errorf("error %v", err)
	}
}

// T10: a malformed key is refused, and the message does not repeat it.
func TestKeyEncryptionKeyIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"secret-password", "c2hvcnQ=", base64.StdEncoding.EncodeToString(make([]byte, 33))} {
		if s, err := auth.NewSealer(bad); err == nil || s != nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if s, err := auth.NewSealer(" \n"); s != nil || err != nil {
		t.Errorf("empty: %v", err)
	}
}
