package auth_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/store"
)

// signIn signs a user's browser in and returns its cookie.
func (g *gate) signIn(user int64, r *http.Request) (*http.Cookie, store.Session) {
	g.t.Helper()
	b := auth.NewBrowser(g.store, "https://cloud.test", g.clock.Now, auth.ProxiedAddress(nil))
	w := httptest.NewRecorder()
	n, err := b.SignIn(w, r, user, time.Time{}, g.clock.Now().Add(30*24*time.Hour))
	if err != nil {
		g.t.Fatal(err)
	}
	return w.Result().Cookies()[0], n
}

func with(cookie *http.Cookie, method string, headers ...string) *http.Request {
	r := request(method, "https://cloud.test/api/v1/me", headers...)
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	return r
}

// S2: the cookie's attributes, and its plain name on http loopback only.
func TestSessionCookie(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c, _ := g.signIn(g.mia, request(http.MethodPost, "/auth/signin"))
	if c.Name != "__Host-snap_session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode ||
		c.Domain != "" || c.Path != "/" {
		t.Errorf("cookie %+v", c)
	}
	w := httptest.NewRecorder()
	plain := auth.NewBrowser(g.store, "http://127.0.0.1:8080", g.clock.Now, auth.ProxiedAddress(nil))
	if _, err := plain.SignIn(w, request(http.MethodPost, "/"), g.mia, time.Time{},
		g.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c := w.Result().Cookies()[0]; c.Name != "snap_session" || c.Secure || !c.HttpOnly {
		t.Errorf("cookie on loopback %+v", c)
	}
}

// S1: each sign-in sets a new value, whatever cookie the browser sent. The old session ends, and
// the database does not hold the value.
func TestSessionIsNewAtEachSignIn(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	planted := &http.Cookie{Name: "__Host-snap_session", Value: "AAAAAAAAAAAAAAAAAAAAAAAAAA"}
	first, _ := g.signIn(g.mia, with(planted, http.MethodPost))
	second, _ := g.signIn(g.mia, with(first, http.MethodPost))
	if first.Value == planted.Value || first.Value == second.Value || len(first.Value) < 26 {
		t.Errorf("values %q, %q", first.Value, second.Value)
	}
	if _, err := g.User(with(first, http.MethodGet)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("the old session: %v", err)
	}
	if _, err := g.User(with(second, http.MethodGet)); err != nil {
		t.Errorf("the new session: %v", err)
	}
	if found := inFiles(t, g.dir, second.Value); found != "" {
		t.Errorf("the cookie is in %s", found)
	}
}

// S3: with a cookie, only our own pages can make requests that change something.
func TestCrossSiteRequestsAreRefused(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c, _ := g.signIn(g.mia, request(http.MethodPost, "/"))
	for _, tc := range []struct {
		name, method string
		headers      []string
		ok           bool
	}{
		{"GET from elsewhere", http.MethodGet, []string{"Sec-Fetch-Site", "cross-site"}, true},
		{"same origin", http.MethodPost, []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://cloud.test"},
			true},
		{"behind a proxy that changes Host", http.MethodPost,
			[]string{"Host", "10.0.0.7:8080", "Origin", "https://cloud.test"}, true},
		{"cross site", http.MethodPost, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.test"}, false},
		{"same site", http.MethodPost, []string{"Sec-Fetch-Site", "same-site", "Origin", "https://other.cloud.test"},
			false},
		{"old browser, same origin", http.MethodDelete, []string{"Origin", "https://cloud.test"}, true},
		{"old browser, other origin", http.MethodDelete, []string{"Origin", "https://evil.test"}, false},
		{"null origin", http.MethodPut, []string{"Origin", "null"}, false},
	} {
		_, err := g.User(with(c, tc.method, tc.headers...))
		if tc.ok != (err == nil) || err != nil && snap.CodeOf(err) != snap.CodeForbidden {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// A browser does not add a bearer token by itself, so the request is exempt: it fails because
	// of its token, not because of its origin.
	_, err := g.User(request(http.MethodPost, "/", "Authorization", "Bearer x", "Origin", "https://evil.test",
		"Sec-Fetch-Site", "cross-site"))
	if snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("bearer: %v", err)
	}
}

// S4: a session ends a day after its last use, a week after it began, and at
// sign-out; a copied cookie does not outlive it.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c, n := g.signIn(g.mia, request(http.MethodPost, "/"))
	for range 8 { // used often enough, until the week is over
		g.clock.Advance(20 * time.Hour)
		if _, err := g.User(with(c, http.MethodGet)); err != nil {
			t.Fatalf("after %v: %v", g.clock.Now().Sub(n.Created), err)
		}
	}
	g.clock.Advance(8 * time.Hour)
	if _, err := g.User(with(c, http.MethodGet)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("after a week: %v", err)
	}
	idle, _ := g.signIn(g.mia, request(http.MethodPost, "/"))
	g.clock.Advance(24 * time.Hour)
	if _, err := g.User(with(idle, http.MethodGet)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("after a day without use: %v", err)
	}
	copied, _ := g.signIn(g.mia, request(http.MethodPost, "/"))
	b := auth.NewBrowser(g.store, "https://cloud.test", g.clock.Now, auth.ProxiedAddress(nil))
	if err := b.SignOut(httptest.NewRecorder(), with(copied, http.MethodPost)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.User(with(copied, http.MethodGet)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("after sign-out: %v", err)
	}
}

// S5: a change of a user's role takes effect at the next request, and so does disabling the user.
func TestChangesActAtTheNextRequest(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	c, _ := g.signIn(g.mia, request(http.MethodPost, "/"))
	if err := g.store.SetRole(t.Context(), g.mia, snap.RoleViewer); err != nil {
		t.Fatal(err)
	}
	if got, err := g.User(with(c, http.MethodGet)); err != nil || got.Role != snap.RoleViewer {
		t.Errorf("role %q, %v", got.Role, err)
	}
	if err := g.store.SetDisabled(t.Context(), g.mia, true); err != nil {
		t.Fatal(err)
	}
	if _, err := g.User(with(c, http.MethodGet)); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("a disabled user: %v", err)
	}
}

// Recheck judges a credential as the next request would.
func TestRecheck(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	cookie, n := g.signIn(g.mia, request(http.MethodPost, "/"))
	_ = cookie
	_, key := g.key(auth.KeySpec{Kind: snap.PipelineKey})
	now := request(http.MethodGet, "/")
	if c, err := g.Recheck(now, snap.Browser, n.ID, g.mia); err != nil || c.User.ID != g.mia {
		t.Errorf("session: %+v, %v", c, err)
	}
	if c, err := g.Recheck(now, snap.PipelineKey, key.ID, g.org.ID); err != nil || c.Principal() != g.org.ID {
		t.Errorf("key: %+v, %v", c, err)
	}
	for name, check := range map[string]func() error{
		"another principal": func() error { _, err := g.Recheck(now, snap.Browser, n.ID, g.mia+1); return err },
		"another kind":      func() error { _, err := g.Recheck(now, snap.AgentKey, key.ID, g.org.ID); return err },
		"session, as token": func() error { _, err := g.Recheck(now, snap.LoginToken, n.ID, g.mia); return err },
		"revoked": func() error {
			_, key := g.key(auth.KeySpec{Kind: snap.PipelineKey}) // the other cases need theirs
			if err := g.store.RevokeOrgKey(t.Context(), g.org.ID, key.ID); err != nil {
				return err
			}
			_, err := g.Recheck(now, snap.PipelineKey, key.ID, g.org.ID)
			return err
		},
	} {
		if err := check(); snap.CodeOf(err) != snap.CodeUnauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}
