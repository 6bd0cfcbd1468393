package signin_test

import (
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"snap/internal/signin"
)

// logout returns a logout token of the provider: the usual claims, with changes;
// a nil value removes a claim.
func (p *idp) logout(changes map[string]any) string {
	p.t.Helper()
	now := p.clock.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": "snapcloud", "iat": now.Unix(), "exp": now.Add(2 * time.Minute).Unix(), "jti": "token-1",
		"sub":    "subject-1",
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	var key any = jose.JSONWebKey{Key: p.key, KeyID: "k"}
	alg := jose.ES256
	if p.header != "" {
		alg, key = p.header, []byte("client-secret-of-thirty-two-bytes!")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		p.t.Fatal(err)
	}
	return token
}

// TestBackChannelLogout: a logout token immediately ends the sessions of its person, but only once,
// and nobody else's.
func TestBackChannelLogout(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]map[string]any{
		"by person": nil, "by session": {"sub": nil, "sid": "provider-session"},
		"by both": {"sid": "provider-session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, idps := startWith(t, 1)
			p := idps[0]
			p.claims = map[string]any{"sid": "provider-session"}
			mia := h.loginUpstream()
			h.loginUpstreamAs(p, "newer-session", "subject-1", "mia@acme.test")
			p.lie(func(p *idp) {
				p.claims = map[string]any{"sid": "another", "sub": "subject-2", "email": "max@acme.test"}
				p.userinfo = map[string]any{"sub": "subject-2"}
			})
			max := h.loginUpstream()
			if a := h.post("/upstream/logout", "logout_token", p.logout(changes)); a.status != http.StatusOK ||
				a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if a := h.api(mia.access); a.status != http.StatusUnauthorized {
				t.Errorf("the session after the logout: %d %s", a.status, a.body)
			}
			wantError(t, h.refresh(mia.refresh), "invalid_grant")
			if a := h.api(max.access); a.status != http.StatusOK {
				t.Errorf("somebody else's session: %d %s", a.status, a.body)
			}
			mia = h.loginUpstreamAs(p, "provider-session", "subject-1", "mia@acme.test")
			wantError(t, h.post("/upstream/logout", "logout_token", p.logout(changes)), "invalid_request")
			if a := h.api(mia.access); a.status != http.StatusOK {
				t.Errorf("a token that was used ended a session again: %d", a.status)
			}
		})
	}
}

// TestBackChannelLogoutWhileTheProviderIsDown: a logout token that cannot be verified, because the
// provider's metadata or keys cannot be read, is not refused, so that the provider sends it again.
func TestBackChannelLogoutWhileTheProviderIsDown(t *testing.T) {
	t.Parallel()
	for name, metadataCached := range map[string]bool{"metadata": false, "keys": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, idps := startWith(t, 1)
			p := idps[0]
			mia := h.loginUpstream()
			token := p.logout(nil)
			h.serve([]signin.Organization{p.organization("acme")}) // again, so that nothing is cached
			if metadataCached {
				p.lie(func(p *idp) { p.answer = url.Values{"error": {"access_denied"}} })
				h.browser().get(startAcme)
			}
			p.lie(func(p *idp) { p.down = true })
			a := h.post("/upstream/logout", "logout_token", token)
			if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
				t.Errorf("while the provider is down: %d %s", a.status, a.body)
			}
			p.lie(func(p *idp) { p.down = false })
			if a := h.post("/upstream/logout", "logout_token", token); a.status != http.StatusOK {
				t.Errorf("when the provider answers again: %d %s", a.status, a.body)
			}
			wantError(t, h.refresh(mia.refresh), "invalid_grant")
		})
	}
}

// TestBackChannelLogoutOfOneClient: a logout token is accepted although the provider also signs in
// the people of another organization, with another client.
func TestBackChannelLogoutOfOneClient(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), clock: newClock(), log: &syncBuffer{}}
	p := newIDP(t, h.clock)
	globex := p.organization("globex")
	globex.OIDC.ClientID = "another"
	h.open(storeIn(h), []signin.Organization{p.organization("acme"), globex})
	mia := h.loginUpstream()
	if a := h.post("/upstream/logout", "logout_token", p.logout(nil)); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := h.api(mia.access); a.status != http.StatusUnauthorized {
		t.Errorf("the session after the logout: %d %s", a.status, a.body)
	}
}

// TestBackChannelLogoutOfTwoOrganizations: if a token cannot be verified for one of two
// organizations with the same client, the provider sends it again, and then it counts there.
func TestBackChannelLogoutOfTwoOrganizations(t *testing.T) {
	t.Parallel()
	h := &house{t: t, dir: t.TempDir(), clock: newClock(), log: &syncBuffer{}}
	p := newIDP(t, h.clock)
	h.open(storeIn(h), []signin.Organization{p.organization("acme"), p.organization("globex")})
	mia := h.loginUpstream() // now acme has the provider's metadata and keys, and globex has neither
	token := p.logout(nil)
	p.lie(func(p *idp) { p.down = true })
	if a := h.post("/upstream/logout", "logout_token", token); a.status != http.StatusServiceUnavailable {
		t.Errorf("while the provider is down: %d %s", a.status, a.body)
	}
	if a := h.api(mia.access); a.status != http.StatusUnauthorized {
		t.Errorf("the session after the logout: %d %s", a.status, a.body)
	}
	p.lie(func(p *idp) { p.down = false })
	if a := h.post("/upstream/logout", "logout_token", token); a.status != http.StatusOK {
		t.Errorf("when the provider answers again: %d %s", a.status, a.body)
	}
	wantError(t, h.post("/upstream/logout", "logout_token", token), "invalid_request")
}

func (h *house) loginUpstreamAs(p *idp, sid, subject, email string) tokens {
	p.lie(func(p *idp) {
		p.claims = map[string]any{"sid": sid, "sub": subject, "email": email}
		p.userinfo = map[string]any{"sub": subject}
	})
	return h.loginUpstream()
}

// TestLogoutTokensThatAreRefused: no token that section 2.6 of OpenID Connect
// Back-Channel Logout 1.0 refuses ends anything.
func TestLogoutTokensThatAreRefused(t *testing.T) {
	t.Parallel()
	h, idps := startWith(t, 2)
	p, other := idps[0], idps[1]
	mia := h.loginUpstream()
	_, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	now := h.clock.Now()
	tokens := map[string]string{"none": "", "garbage": "a.b.c",
		"of another provider": other.logout(map[string]any{"iss": p.URL}),
		"unsigned":            "eyJhbGciOiJub25lIn0.e30."}
	for name, changes := range map[string]map[string]any{
		"another audience": {"aud": "other"}, "another issuer": {"iss": "https://evil.test"},
		"an ID token": {"events": nil}, "another event": {"events": map[string]any{"https://x.test": map[string]any{}}},
		"an event that is no object": {"events": map[string]any{
			"http://schemas.openid.net/event/backchannel-logout": "yes"}},
		"a nonce": {"nonce": "n"}, "no jti": {"jti": nil}, "no iat": {"iat": nil}, "nobody": {"sub": nil},
		"NUL in sub": {"sub": "a\x00"}, "NUL in sid": {"sid": "a\x00"},
		"expired":       {"exp": now.Add(-time.Minute).Unix()},
		"no expiry":     {"exp": nil},
		"issued before": {"iat": now.Add(-time.Hour).Unix(), "exp": now.Add(time.Hour).Unix()},
		"issued later":  {"iat": now.Add(time.Hour).Unix(), "exp": now.Add(2 * time.Hour).Unix()},
	} {
		tokens[name] = p.logout(changes)
	}
	p.header = "HS256"
	tokens["HS256"] = p.logout(nil)
	p.header = ""
	for name, token := range tokens {
		a := h.post("/upstream/logout", "logout_token", token)
		if a.status != http.StatusBadRequest || a.json(t)["error"] != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if a := h.api(mia.access); a.status != http.StatusOK {
			t.Fatalf("%s ended the session: %d %s", name, a.status, a.body)
		}
	}
	if a := h.get("/auth/upstream/logout"); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
}
