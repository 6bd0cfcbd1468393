package signin_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/auditlog"
	"snap/internal/auth"
	"snap/internal/clocktest"
	"snap/internal/servertest"
	"snap/internal/signin"
	"snap/internal/store"
)

// startSealed starts the service with one identity provider that issues refresh
// tokens, and a key to keep them.
func startSealed(t *testing.T, o func(*house) store.Options) (*house, *idp) {
	t.Helper()
	c := newClock()
	p := newIDP(t, c)
	p.refresh = "first"
	h := &house{t: t, dir: t.TempDir(), clock: c, log: &syncBuffer{}, sealer: newSealer(t)}
	return h.open(o(h), []signin.Organization{p.organization("acme")}), p
}

func newSealer(t *testing.T) *auth.Sealer {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	sealer, err := auth.NewSealer(base64.StdEncoding.EncodeToString(key))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// loginUpstream signs Mia in at her identity provider, and then logs a device in for her.
func (h *house) loginUpstream() tokens {
	h.t.Helper()
	deviceCode, userCode := h.device()
	b := h.browser()
	b.get(startAcme)
	page := b.submit(b.get("/auth/device?user_code="+userCode), "/auth/device", "user_code", userCode)
	b.submit(page, "/auth/device/confirm", "user_code", userCode, "decision", "approve")
	return tokensOf(h.t, h.poll(deviceCode))
}

// renewed refreshes a session that must still be good.
func (h *house) renewed(got tokens) tokens {
	h.t.Helper()
	return tokensOf(h.t, h.refresh(got.refresh))
}

// hasRole checks the role of Mia and how many groups she is in.
func (h *house) hasRole(role snap.Role, groups int) {
	h.t.Helper()
	m, err := h.member("acme", "mia@acme.test")
	if err != nil || m.Role != role || len(m.Groups) != groups {
		h.t.Errorf("role %s, %d groups, %v; want %s, %d", m.Role, len(m.Groups), err, role, groups)
	}
}

// recheck runs one round of background checks, which must ask about this number of people.
func (h *house) recheck(want int) {
	h.t.Helper()
	if n, err := h.service.Recheck(h.t.Context()); err != nil || n != want {
		h.t.Errorf("asked about %d people, %v; want %d", n, err, want)
	}
}

// hasAudit checks that the audit log has exactly one line with an action, and that it is about a
// user.
func (h *house) hasAudit(action snap.AuditAction, user string) {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	h.sequence(org.ID)
	page, err := h.store.Audit(h.t.Context(), snap.Caller{Org: org.OrgRef}, store.AuditQuery{Action: action, Limit: 10})
	if err != nil || len(page.Items) != 1 || page.Items[0].Detail.User != user {
		h.t.Errorf("%s: %+v, %v", action, page.Items, err)
	}
}

// sequence numbers the waiting lines of an organization's audit log.
func (h *house) sequence(orgID int64) {
	h.t.Helper()
	key := auditlog.NewKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	if _, err := h.store.Sequence(h.t.Context(), orgID, key); err != nil {
		h.t.Fatal(err)
	}
}

// databaseText is everything in the files of the database.
func (h *house) databaseText() string {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil {
		h.t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			h.t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// TestLeaverIsOutAtTheNextRefresh: a person who was removed at the identity provider loses every
// session and key with the first check, and the audit log says why.
func TestLeaverIsOutAtTheNextRefresh(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	first, second := h.loginUpstream(), h.loginUpstream()
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	org, err := h.store.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	key, _, err := h.auth.NewKey(t.Context(), auth.KeySpec{OrgID: org.ID, UserID: m.ID, Kind: snap.UserKey,
		Name: "laptop"})
	if err != nil {
		t.Fatal(err)
	}
	if a := h.get("/api/agent", "X-API-Key", key); a.status != http.StatusOK {
		t.Fatalf("the key before the removal: %d %s", a.status, a.body)
	}
	p.lie(func(p *idp) { p.left = true })
	first = h.renewed(first) // checked a moment ago
	h.clock.Advance(signin.DefaultRecheck)
	wantError(t, h.refresh(first.refresh), "invalid_grant")
	wantError(t, h.refresh(second.refresh), "invalid_grant")
	for name, a := range map[string]answer{"session": h.api(first.access), "other session": h.api(second.access),
		"key": h.get("/api/agent", "X-API-Key", key)} {
		if a.status != http.StatusUnauthorized {
			t.Errorf("the %s after the removal: %d %s", name, a.status, a.body)
		}
	}
	h.hasAudit("user.left", "mia@acme.test")
	p.lie(func(p *idp) { p.left = false })
	h.renewed(h.loginUpstream()) // back again after a sign-in
}

// TestLeaverIsOutAfterRecheck: an access token that is still valid does not outlive the removal of
// its person by more than sign_in.recheck, even when no background work runs.
func TestLeaverIsOutAfterRecheck(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	tokens := h.loginUpstream()
	p.lie(func(p *idp) { p.left = true })
	h.clock.Advance(8 * time.Minute)
	tokens = h.renewed(tokens) // without asking: the last check is recent enough
	h.clock.Advance(signin.DefaultRecheck - 8*time.Minute - time.Second)
	if a := h.api(tokens.access); a.status != http.StatusOK {
		t.Errorf("before recheck: %d %s", a.status, a.body)
	}
	h.clock.Advance(time.Second)
	if a := h.api(tokens.access); a.status != http.StatusUnauthorized {
		t.Errorf("after recheck: %d %s", a.status, a.body)
	}
	h.hasAudit("user.left", "mia@acme.test")
}

// TestRecheckReplacesRoleAndGroups: the background check applies the provider's response, in each
// of its forms, and asks only about people who are active.
func TestRecheckReplacesRoleAndGroups(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*house) store.Options{
		"SQLite": storeIn,
		"PostgreSQL": func(h *house) store.Options {
			return store.Options{URL: postgres(h.t), Now: h.clock.Now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := startSealed(t, store)
			p.lie(func(p *idp) { p.claims = map[string]any{"groups": []string{"admins", "eng"}} })
			got := h.loginUpstream()
			h.hasRole("admin", 2)
			h.recheck(0)
			h.clock.Advance(signin.DefaultRecheck)
			h.recheck(0) // nothing was used since the last check
			got = h.renewed(got)
			p.lie(func(p *idp) { p.claims = map[string]any{"groups": []string{"eng"}} })
			h.recheck(0) // the refresh asked
			h.hasRole("admin", 2)
			h.clock.Advance(signin.DefaultRecheck - time.Minute)
			got = h.renewed(got)
			h.clock.Advance(time.Minute)
			h.recheck(1)
			h.hasRole("member", 1)
			p.lie(func(p *idp) { p.withoutID = true }) // the response says nothing about groups, so nothing changes
			h.clock.Advance(signin.DefaultRecheck)
			got = h.renewed(got)
			h.hasRole("member", 1)
			p.lie(func(p *idp) { p.userinfo["groups"] = []string{"admins"} })
			h.clock.Advance(signin.DefaultRecheck)
			h.renewed(got)
			h.hasRole("admin", 1)
		})
	}
}

// TestDisabledPeopleLearnWhy: a person whom the operator disabled learns that, although the
// provider still confirms them.
func TestDisabledPeopleLearnWhy(t *testing.T) {
	t.Parallel()
	h, _ := startSealed(t, storeIn)
	got := h.loginUpstream()
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.store.SetDisabled(t.Context(), m.ID, true); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(signin.DefaultMaxStaleness + time.Hour)
	a := h.refresh(got.refresh)
	wantError(t, a, "invalid_grant")
	if !strings.Contains(a.body, "disabled") || strings.Contains(h.log.String(), "did not answer") {
		t.Errorf("%s\n%s", a.body, h.log)
	}
}

// TestRoleByEmailOutlastsChecks: if the provider's response to a check has no e-mail, the verified
// e-mail of the sign-in still counts.
func TestRoleByEmailOutlastsChecks(t *testing.T) {
	t.Parallel()
	c := newClock()
	p := newIDP(t, c)
	p.refresh = "first"
	org := p.organization("acme")
	org.OIDC.Roles = map[snap.Role][]string{snap.RoleOwner: {"mia@acme.test"}}
	h := &house{t: t, dir: t.TempDir(), clock: c, log: &syncBuffer{}, sealer: newSealer(t)}
	h.open(storeIn(h), []signin.Organization{org})
	got := h.loginUpstream()
	p.lie(func(p *idp) { p.claims = map[string]any{"email": nil, "email_verified": nil} })
	for range 2 {
		h.hasRole("owner", 0)
		h.clock.Advance(signin.DefaultRecheck)
		got = h.renewed(got)
	}
	h.hasRole("owner", 0)
}

// TestRequestThatAsksHasTheNewRole: the request that asks the provider already gets the role and
// groups that the provider reports, and so do later requests.
func TestRequestThatAsksHasTheNewRole(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	p.lie(func(p *idp) { p.claims = map[string]any{"groups": []string{"admins", "eng"}} })
	got := h.loginUpstream()
	is := func(when string, role snap.Role) {
		t.Helper()
		a := h.api(got.access)
		if a.status != http.StatusOK || a.body != "mia@acme.test "+string(role) {
			t.Errorf("%s: %d %s, want the role %s", when, a.status, a.body, role)
		}
	}
	is("at first", snap.RoleAdmin)
	for _, change := range []struct {
		groups []string
		role   snap.Role
	}{{[]string{"eng"}, snap.RoleMember}, {[]string{"admins"}, snap.RoleAdmin}} {
		before := snap.RoleAdmin
		if change.role == snap.RoleAdmin {
			before = snap.RoleMember
		}
		p.lie(func(p *idp) { p.claims = map[string]any{"groups": change.groups} })
		h.clock.Advance(signin.DefaultRecheck - 8*time.Minute)
		got = h.renewed(got) // access tokens are valid for ten minutes; this one asks nobody
		is("before the check is due", before)
		h.clock.Advance(8 * time.Minute)
		is("at the request that asks", change.role)
		h.recheck(0)
		h.hasRole(change.role, 1)
	}
}

// An outage shorter than max_staleness ends nothing, whatever the provider's response is. After
// that time, refreshes wait for the provider without losing the session.
func TestProviderThatFailsLocksNobodyOut(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*idp){
		"down":               func(p *idp) { p.down = true },
		"garbage":            func(p *idp) { p.garbage = `{"access_token": 1` },
		"empty":              func(p *idp) { p.garbage = `{}` },
		"another error":      func(p *idp) { p.garbage = `{"error":"invalid_client"}` },
		"someone else":       func(p *idp) { p.claims = map[string]any{"sub": "subject-2"} },
		"wrong audience":     func(p *idp) { p.claims = map[string]any{"aud": "other"} },
		"HS256":              func(p *idp) { p.header = "HS256" },
		"userinfo of others": func(p *idp) { p.withoutID, p.userinfo = true, map[string]any{"sub": "subject-2"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := startSealed(t, storeIn)
			got := h.loginUpstream()
			p.lie(fail)
			h.clock.Advance(signin.DefaultMaxStaleness - time.Hour)
			got = h.renewed(got)
			before := p.refreshes
			got = h.renewed(got) // the provider is not asked for a while
			if p.refreshes != before {
				t.Errorf("the provider was asked %d times within a minute", 1+p.refreshes-before)
			}
			h.clock.Advance(time.Hour)
			a := h.refresh(got.refresh)
			wantError(t, a, "unauthorized_client")
			if !strings.Contains(a.body, "has not confirmed the account since 2026-11-20T09:00:00Z") {
				t.Errorf("the response does not say since when the account is not confirmed: %s", a.body)
			}
			h.hasRole("viewer", 0) // the first sign-in had no groups
			p.lie(func(p *idp) {
				p.down, p.garbage, p.claims, p.header, p.withoutID = false, "", nil, "", false
				p.userinfo = map[string]any{"sub": "subject-1"}
			})
			h.clock.Advance(time.Minute)
			h.renewed(got)
		})
	}
}

// TestBrowserSessionsRespectMaxStaleness: while the provider does not answer, a browser session
// works for max_staleness. It works again when the provider answers.
func TestBrowserSessionsRespectMaxStaleness(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	b := h.browser()
	b.get(startAcme)
	p.lie(func(p *idp) { p.down = true })
	is := func(when string, status int, page string) {
		t.Helper()
		if a := b.get("/auth/account"); a.url.Path != page {
			t.Errorf("%s: the page %s, want %s", when, a.url.Path, page)
		}
		if a := b.get("/api/user"); a.status != status {
			t.Errorf("%s: %d %s", when, a.status, a.body)
		}
	}
	h.clock.Advance(signin.DefaultMaxStaleness - time.Minute)
	is("before max_staleness", http.StatusOK, "/auth/account")
	h.clock.Advance(time.Minute)
	is("after max_staleness", http.StatusUnauthorized, "/auth/signin")
	p.lie(func(p *idp) { p.down = false })
	h.clock.Advance(time.Minute)
	is("when the provider answers again", http.StatusOK, "/auth/account")
}

// TestProviderThatRotatesKeys: a provider may sign with a new key at any time, under another name
// or under the same one. A token signed with a key that the provider does not publish has no effect
// and locks nobody out.
func TestProviderThatRotatesKeys(t *testing.T) {
	t.Parallel()
	for _, kid := range []string{"another", "k"} {
		h, p := startSealed(t, storeIn)
		got, old := h.loginUpstream(), p.key
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		p.lie(func(p *idp) {
			p.key, p.signs, p.kid, p.claims = key, key, kid, map[string]any{"groups": []string{"admins"}}
		})
		h.clock.Advance(signin.DefaultRecheck)
		got = h.renewed(got)
		h.hasRole("admin", 1)
		p.lie(func(p *idp) { p.signs, p.claims = old, map[string]any{"groups": []string{"eng", "dba"}} })
		h.clock.Advance(signin.DefaultRecheck)
		h.renewed(got)
		h.hasRole("admin", 1)
	}
}

// TestInteractiveSignInIsDue: a session lasts 30 days from the last interactive sign-in, or 24
// hours if the service cannot ask the identity provider about the person again. SignInDue returns
// when it ends.
func TestInteractiveSignInIsDue(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		start func(*testing.T) *house
		login func(*house) tokens
		last  time.Duration
	}{
		"local user": {func(t *testing.T) *house { return start(t) },
			func(h *house) tokens { return h.login("mia@acme.test", "mia-password") }, 30 * day},
		"provider with refresh tokens": {func(t *testing.T) *house { h, _ := startSealed(t, storeIn); return h },
			(*house).loginUpstream, 30 * day},
		"provider without": {func(t *testing.T) *house {
			h, p := startSealed(t, storeIn)
			p.refresh = ""
			return h
		}, (*house).loginUpstream, day},
		"service without a key": {func(t *testing.T) *house { h, _ := startWith(t, 1); return h },
			(*house).loginUpstream, day},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := test.start(t)
			began := h.clock.Now()
			got := test.login(h)
			h.clock.Advance(test.last - time.Hour)
			got = h.renewed(got)
			m, err := h.member("acme", "mia@acme.test")
			if err != nil {
				t.Fatal(err)
			}
			if due, _, err := h.service.SignInDue(t.Context(), m.ID); err != nil || !due.Equal(began.Add(test.last)) {
				t.Errorf("due %s, %v; want %s", due, err, began.Add(test.last))
			}
			h.clock.Advance(time.Hour)
			a := h.refresh(got.refresh)
			wantError(t, a, "invalid_grant")
			if !strings.Contains(a.body, "sign in again") {
				t.Errorf("%s", a.body)
			}
			test.login(h)
		})
	}
}

// TestBrowserSessionsEndWhenSignInIsDue: a browser whose user the provider cannot confirm is signed
// out after a day, even if it is used all the time.
func TestBrowserSessionsEndWhenSignInIsDue(t *testing.T) {
	t.Parallel()
	h, _ := startWith(t, 1)
	b := h.browser()
	for range 2 {
		if a := b.get(startAcme); a.url.Path != "/auth/account" {
			t.Fatalf("%d %s", a.status, a.url)
		}
		h.clock.Advance(23 * time.Hour)
		if a := b.get("/auth/account"); a.url.Path != "/auth/account" {
			t.Errorf("after 23 hours: %s", a.url)
		}
		h.clock.Advance(time.Hour)
		if a := b.get("/auth/account"); a.url.Path != "/auth/signin" {
			t.Errorf("after a day: %s", a.url)
		}
	}
}

// TestRefreshTokensAreUsedOnce: of many refreshes at once, only one asks a provider that rotates
// its tokens, since a second use of a token would end the person's access.
func TestRefreshTokensAreUsedOnce(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	var sessions []tokens
	for range 8 {
		sessions = append(sessions, h.loginUpstream())
	}
	h.clock.Advance(signin.DefaultRecheck)
	before := p.refreshes
	var all sync.WaitGroup
	for _, n := range sessions {
		all.Go(func() {
			if a := h.refresh(n.refresh); a.status != http.StatusOK {
				t.Errorf("refresh: %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if p.refreshes != before+1 {
		t.Errorf("the provider was asked %d times", p.refreshes-before)
	}
}

// TestProviderTokensAreSealed: the database holds no refresh token of a provider unencrypted, and
// none at all if the service has no key.
func TestProviderTokensAreSealed(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	h.loginUpstream()
	if in := h.databaseText(); strings.Contains(in, p.refresh) || !strings.Contains(in, "subject-1") {
		t.Error("the provider's refresh token is readable in the database, or the search does not find the subject")
	}
	plain, idps := startWith(t, 1)
	idps[0].refresh = "plain-refresh-token"
	plain.loginUpstream()
	if in := plain.databaseText(); strings.Contains(in, idps[0].refresh) {
		t.Error("the service keeps refresh tokens without a key")
	}
	if !strings.Contains(plain.log.String(), "auth.key_encryption_key is not set") {
		t.Error("the service does not say at start what a missing key means")
	}
}

// TestRecheckAtProvidersOfOthers: third-party providers issue refresh tokens for our scopes, rotate
// them in their own ways and confirm a person again.
func TestRecheckAtProvidersOfOthers(t *testing.T) {
	t.Parallel()
	for name, provider := range map[string]func(testing.TB, servertest.OIDC) string{
		"oidc-provider": servertest.OIDCProvider, "zitadel": servertest.Zitadel,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &house{t: t, dir: t.TempDir(), clock: clocktest.New(time.Now()), log: &syncBuffer{},
				sealer: newSealer(t)}
			h.listen()
			issuer := provider(t, servertest.OIDC{Redirect: h.url + "/auth/upstream/callback", Audience: h.url,
				Claims:    map[string]map[string]any{"mia": {"groups": []string{"admins", "eng"}}},
				InIDToken: true})
			h.open(storeIn(h), []signin.Organization{{Slug: "acme", OIDC: &signin.OIDC{
				Issuer: issuer, ClientID: "snapcloud", ClientSecret: servertest.OIDCSecret, AllowPrivate: true,
				Scopes: []string{"openid", "profile", "email", "offline_access"},
				Roles:  map[snap.Role][]string{snap.RoleAdmin: {"admins"}},
			}}})
			b := h.browser()
			if status, at, body := servertest.OIDCSignIn(t, b.c, h.url+startAcme, "mia"); at.Path != "/auth/account" {
				t.Fatalf("%d at %s: %s", status, at, body)
			}
			for range 2 { // the second time with the token that the first brought
				h.clock.Advance(2 * time.Minute)
				b.get("/auth/account")
				h.clock.Advance(signin.DefaultRecheck)
				h.recheck(1)
				m, err := h.member("acme", "mia@acme.test")
				if err != nil {
					t.Fatal(err)
				}
				if _, confirmed, err := h.service.SignInDue(t.Context(), m.ID); err != nil ||
					confirmed.UnixMilli() != h.clock.Now().UnixMilli() {
					t.Errorf("confirmed %s, %v; it is %s", confirmed, err, h.clock.Now())
				}
				h.hasRole("admin", 2)
			}
		})
	}
}
