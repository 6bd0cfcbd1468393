package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/signin"
)

// idp is an OpenID Connect provider for tests, which a test can make lie. Honest behavior is tested
// with third-party providers.
type idp struct {
	*httptest.Server
	t     *testing.T
	clock *clocktest.Clock

	mu       sync.Mutex
	key      *ecdsa.PrivateKey // whose public key is published
	signs    *ecdsa.PrivateKey // signs the ID tokens
	kid      string            // of key
	claims   map[string]any    // of the ID token; override the usual ones
	userinfo map[string]any
	answer   url.Values // of the authorization response; override the usual ones
	header   jose.SignatureAlgorithm
	down     bool
	pending  map[string]url.Values // authorization requests by code
	metadata map[string]any        // override the usual ones

	refresh   string          // the refresh token that is valid now; empty: none is issued
	refreshes int             // how often one was redeemed
	redeemed  map[string]bool // the tokens that were presented
	left      bool            // the account no longer exists: invalid_grant
	garbage   string          // the response of the token endpoint to a refresh
	withoutID bool            // the response to a refresh has no ID token
	during    func()          // runs while the token endpoint handles a request
	hangs     chan struct{}   // a refresh gets its response when this is closed
	loses     bool            // the response to a refresh does not arrive
}

func newIDP(t *testing.T, c *clocktest.Clock) *idp {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{t: t, clock: c, key: key, signs: key, kid: "k", pending: map[string]url.Values{},
		redeemed: map[string]bool{}, userinfo: map[string]any{"sub": "subject-1"}}
	p.Server = httptest.NewServer(p.mux())
	t.Cleanup(p.Close)
	return p
}

func (p *idp) mux() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		m := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"jwks_uri": p.URL + "/jwks", "userinfo_endpoint": p.URL + "/userinfo",
			"id_token_signing_alg_values_supported":          []string{"ES256", "HS256", "none"},
			"authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported":          []string{"client_secret_post", "client_secret_basic"},
		}
		maps.Copy(m, p.metadata)
		json.NewEncoder(w).Encode(m)
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: p.kid,
			Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(p.userinfo)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("state") == "" ||
		q.Get("response_type") != "code" {
		p.t.Errorf("authorization request without PKCE, nonce or state: %v", q)
	}
	code := rand.Text()
	p.pending[code] = q
	answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
	for name, values := range p.answer {
		if answer[name] = values; values[0] == "" {
			delete(answer, name)
		}
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusSeeOther)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	if p.during != nil {
		p.during()
	}
	if r.FormValue("grant_type") == "refresh_token" {
		p.redeem(w, r)
		return
	}
	q, known := p.pending[r.FormValue("code")]
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !known || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	delete(p.pending, r.FormValue("code"))
	p.issue(w, map[string]any{"nonce": q.Get("nonce")})
}

// redeem handles a refresh and replaces the token each time, as strict providers do.
func (p *idp) redeem(w http.ResponseWriter, r *http.Request) {
	p.refreshes++
	p.redeemed[r.FormValue("refresh_token")] = true
	if p.hangs != nil {
		hangs := p.hangs
		p.mu.Unlock()
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		p.mu.Lock()
		if r.Context().Err() != nil {
			return
		}
	}
	switch {
	case p.loses:
		p.refresh = rand.Text()
		panic(http.ErrAbortHandler)
	case p.garbage != "":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, p.garbage)
	case p.left || p.refresh == "" || r.FormValue("refresh_token") != p.refresh:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant"}`)
	default:
		p.issue(w, nil)
	}
}

// issue responds with tokens.
func (p *idp) issue(w http.ResponseWriter, more map[string]any) {
	now := p.clock.Now()
	claims := map[string]any{
		"iss": p.URL, "sub": "subject-1", "aud": "snapcloud", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"email": "mia@acme.test", "email_verified": true, "name": "Mia",
	}
	maps.Copy(claims, more)
	maps.Copy(claims, p.claims)
	var key any = jose.JSONWebKey{Key: p.signs, KeyID: p.kid}
	alg := jose.ES256
	if p.header != "" {
		alg, key = p.header, []byte("client-secret-of-thirty-two-bytes!")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	if err != nil {
		p.t.Error(err)
		return
	}
	id, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		p.t.Error(err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{"access_token": "at", "token_type": "Bearer", "expires_in": 60, "id_token": id}
	if p.refresh != "" {
		p.refresh = rand.Text()
		answer["refresh_token"] = p.refresh
	}
	if p.withoutID && more == nil {
		delete(answer, "id_token")
	}
	json.NewEncoder(w).Encode(answer)
}

// lie changes the provider's responses.
func (p *idp) lie(change func(*idp)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *idp) organization(slug string) signin.Organization {
	return signin.Organization{Slug: slug, OIDC: &signin.OIDC{
		Issuer: p.URL, ClientID: "snapcloud", ClientSecret: "client-secret-of-thirty-two-bytes!", AllowPrivate: true,
		Roles: map[snap.Role][]string{snap.RoleAdmin: {"admins"}},
	}}
}

// startWith starts the service with one or two identity providers, for acme and then globex.
func startWith(t *testing.T, providers int) (*house, []*idp) {
	t.Helper()
	c := newClock()
	var all []*idp
	var orgs []signin.Organization
	for i := range providers {
		p := newIDP(t, c)
		all = append(all, p)
		orgs = append(orgs, p.organization([]string{"acme", "globex"}[i]))
	}
	h := &house{t: t, dir: t.TempDir(), clock: c, log: &syncBuffer{}}
	return h.open(storeIn(h), orgs), all
}
