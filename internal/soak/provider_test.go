//go:build linux

package soak

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	clientSecret  = "a-secret-that-is-only-for-tests"
	accountHeader = "X-Account" // the person at the browser, known only to the provider
)

// provider is an OpenID Connect provider whose people change groups between
// two sign-ins. Other tests use real providers.
type provider struct {
	*httptest.Server
	issuer string
	key    *ecdsa.PrivateKey

	mu      sync.Mutex
	groups  map[string][]string // by e-mail
	pending map[string]visit    // by code
}

type visit struct{ email, nonce string }

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, groups: map[string][]string{}, pending: map[string]visit{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("/jwks", p.jwks)
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{
		"issuer": p.issuer, "authorization_endpoint": p.issuer + "/authorize", "token_endpoint": p.issuer + "/token",
		"jwks_uri": p.issuer + "/jwks", "id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (p *provider) jwks(w http.ResponseWriter, _ *http.Request) {
	answer(w,
		jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q, code := r.URL.Query(), rand.Text()
	p.mu.Lock()
	p.pending[code] = visit{r.Header.Get(accountHeader), q.Get("nonce")}
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(),
		http.StatusSeeOther)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	l, known := p.pending[r.FormValue("code")]
	delete(p.pending, r.FormValue("code"))
	groups := slices.Clone(p.groups[l.email])
	p.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: p.key, KeyID: "k"}},
		nil)
	if !known || err != nil {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	now := time.Now()
	id, err := jwt.Signed(signer).Claims(map[string]any{
		"iss": p.issuer, "sub": l.email, "aud": "snapcloud", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"nonce": l.nonce,
		"email": l.email, "email_verified": true, "name": l.email, "groups": append([]string{}, groups...),
	}).Serialize()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": id})
}

// put changes the groups of a person, as of their next sign-in.
func (p *provider) put(email string, groups []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[email] = slices.Clone(groups)
}
