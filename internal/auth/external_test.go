package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// foreign is an external auth service as the API sees it: its metadata, keys and
// userinfo.
type foreign struct {
	*httptest.Server
	key  atomic.Pointer[ecdsa.PrivateKey]
	kid  atomic.Value
	down atomic.Bool

	asked    atomic.Int64 // how many requests it received
	provider *auth.Provider
}

func (g *gate) foreign() *foreign {
	g.t.Helper()
	f := &foreign{}
	f.rotate(g.t, "one")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{
			"issuer": f.URL, "jwks_uri": f.URL + "/jwks", "userinfo_endpoint": f.URL + "/userinfo",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: f.key.Load().Public(),
			KeyID: f.kid.Load().(string), Algorithm: "ES256"}}})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"sub":"s1","email":"mia@acme.test","email_verified":true,"groups":["admins"]}`))
	})
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		if f.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	g.t.Cleanup(f.Close)
	var err error
	if f.provider, err = auth.NewProvider(f.URL, true, g.clock.Now); err != nil {
		g.t.Fatal(err)
	}
	g.Authenticator = auth.New(g.store, auth.Options{
		Issuer: issuer, PublicURL: audience, Now: g.clock.Now,
		External: &auth.External{Provider: f.provider, Audience: audience, Org: g.org,
			Roles: map[snap.Role][]string{snap.RoleAdmin: {"admins"}}},
	})
	return f
}

func (f *foreign) rotate(t *testing.T, kid string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	f.key.Store(key)
	f.kid.Store(kid)
}

// token is an access token as this service issues it, with changes.
func (f *foreign) token(g *gate, typ string, changes ...any) string {
	now := g.clock.Now().Unix()
	claims := map[string]any{"iss": f.URL, "aud": audience, "sub": "s1", "iat": now, "exp": now + 600,
		"jti":       rand.Text(),
		"client_id": "snapcli"}
	for i := 0; i < len(changes); i += 2 {
		if claims[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(claims, changes[i].(string))
		}
	}
	return craft(g.t, jose.ES256, f.key.Load(), f.kid.Load().(string), typ, claims)
}

func (g *gate) callerBy(token string) (snap.Caller, error) {
	return g.User(request(http.MethodGet, "/api/v1/me", "Authorization", "Bearer "+token))
}

// auth.issuer: a good token becomes a user with role and groups, from its own
// claims or from userinfo. The keys of the auth service may rotate.
func TestExternalAccessTokens(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	c, err := g.callerBy(f.token(g, "at+jwt"))
	if err != nil || c.User.Email != "mia@acme.test" || c.Role != snap.RoleAdmin ||
		c.Credential.Kind != snap.LoginToken {
		t.Fatalf("groups from userinfo: %+v, %v", c, err)
	}
	f.rotate(t, "two")
	g.clock.Advance(time.Second)
	again, err := g.callerBy(f.token(g, "JWT", "groups", []string{"eng"}, "email", "mia@acme.test"))
	groups, unread := g.store.GroupsOf(t.Context(), again)
	if err != nil || unread != nil || again.User.ID != c.User.ID || again.Role != snap.RoleMember || len(groups) != 1 {
		t.Errorf("groups from the token, after the keys rotated: %+v, %v", again, err)
	}
	now := request(http.MethodGet, "/")
	if _, err := g.Recheck(now, snap.LoginToken, again.Credential.ID, again.User.ID); err != nil {
		t.Errorf("the token's session: %v", err)
	}
}

// TestOlderExternalTokensChangeNothing: an external token that is first used after the service
// learned something newer about its user does not restore the role and groups that the token names.
func TestOlderExternalTokensChangeNothing(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	issue := func(groups ...string) string {
		token := f.token(g, "at+jwt", "groups", append([]string{}, groups...), "email", "mia@acme.test")
		g.clock.Advance(time.Second)
		return token
	}
	use := func(when, token string, role snap.Role, groups int) snap.Caller {
		t.Helper()
		c, err := g.callerBy(token)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if in, err := g.store.GroupsOf(t.Context(), c); err != nil || c.Role != role || len(in) != groups {
			t.Errorf("%s: %s in %d groups, %v; want %s in %d", when, c.Role, len(in), err, role, groups)
		}
		return c
	}
	issued := g.clock.Now()
	older, same, newer := issue("admins"), f.token(g, "at+jwt", "groups", []string{"admins"}, "email", "x"), issue()
	c := use("the newer token", newer, snap.RoleMember, 0)
	use("the older token", older, snap.RoleMember, 0)
	use("a token of the same second", same, snap.RoleMember, 0)
	beforeSignIn := issue("admins", "eng")
	if _, err := g.store.ApplySignIn(t.Context(), store.SignIn{OrgID: g.org.ID, Issuer: f.URL, Subject: "s1",
		Email: "mia@acme.test", Role: snap.RoleMember, AsOf: g.clock.Now()}); err != nil {
		t.Fatal(err)
	}
	use("a token from before a sign-in", beforeSignIn, snap.RoleMember, 0)
	g.clock.Advance(time.Second)
	beforeChange := issue("admins")
	if err := g.store.SetRole(t.Context(), c.User.ID, snap.RoleViewer); err != nil {
		t.Fatal(err)
	}
	use("a token from before a change of the role", beforeChange, snap.RoleViewer, 0)
	g.clock.Advance(time.Second)
	use("a new token", issue("admins"), snap.RoleAdmin, 1)
	userinfo := f.token(g, "at+jwt", "iat", issued.Unix())
	use("an older token whose groups are in userinfo", userinfo, snap.RoleAdmin, 1)
}

// auth.issuer, T7: everything else is refused.
func TestForgedExternalTokens(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	good := f.token(g, "at+jwt")
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := g.clock.Now().Unix()
	for name, bad := range map[string]string{
		"audience":    f.token(g, "at+jwt", "aud", "snapcli"),
		"no audience": f.token(g, "at+jwt", "aud", nil),
		"issuer":      f.token(g, "at+jwt", "iss", "https://evil.test"),
		"expired":     f.token(g, "at+jwt", "exp", now-1),
		"no iat":      f.token(g, "at+jwt", "iat", nil),
		"ID token":    f.token(g, "JWT", "nonce", "n"),
		"ID token, 2": f.token(g, "JWT", "at_hash", "h"),
		"ID token, 3": f.token(g, "JWT", "typ", "ID"),
		"another key": craft(t, jose.ES256, other, "one", "at+jwt",
			map[string]any{"iss": f.URL, "aud": audience, "sub": "s1", "iat": now, "exp": now + 60}),
		"HS256": craft(t, jose.HS256, []byte(strings.Repeat("k", 32)), "one", "at+jwt",
			map[string]any{"iss": f.URL, "aud": audience, "sub": "s1", "iat": now, "exp": now + 60}),
		"cut":           good[:len(good)-4],
		"as our issuer": f.token(g, "at+jwt", "iss", issuer, "sid", "1"),
	} {
		if c, err := g.callerBy(bad); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if _, err := g.callerBy(f.token(g, "at+jwt", "name", "a\x00")); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a name that cannot be stored: %v", err)
	}
	if _, err := g.callerBy(good); err != nil {
		t.Errorf("the valid token: %v", err)
	}
}

// An ended external session stays ended while its token is still valid. A disabled
// user cannot sign in. A token ends at its expiry.
func TestEndedExternalSession(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	token := f.token(g, "at+jwt")
	c, err := g.callerBy(token)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.store.EndSession(t.Context(), c, c.Credential.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := g.callerBy(token); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the ended session: %v", err)
	}
	next := f.token(g, "at+jwt")
	if _, err := g.callerBy(next); err != nil {
		t.Errorf("another token: %v", err)
	}
	g.clock.Advance(10 * time.Minute)
	if _, err := g.callerBy(next); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("after its expiry: %v", err)
	}
	if err := g.store.SetDisabled(t.Context(), c.User.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := g.callerBy(f.token(g, "at+jwt")); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a disabled user: %v", err)
	}
}

// A token confirms its user only as of the time at which it was issued, and not at all after its
// session has ended.
func TestExternalTokensConfirmAsOfTheirIssue(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	issued, first := g.clock.Now(), f.token(g, "at+jwt")
	g.clock.Advance(time.Minute)
	second := f.token(g, "at+jwt")
	g.clock.Advance(time.Minute)
	c, err := g.callerBy(first)
	if err != nil {
		t.Fatal(err)
	}
	confirmed := func(want time.Time) {
		t.Helper()
		s, err := g.store.StandingOf(t.Context(), c.User.ID)
		if err != nil || s.Checked.Unix() != want.Unix() {
			t.Errorf("confirmed at %s, %v; want %s", s.Checked, err, want)
		}
	}
	confirmed(issued)
	if err := g.store.EndSession(t.Context(), c, c.Credential.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := g.callerBy(first); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the ended session: %v", err)
	}
	confirmed(issued)
	if _, err := g.callerBy(second); err != nil {
		t.Fatal(err)
	}
	confirmed(issued.Add(time.Minute))
}

// F6: while the auth service is down, tokens whose keys are known stay valid,
// and a token that cannot be verified is "unavailable", not wrong.
func TestExternalAuthServiceDown(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	f := g.foreign()
	f.down.Store(true)
	token := f.token(g, "at+jwt")
	if _, err := g.callerBy(token); snap.CodeOf(err) != snap.CodeUnavailable {
		t.Errorf("before it was ever reached: %v", err)
	}
	f.down.Store(false)
	if _, err := f.provider.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.down.Store(true)
	if _, err := g.callerBy(token); snap.CodeOf(err) != snap.CodeUnavailable {
		t.Errorf("before its keys were ever read: %v", err)
	}
	f.down.Store(false)
	if _, err := g.callerBy(token); err != nil {
		t.Fatal(err)
	}
	f.down.Store(true)
	g.clock.Advance(time.Minute)
	if _, err := g.callerBy(token); err != nil {
		t.Errorf("a running session: %v", err)
	}
	g.clock.Advance(time.Hour)
	asked := f.asked.Load()
	for range 3 {
		if _, err := f.provider.Discover(t.Context()); err != nil {
			t.Errorf("with the earlier metadata: %v", err)
		}
	}
	if n := f.asked.Load() - asked; n != 1 {
		t.Errorf("a provider that is down was asked %d times at once, want 1", n)
	}
	g.clock.Advance(time.Minute)
	f.down.Store(false)
	if _, err := f.provider.Discover(t.Context()); err != nil || f.asked.Load()-asked != 2 {
		t.Errorf("a minute later: %v, asked %d times", err, f.asked.Load()-asked)
	}
}
