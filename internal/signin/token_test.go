package signin_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// T1: revocation also ends access tokens immediately.
func TestEndedSessionEndsItsTokens(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	b := h.browser()
	b.signIn("mia@acme.test", "mia-password")
	page := b.get("/auth/account")
	id := page.body[strings.Index(page.body, "snapcli test on laptop")-300:]
	id = id[strings.Index(id, `name="id" value="`)+len(`name="id" value="`):]
	id = id[:strings.Index(id, `"`)]
	b.submit(page, "/auth/account/sessions/end", "id", id)
	if a := h.api(got.access); a.status != http.StatusUnauthorized {
		t.Errorf("API after the session was ended: %d", a.status)
	}
	wantError(t, h.refresh(got.refresh), "invalid_grant")
}

// T2: a refresh token is replaced at each use, ends 30 days after the last use
// and 180 days after the login.
func TestRefreshRotationAndExpiry(t *testing.T) {
	t.Parallel()
	org := acme()
	org.MaxLogin = 365 * 24 * time.Hour
	h := start(t, org)
	got := h.login("mia@acme.test", "mia-password")
	seen := []string{got.refresh}
	for range 6 { // 174 days of use
		h.clock.Advance(29 * 24 * time.Hour)
		got = tokensOf(t, h.refresh(got.refresh))
		if slices.Contains(seen, got.refresh) {
			t.Fatal("a refresh token came twice")
		}
		seen = append(seen, got.refresh)
	}
	h.clock.Advance(6 * 24 * time.Hour)
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	idle := h.login("mia@acme.test", "mia-password")
	h.clock.Advance(30 * 24 * time.Hour)
	wantError(t, h.refresh(idle.refresh), "invalid_grant")
}

// D2, T2, S1: neither codes nor tokens are in the database.
func TestNoSecretInTheDatabase(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, userCode := h.device()
	b := h.browser()
	b.approve(userCode, "mia@acme.test", "mia-password")
	got := tokensOf(t, h.poll(deviceCode))
	secrets := map[string]string{"device code": deviceCode, "refresh token": got.refresh, "access token": got.access}
	for _, c := range b.c.Jar.Cookies(mustURL(t, h.url)) {
		secrets["cookie "+c.Name] = c.Value
	}
	if len(secrets) != 5 {
		t.Fatalf("searching for %d secrets, want 5", len(secrets))
	}
	all := h.databaseText()
	if !strings.Contains(all, "snapcli test on laptop") {
		t.Fatal("the search does not find what is there")
	}
	for name, secret := range secrets {
		if strings.Contains(all, secret) {
			t.Errorf("the %s is in the database", name)
		}
	}
}

// T3: a replaced token that is used after its successor was used ends the session, including access
// tokens, and is logged.
func TestReusedRefreshTokenEndsTheSession(t *testing.T) {
	t.Parallel()
	h := start(t)
	first := h.login("mia@acme.test", "mia-password")
	second := tokensOf(t, h.refresh(first.refresh))
	third := tokensOf(t, h.refresh(second.refresh))
	wantError(t, h.refresh(first.refresh), "invalid_grant")
	if a := h.api(third.access); a.status != http.StatusUnauthorized {
		t.Errorf("the newest access token: %d", a.status)
	}
	wantError(t, h.refresh(third.refresh), "invalid_grant")
	if !strings.Contains(h.log.String(), "refresh token reused, session ended") {
		t.Error("the reuse is not in the log")
	}
}

// T4: a lost response is recovered within 60 s; the token in that response is superseded, and ends
// the session if it is used.
func TestLostAnswerIsRecovered(t *testing.T) {
	t.Parallel()
	h := start(t)
	first := h.login("mia@acme.test", "mia-password")
	lost := tokensOf(t, h.refresh(first.refresh))
	h.clock.Advance(59 * time.Second)
	again := tokensOf(t, h.refresh(first.refresh))
	if again.refresh == lost.refresh {
		t.Error("the same successor came twice")
	}
	next := tokensOf(t, h.refresh(again.refresh))
	if a := h.api(next.access); a.status != http.StatusOK {
		t.Errorf("API: %d", a.status)
	}
	wantError(t, h.refresh(lost.refresh), "invalid_grant")
	if a := h.api(next.access); a.status != http.StatusUnauthorized {
		t.Errorf("API after the superseded token turned up: %d", a.status)
	}
}

// T4: after 60 s, a used token counts as stolen and is refused.
func TestLostAnswerAfterAMinute(t *testing.T) {
	t.Parallel()
	h := start(t)
	first := h.login("mia@acme.test", "mia-password")
	tokensOf(t, h.refresh(first.refresh))
	h.clock.Advance(60 * time.Second)
	wantError(t, h.refresh(first.refresh), "invalid_grant")
}

// T5: a refresh token belongs to its client, and the scope cannot widen.
func TestRefreshIsBoundToClientAndScope(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	a := h.post("/token", "grant_type", "refresh_token", "client_id", "other", "refresh_token", got.refresh)
	if a.status != http.StatusUnauthorized || a.json(t)["error"] != "invalid_client" {
		t.Errorf("another client: %d %s", a.status, a.body)
	}
	wantError(t, h.post("/token", "grant_type", "refresh_token", "client_id", "snapcli", "refresh_token", got.refresh,
		"scope", "openid admin"), "invalid_scope")
	tokensOf(t, h.refresh(got.refresh))
}

// T6: revocation by RFC 7009: public client, unknown tokens get the same response, other clients'
// tokens are untouched, and access tokens are accepted too.
func TestRevocation(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	if a := h.post("/revoke", "client_id", "other", "token", got.refresh); a.status != http.StatusUnauthorized {
		t.Errorf("another client: %d", a.status)
	}
	for _, unknown := range []string{"unknown", "crt_unknown", got.access + "x", got.id} {
		if a := h.post("/revoke", "client_id", "snapcli", "token", unknown); a.status != http.StatusOK {
			t.Errorf("unknown token: %d", a.status)
		}
	}
	if a := h.api(got.access); a.status != http.StatusOK {
		t.Fatalf("API before the revocation: %d", a.status)
	}
	if a := h.post("/revoke", "client_id", "snapcli", "token", got.access, "token_type_hint",
		"access_token"); a.status != http.StatusOK {
		t.Errorf("access token: %d", a.status)
	}
	if a := h.api(got.access); a.status != http.StatusUnauthorized {
		t.Errorf("API after the revocation: %d", a.status)
	}
	wantError(t, h.refresh(got.refresh), "invalid_grant")
}

// T7: an ID token of ours opens nothing.
func TestIDTokenIsNoAccessToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	if got.id == "" {
		t.Fatal("no ID token for the scope openid")
	}
	if a := h.api(got.id); a.status != http.StatusUnauthorized {
		t.Errorf("API: %d", a.status)
	}
	if a := h.get("/auth/userinfo", "Authorization", "Bearer "+got.id); a.status != http.StatusUnauthorized {
		t.Errorf("userinfo: %d", a.status)
	}
	if a := h.get("/auth/userinfo", "Authorization", "Bearer "+got.access); a.json(t)["email"] != "mia@acme.test" {
		t.Errorf("userinfo with the access token: %d %s", a.status, a.body)
	}
}

// A failure of the database does not make an access token invalid.
func TestUserinfoWithoutDatabase(t *testing.T) {
	t.Parallel()
	h := start(t)
	got := h.login("mia@acme.test", "mia-password")
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	a := h.get("/auth/userinfo", "Authorization", "Bearer "+got.access)
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("userinfo: %d, Retry-After %q: %s", a.status, a.header.Get("Retry-After"), a.body)
	}
}

// T8: no caching, POST only, listed grants only, each parameter once.
func TestTokenEndpointIsStrict(t *testing.T) {
	t.Parallel()
	h := start(t)
	deviceCode, _ := h.device()
	if a := h.poll(deviceCode); a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control %q", a.header.Get("Cache-Control"))
	}
	if a := h.get("/auth/token?grant_type=refresh_token"); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.status)
	}
	for _, grant := range []string{"password", "client_credentials", "authorization_code",
		"urn:ietf:params:oauth:grant-type:jwt-bearer"} {
		wantError(t, h.post("/token", "grant_type", grant, "client_id", "snapcli"), "unsupported_grant_type")
	}
	wantError(t, h.post("/token", "client_id", "snapcli"), "invalid_request")
	wantError(t, h.post("/token", "grant_type", "refresh_token", "client_id", "snapcli", "client_id", "other"),
		"invalid_request")
	wantError(t, h.post("/token?client_id=snapcli&grant_type=refresh_token&refresh_token=x"), "invalid_request")
}

// C4: both discovery documents are true, and the issuer is the URL.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	h := start(t)
	one, two := h.get("/auth/.well-known/oauth-authorization-server"),
		h.get("/.well-known/oauth-authorization-server/auth")
	if one.body != two.body || one.status != http.StatusOK {
		t.Errorf("two documents: %d %d", one.status, two.status)
	}
	m := one.json(t)
	if m["issuer"] != h.url+"/auth" {
		t.Errorf("issuer %v", m["issuer"])
	}
	for _, name := range []string{"device_authorization_endpoint", "token_endpoint", "revocation_endpoint",
		"userinfo_endpoint", "jwks_uri"} {
		endpoint, _ := m[name].(string)
		path, ok := strings.CutPrefix(endpoint, h.url)
		if a := h.get(path); !ok || a.status == http.StatusNotFound {
			t.Errorf("%s: %q answers %d", name, endpoint, a.status)
		}
	}
	if m["authorization_endpoint"] != nil {
		t.Error("an authorization endpoint is announced and does not exist")
	}
}
