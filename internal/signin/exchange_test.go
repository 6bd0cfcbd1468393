//go:debug x509usefallbackroots=1

package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap"
	"snap/internal/clocktest"
	"snap/internal/signin"
	"snap/internal/store"
)

// ci is a CI system that issues tokens to jobs. A test can make it lie.
type ci struct {
	*httptest.Server
	t     *testing.T
	clock *clocktest.Clock

	mu       sync.Mutex
	keys     map[string]*ecdsa.PrivateKey // by key ID
	weak     *rsa.PrivateKey
	down     bool
	metadata map[string]any // override the usual ones
	fetched  int            // how often the keys were read
}

func newCI(t *testing.T, clock *clocktest.Clock) *ci {
	t.Helper()
	c := &ci{t: t, clock: clock, keys: map[string]*ecdsa.PrivateKey{}}
	c.addKey("one")
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *ci) addKey(kid string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[kid] = key
}

func (c *ci) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *ci) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/jwks":
		c.fetched++
		var set jose.JSONWebKeySet
		for kid, key := range c.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"})
		}
		if c.weak != nil {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: c.weak.Public(), KeyID: "weak", Use: "sig"})
		}
		json.NewEncoder(w).Encode(set)
	default:
		m := map[string]any{"issuer": c.URL, "jwks_uri": c.URL + "/jwks", "authorization_endpoint": c.URL,
			"token_endpoint": c.URL, "id_token_signing_alg_values_supported": []string{"ES256"}}
		maps.Copy(m, c.metadata)
		json.NewEncoder(w).Encode(m)
	}
}

// github returns the claims of a job on the branch main of the repository octo/shop.
func (c *ci) github() map[string]any {
	now := c.clock.Now()
	return map[string]any{
		"iss": c.URL, "aud": "https://snap.test", "sub": "repo:octo/shop:ref:refs/heads/main", "jti": rand.Text(),
		"iat": now.Unix(), "nbf": now.Add(-10 * time.Minute).Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"repository": "octo/shop", "repository_id": "74", "repository_owner": "octo", "repository_owner_id": "65",
		"ref": "refs/heads/main", "ref_type": "branch", "event_name": "push", "environment": "production",
		"job_workflow_ref":   "octo/shop/.github/workflows/test.yml@refs/heads/main",
		"runner_environment": "github-hosted",
	}
}

func (c *ci) rule() signin.Trust {
	return signin.Trust{Name: "shop", Type: signin.TrustGitHub, Issuer: c.URL, Audience: "https://snap.test",
		AllowPrivate: true, Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush}, Claims: map[string][]string{
			"repository_id": {"74"}, "repository_owner_id": {"65"}, "ref": {"refs/heads/main", "refs/heads/next"},
			"environment": {"production"},
		}}
}

// token signs claims with the key of this ID.
func (c *ci) token(claims map[string]any, kid string) string {
	c.t.Helper()
	c.mu.Lock()
	key := c.keys[kid]
	c.mu.Unlock()
	return c.signedAs(jose.ES256, key, kid, claims)
}

func (c *ci) signedAs(alg jose.SignatureAlgorithm, key any, kid string, claims map[string]any) string {
	return c.signed(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, nil, claims)
}

func (c *ci) signed(key jose.SigningKey, o *jose.SignerOptions, claims map[string]any) string {
	c.t.Helper()
	signer, err := jose.NewSigner(key, o)
	if err != nil {
		c.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// startCI starts the service with acme, which trusts the CI system's jobs by these rules.
func startCI(t *testing.T, change func(*ci, *signin.Organization)) (*house, *ci) {
	t.Helper()
	clock := newClock()
	c := newCI(t, clock)
	org := acme()
	org.Trust = []signin.Trust{c.rule()}
	if change != nil {
		change(c, &org)
	}
	h := &house{t: t, dir: t.TempDir(), clock: clock, log: &syncBuffer{}}
	return h.open(storeIn(h), []signin.Organization{org, globex()}), c
}

const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

func (h *house) exchange(token string, more ...string) answer {
	return h.post("/token", append([]string{"grant_type", grantExchange, "subject_token", token,
		"subject_token_type", "urn:ietf:params:oauth:token-type:jwt"}, more...)...)
}

type exchanged struct {
	AccessToken  string `json:"access_token"`
	IssuedType   string `json:"issued_token_type"`
	ExpiresIn    int    `json:"expires_in"`
	Scope        string
	Organization string
}

func exchangedOf(t *testing.T, a answer) (e exchanged) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.status != http.StatusOK || e.AccessToken == "" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return e
}

// TestExchange: a job's token becomes a credential of the organization, for 15 minutes, with the
// rule's scopes or fewer, and the audit log names issuer, subject and rule.
func TestExchange(t *testing.T) {
	t.Parallel()
	h, c := startCI(t, nil)
	a := h.exchange(c.token(c.github(), "one"))
	e := exchangedOf(t, a)
	if e.ExpiresIn != 900 || e.Scope != "pull push" || e.Organization != "acme" ||
		a.header.Get("Cache-Control") != "no-store" ||
		e.IssuedType != "urn:ietf:params:oauth:token-type:access_token" || !strings.HasPrefix(e.AccessToken, "clt_") {
		t.Errorf("%+v %v", e, a.header)
	}
	if a := h.get("/api/agent", "X-API-Key", e.AccessToken); a.status != http.StatusOK ||
		!strings.Contains(a.body, "acme") {
		t.Errorf("the credential: %d %s", a.status, a.body)
	}
	d := h.audited(snap.AuditKeyCreated)
	if d.Issuer != c.URL || d.Subject != "repo:octo/shop:ref:refs/heads/main" || !strings.HasPrefix(d.Name, "shop: ") ||
		d.Rule == "" {
		t.Errorf("audit: %+v", d)
	}
	if e := exchangedOf(t, h.exchange(c.token(c.github(), "one"), "scope", "pull")); e.Scope != "pull" {
		t.Errorf("fewer scopes: %+v", e)
	}
	h.clock.Advance(signin.CredentialLife - time.Second)
	h.useKey(e.AccessToken, true)
	h.clock.Advance(time.Second)
	h.useKey(e.AccessToken, false)
}

// TestExchangeRefusals: every token except a trusted job's gets the same error, and no credential.
func TestExchangeRefusals(t *testing.T) {
	t.Parallel()
	claim := func(name string, value any) func(*ci, map[string]any) string {
		return func(c *ci, claims map[string]any) string {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
			return c.token(claims, "one")
		}
	}
	at := func(name string, from time.Duration) func(*ci, map[string]any) string {
		return func(c *ci, claims map[string]any) string {
			claims[name] = c.clock.Now().Add(from).Unix()
			return c.token(claims, "one")
		}
	}
	h, c := startCI(t, nil)
	for name, forge := range map[string]func(*ci, map[string]any) string{
		"a fork's pull request": func(c *ci, claims map[string]any) string {
			claims["event_name"], claims["ref"] = "pull_request", "refs/pull/7/merge"
			return c.token(claims, "one")
		},
		"a pull request with the branch's name": claim("event_name", "pull_request"),
		"pull_request_target":                   claim("event_name", "pull_request_target"),
		"no event":                              claim("event_name", nil),
		"a fork":                                claim("repository_id", "75"),
		"a re-created repository of this name":  claim("repository_id", "9001"),
		"a re-created owner of this name":       claim("repository_owner_id", "9001"),
		"a repository that moved to another":    claim("repository_owner_id", "66"),
		"no repository ID":                      claim("repository_id", nil),
		"a list of repository IDs":              claim("repository_id", []string{"74"}),
		"another branch":                        claim("ref", "refs/heads/evil"),
		"a tag with the branch's name":          claim("ref", "refs/tags/main"),
		"a branch that begins like it":          claim("ref", "refs/heads/main2"),
		"a branch in other case":                claim("ref", "refs/heads/Main"),
		"another environment":                   claim("environment", "staging"),
		"no environment":                        claim("environment", nil),
		"wrong audience":                        claim("aud", "https://other.test"),
		"no audience":                           claim("aud", nil),
		"several audiences":                     claim("aud", []string{"https://snap.test", "https://other.test"}),
		"the audience of GitHub by default":     claim("aud", "https://github.com/octo"),
		"wrong issuer":                          claim("iss", "https://token.actions.githubusercontent.com"),
		"issuer with a slash": func(c *ci, claims map[string]any) string {
			claims["iss"] = c.URL + "/"
			return c.token(claims, "one")
		},
		"no issuer":            claim("iss", nil),
		"no subject":           claim("sub", nil),
		"NUL in the subject":   claim("sub", "a\x00"),
		"expired":              at("exp", -31*time.Second),
		"no expiry":            claim("exp", nil),
		"not yet valid":        at("nbf", 31*time.Second),
		"issued in the future": at("iat", 31*time.Second),
		"issued too long ago":  at("iat", -25*time.Hour),
		"no time of issue":     claim("iat", nil),
		"alg none": func(_ *ci, claims map[string]any) string {
			header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"one"}`))
			return header + "." + encoded(claims) + "."
		},
		"HS256 with the public key": func(c *ci, claims map[string]any) string {
			der, _ := x509.MarshalPKIXPublicKey(c.keys["one"].Public())
			return c.signedAs(jose.HS256, der, "one", claims)
		},
		"another algorithm than the key's": func(c *ci, claims map[string]any) string {
			key, _ := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
			return c.signedAs(jose.ES384, key, "one", claims)
		},
		"another key of the same ID": func(c *ci, claims map[string]any) string {
			key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			return c.signedAs(jose.ES256, key, "one", claims)
		},
		"an unknown key": func(c *ci, claims map[string]any) string {
			key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			return c.signedAs(jose.ES256, key, "x", claims)
		},
		"a key that the token brings": func(c *ci, claims map[string]any) string {
			key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			own := jose.SigningKey{Algorithm: jose.ES256, Key: key}
			return c.signed(own, &jose.SignerOptions{EmbedJWK: true}, claims)
		},
		"no key ID": func(c *ci, claims map[string]any) string {
			return c.signed(jose.SigningKey{Algorithm: jose.ES256, Key: c.keys["one"]}, nil, claims)
		},
		"a weak RSA key of the issuer": func(c *ci, claims map[string]any) string {
			c.change(func() { c.weak, _ = rsa.GenerateKey(rand.Reader, 1024) })
			return c.signedAs(jose.RS256, c.weak, "weak", claims)
		},
		"altered claims": func(c *ci, claims map[string]any) string {
			parts := strings.Split(c.token(claims, "one"), ".")
			claims["repository_id"] = "74"
			claims["ref"] = "refs/heads/next"
			return parts[0] + "." + encoded(claims) + "." + parts[2]
		},
		"no signature": func(c *ci, claims map[string]any) string {
			token := c.token(claims, "one")
			return token[:strings.LastIndex(token, ".")+1]
		},
		"not a token":    func(*ci, map[string]any) string { return "cak_nonsense" },
		"a token of 17K": claim("padding", strings.Repeat("x", 17<<10)),
	} {
		t.Run(name, func(t *testing.T) {
			h.clock.Advance(10 * time.Second) // the issuer may be asked about unknown keys again
			logged := len(h.log.String())
			a := h.exchange(forge(c, c.github()))
			wantError(t, a, "invalid_request")
			if !strings.Contains(a.body, "no trust rule accepts it") || strings.Contains(a.body, "_token\":") {
				t.Errorf("%s", a.body)
			}
			if !strings.Contains(h.log.String()[logged:], "the token of a CI job was refused") {
				t.Error("the log does not have the reason")
			}
			exchangedOf(t, h.exchange(c.token(c.github(), "one"))) // the job's own token is accepted
		})
	}
}

func encoded(claims map[string]any) string {
	text, _ := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestExchangeTokensOnce: a token works once, on any replica, however many try at the same time.
// After that it works only for the holder of the credential that was issued for it.
func TestExchangeTokensOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, one, two *house) {
		c := newCI(t, one.clock)
		org := acme()
		org.Trust = []signin.Trust{c.rule()}
		one.serve([]signin.Organization{org})
		two.serve([]signin.Organization{org})
		token := c.token(c.github(), "one")
		houses := []*house{one, two}
		winner := func(more ...string) exchanged {
			answers := make([]answer, 12)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = houses[i%2].exchange(token, more...) })
			}
			all.Wait()
			answers = slices.DeleteFunc(answers, func(a answer) bool { return a.status != http.StatusOK })
			if len(answers) != 1 {
				t.Fatalf("%d exchanges of one token succeeded", len(answers))
			}
			return exchangedOf(t, answers[0])
		}
		first := winner()
		wantError(t, two.exchange(token), "invalid_request")
		previous := []string{"actor_token_type", "urn:ietf:params:oauth:token-type:access_token", "actor_token"}
		other := exchangedOf(t, one.exchange(c.token(c.github(), "one")))
		wantError(t, two.exchange(token, append(previous, other.AccessToken)...), "invalid_request")
		wantError(t, two.exchange(token, append(previous, "clt_nonsense")...), "invalid_request")
		renewed := winner(append(previous, first.AccessToken)...)
		one.useKey(renewed.AccessToken, true)
		one.useKey(first.AccessToken, false)
		wantError(t, one.exchange(token, append(previous, first.AccessToken)...), "invalid_request")
		fresh := exchangedOf(t, one.exchange(c.token(c.github(), "one"), append(previous, renewed.AccessToken)...))
		one.useKey(fresh.AccessToken, true)
		one.useKey(renewed.AccessToken, false)
	})
}

// TestIssuerKeys: keys that the issuer adds are used immediately, and keys that it removed are
// refused within five minutes. If the issuer is down by then, nothing is accepted. Unknown keys do
// not make the service fetch the key set for each token.
func TestIssuerKeys(t *testing.T) {
	t.Parallel()
	h, c := startCI(t, nil)
	exchangedOf(t, h.exchange(c.token(c.github(), "one")))
	c.addKey("two")
	h.clock.Advance(10 * time.Second)
	exchangedOf(t, h.exchange(c.token(c.github(), "two")))
	before := c.fetched
	for range 20 {
		c.addKey("three")
		h.exchange(c.token(c.github(), "three"))
	}
	if c.fetched != before {
		t.Errorf("unknown keys made %d requests", c.fetched-before)
	}
	removed := c.token(c.github(), "one")
	removedLater := c.github()
	removedLater["exp"] = h.clock.Now().Add(time.Hour).Unix()
	late := c.token(removedLater, "one")
	c.change(func() { delete(c.keys, "one") })
	exchangedOf(t, h.exchange(removed))
	h.clock.Advance(5 * time.Minute)
	wantError(t, h.exchange(late), "invalid_request")
	c.change(func() { c.down = true })
	h.clock.Advance(5 * time.Minute)
	if a := h.exchange(c.token(c.github(), "two")); a.status != http.StatusServiceUnavailable {
		t.Errorf("without the issuer: %d %s", a.status, a.body)
	}
	c.change(func() { c.down = false })
	exchangedOf(t, h.exchange(c.token(c.github(), "two")))
}

// TestIssuerAddressIsGuarded: an issuer at a private address is not read, unless the rule allows
// it. Keys are not read from a jwks_uri that is not a web address.
func TestIssuerAddressIsGuarded(t *testing.T) {
	t.Parallel()
	clock := newClock()
	c := newCI(t, clock)
	tls := httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(tls.Close)
	org := acme()
	rule := c.rule()
	rule.Issuer, rule.AllowPrivate = tls.URL, false
	org.Trust = []signin.Trust{rule}
	h := &house{t: t, dir: t.TempDir(), clock: clock, log: &syncBuffer{}}
	h.open(storeIn(h), []signin.Organization{org})
	claims := c.github()
	claims["iss"] = tls.URL
	if a := h.exchange(c.token(claims, "one")); a.status != http.StatusServiceUnavailable || c.fetched != 0 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if !strings.Contains(h.log.String(), "is a private address") {
		t.Error("the log does not say why")
	}
	for _, url := range []string{"file:///etc/passwd", "gopher://127.0.0.1/", "//x", ""} {
		h, c := startCI(t, func(c *ci, _ *signin.Organization) { c.metadata = map[string]any{"jwks_uri": url} })
		if a := h.exchange(c.token(c.github(), "one")); a.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", url, a.status, a.body)
		}
	}
}

// trustTestServers makes the process trust the certificate of [httptest.NewTLSServer]. It needs the
// setting x509usefallbackroots.
var trustTestServers = sync.OnceFunc(func() {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	x509.SetFallbackRoots(roots)
})

// TestIssuersOfOthersDoNotDecide: a rule whose issuer cannot be reached accepts nothing, and changes
// nothing for the other rules and organizations with this issuer.
func TestIssuersOfOthersDoNotDecide(t *testing.T) {
	t.Parallel()
	clock := newClock()
	c := newCI(t, clock)
	c.Server = httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	trustTestServers()
	guarded, open := acme(), globex()
	rule := c.rule()
	rule.AllowPrivate = false // although the issuer has a private address
	guarded.Trust, open.Trust = []signin.Trust{rule}, []signin.Trust{rule, c.rule()}
	h := &house{t: t, dir: t.TempDir(), clock: clock, log: &syncBuffer{}}
	h.open(storeIn(h), []signin.Organization{guarded, open})
	if e := exchangedOf(t, h.exchange(c.token(c.github(), "one"))); e.Organization != "globex" {
		t.Errorf("%+v", e)
	}
	if !strings.Contains(h.log.String(), "organization=acme rule=shop") {
		t.Errorf("the log does not name the rule: %s", h.log.String())
	}
	a := h.exchange(c.token(c.github(), "one"), "organization", "acme")
	if a.status != http.StatusServiceUnavailable {
		t.Errorf("with its own organization only: %d %s", a.status, a.body)
	}
}

// TestTrustEnds: a credential ends when its rule changes or is removed, on every replica, and no
// replica with an older configuration gives another.
func TestTrustEnds(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, one, two *house) {
		c := newCI(t, one.clock)
		trusting, changed := acme(), acme()
		second := c.rule()
		second.Name, second.Claims["ref"] = "second", []string{"refs/heads/other"}
		trusting.Trust = []signin.Trust{c.rule(), second}
		one.serve([]signin.Organization{trusting})
		gone := exchangedOf(t, one.exchange(c.token(c.github(), "one")))
		claims := c.github()
		claims["ref"] = "refs/heads/other"
		stays := exchangedOf(t, one.exchange(c.token(claims, "one")))
		narrower := c.rule()
		narrower.Scopes = []snap.Scope{snap.ScopePull}
		changed.Trust = []signin.Trust{narrower, second}
		two.serve([]signin.Organization{changed})
		for _, h := range []*house{one, two} {
			h.useKey(gone.AccessToken, false)
			h.useKey(stays.AccessToken, true)
		}
		wantError(t, one.exchange(c.token(c.github(), "one")), "invalid_request")
		if e := exchangedOf(t, two.exchange(c.token(c.github(), "one"))); e.Scope != "pull" {
			t.Errorf("%+v", e)
		}
	})
}

// TestServiceUsers: a job can act as a named user, with that user's role, while the user may sign
// in.
func TestServiceUsers(t *testing.T) {
	t.Parallel()
	h, c := startCI(t, func(c *ci, org *signin.Organization) {
		org.Trust[0].Scopes, org.Trust[0].User = nil, "Mia@acme.test"
	})
	e := exchangedOf(t, h.exchange(c.token(c.github(), "one")))
	if a := h.get("/api/agent", "X-API-Key", e.AccessToken); !strings.HasPrefix(e.AccessToken, "cak_") ||
		!strings.Contains(a.body, "mia@acme.test") {
		t.Errorf("%+v: %s", e, a.body)
	}
	wantError(t, h.exchange(c.token(c.github(), "one"), "scope", "push"), "invalid_request")
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.store.SetDisabled(t.Context(), m.ID, true); err != nil {
		t.Fatal(err)
	}
	h.useKey(e.AccessToken, false)
	wantError(t, h.exchange(c.token(c.github(), "one")), "invalid_request")
}

// TestExchangeOfOtherSystems: GitLab and Kubernetes, by their own claims; a GitLab fork's merge
// request and an account that was created again are refused.
func TestExchangeOfOtherSystems(t *testing.T) {
	t.Parallel()
	uid := "11111111-2222-3333-4444-555555555555"
	for name, test := range map[string]struct {
		rule   func(*signin.Trust)
		claims map[string]any
		wrong  []map[string]any
	}{
		"GitLab": {func(r *signin.Trust) {
			r.Type, r.Claims = signin.TrustGitLab, map[string][]string{"project_id": {"20"}, "namespace_id": {"72"},
				"ref_protected": {"true"}}
		}, map[string]any{"project_id": "20", "namespace_id": "72", "ref_protected": "true", "pipeline_source": "push"},
			[]map[string]any{{"pipeline_source": "merge_request_event"}, {"pipeline_source": "parent_pipeline"},
				{"project_id": "21"}, {"namespace_id": "73"}, {"ref_protected": "false"}, {"pipeline_source": nil}}},
		"GitLab, numbers and booleans": {func(r *signin.Trust) {
			r.Type, r.Claims = signin.TrustGitLab, map[string][]string{"project_id": {"20"}, "namespace_id": {"72"},
				"ref_protected": {"true"}}
		}, map[string]any{"project_id": 20, "namespace_id": 72, "ref_protected": true, "pipeline_source": "schedule"},
			[]map[string]any{{"project_id": 20.5}, {"project_id": 200}}},
		"Kubernetes": {func(r *signin.Trust) {
			r.Type, r.Claims = signin.TrustKubernetes, map[string][]string{"kubernetes.io.serviceaccount.uid": {uid}}
		}, map[string]any{"jti": nil, "sub": "system:serviceaccount:shop:ci", "kubernetes.io": map[string]any{
			"namespace": "shop", "serviceaccount": map[string]any{"name": "ci", "uid": uid}}},
			[]map[string]any{{"kubernetes.io": map[string]any{"serviceaccount": map[string]any{"name": "ci",
				"uid": "99999999-2222-3333-4444-555555555555"}}}, {"kubernetes.io": nil}, {"kubernetes.io": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, c := startCI(t, func(c *ci, org *signin.Organization) { test.rule(&org.Trust[0]) })
			job := func(changes ...map[string]any) string {
				claims := c.github()
				for _, m := range append([]map[string]any{test.claims}, changes...) {
					maps.Copy(claims, m)
				}
				maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
				return c.token(claims, "one")
			}
			token := job()
			exchangedOf(t, h.exchange(token))
			wantError(t, h.exchange(token), "invalid_request") // also without a jti
			for _, w := range test.wrong {
				if a := h.exchange(job(w)); a.status != http.StatusBadRequest {
					t.Errorf("%v: %d %s", w, a.status, a.body)
				}
			}
		})
	}
}

// TestExchangeRequests: requests that are not token exchanges for our credentials are refused, each
// with its own error, and a job that several organizations trust must choose one.
func TestExchangeRequests(t *testing.T) {
	t.Parallel()
	h, c := startCI(t, nil)
	good := c.token(c.github(), "one")
	for name, test := range map[string]struct {
		code   string
		fields []string
	}{
		"no token": {"invalid_request", []string{"subject_token_type", "urn:ietf:params:oauth:token-type:jwt"}},
		"an access token": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:access_token"}},
		"SAML": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:saml2"}},
		"a refresh token wanted": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:jwt", "requested_token_type",
			"urn:ietf:params:oauth:token-type:refresh_token"}},
		"unknown scope": {"invalid_scope", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:jwt", "scope", "admin"}},
		"actor without type": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:jwt", "actor_token", "x"}},
		"more scopes than the rule's": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:jwt", "scope", "pull private"}},
		"another organization": {"invalid_request", []string{"subject_token", good, "subject_token_type",
			"urn:ietf:params:oauth:token-type:jwt", "organization", "globex"}},
		"jwt-bearer": {"unsupported_grant_type", []string{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer",
			"assertion", good}},
		"another client": {"invalid_client", []string{"client_id", "other", "subject_token", good}},
	} {
		if !slices.Contains(test.fields, "grant_type") {
			test.fields = append(test.fields, "grant_type", grantExchange)
		}
		a := h.post("/token", test.fields...)
		if a.status < 400 || !strings.Contains(a.body, `"`+test.code+`"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	exchangedOf(t, h.exchange(good)) // none of these requests used up the token
	if a := h.get("/auth/.well-known/oauth-authorization-server"); !strings.Contains(a.body, grantExchange) {
		t.Errorf("metadata: %s", a.body)
	}
	c2 := newCI(t, h.clock)
	first, second := acme(), globex()
	first.Trust, second.Trust = []signin.Trust{c2.rule()}, []signin.Trust{c2.rule()}
	both := &house{t: t, dir: t.TempDir(), clock: h.clock, log: &syncBuffer{}}
	both.open(storeIn(both), []signin.Organization{first, second})
	token := c2.token(c2.github(), "one")
	if a := both.exchange(token); !strings.Contains(a.body, "choose one") {
		t.Errorf("two organizations: %d %s", a.status, a.body)
	}
	if e := exchangedOf(t, both.exchange(token, "organization", "globex")); e.Organization != "globex" {
		t.Errorf("%+v", e)
	}
}

// TestTrustRules: rules that trust only names are refused, and the error names the claim to add.
func TestTrustRules(t *testing.T) {
	t.Parallel()
	type rule = signin.Trust
	for name, test := range map[string]struct {
		change func(*rule)
		says   string
	}{
		"good":              {func(*rule) {}, ""},
		"no repository ID":  {func(r *rule) { delete(r.Claims, "repository_id") }, "claims lack repository_id"},
		"no owner ID":       {func(r *rule) { delete(r.Claims, "repository_owner_id") }, "lack repository_owner_id"},
		"names as IDs":      {func(r *rule) { r.Claims["repository_id"] = []string{"octo"} }, "a number"},
		"wildcard":          {func(r *rule) { r.Claims["sub"] = []string{"repo:octo/*"} }, "no wildcards"},
		"empty value":       {func(r *rule) { r.Claims["ref"] = []string{""} }, "compared exactly"},
		"no values":         {func(r *rule) { r.Claims["ref"] = nil }, "the claim ref has no values"},
		"GitLab by path":    {func(r *rule) { r.Type, r.Claims = signin.TrustGitLab, nil }, "claims lack project_id"},
		"Kubernetes names":  {func(r *rule) { r.Type = signin.TrustKubernetes }, "kubernetes.io.serviceaccount.uid"},
		"other by sub":      {func(r *rule) { r.Type, r.Claims = "other", map[string][]string{"sub": {"job-1"}} }, ""},
		"other without sub": {func(r *rule) { r.Type, r.Claims = "other", nil }, "claims lack sub"},
		"GitHub as other":   {func(r *rule) { r.Type, r.Claims["sub"] = "other", []string{"x"} }, "use type github"},
		"Kubernetes as other": {func(r *rule) {
			r.Type, r.Claims = "other", map[string][]string{"sub": {"system:serviceaccount:a:b"}}
		}, "use type kubernetes"},
		"unknown type":    {func(r *rule) { r.Type = "jenkins" }, "must be github"},
		"plain http":      {func(r *rule) { r.AllowPrivate = false }, "is not an https URL"},
		"no audience":     {func(r *rule) { r.Audience = "" }, "audience is missing"},
		"scopes and user": {func(r *rule) { r.User = "x" }, "either scopes"},
		"neither":         {func(r *rule) { r.Scopes = nil }, "either scopes"},
		"unknown scope":   {func(r *rule) { r.Scopes = []snap.Scope{"admin"} }, "is not a scope"},
		"no name":         {func(r *rule) { r.Name = "" }, "name must have"},
	} {
		r := (&ci{Server: &httptest.Server{URL: "http://ci.test"}}).rule()
		test.change(&r)
		wrong := strings.Join(r.Check(), "; ")
		if test.says == "" && wrong != "" || !strings.Contains(wrong, test.says) {
			t.Errorf("%s: %q, want %q", name, wrong, test.says)
		}
	}
}

// audited returns the detail of the newest line of acme's audit log with an action.
func (h *house) audited(action snap.AuditAction) snap.AuditDetail {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	h.sequence(org.ID)
	page, err := h.store.Audit(h.t.Context(), snap.Caller{Org: org.OrgRef}, store.AuditQuery{Action: action, Limit: 1})
	if err != nil || len(page.Items) != 1 {
		h.t.Fatalf("%s: %+v, %v", action, page.Items, err)
	}
	return page.Items[0].Detail
}
