package signin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/signin"
)

// keyOfMia returns a user-scoped key of Mia.
func (h *house) keyOfMia() string {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		h.t.Fatal(err)
	}
	secret, _, err := h.auth.NewKey(h.t.Context(), auth.KeySpec{OrgID: org.ID, UserID: m.ID, Kind: snap.UserKey,
		Name: "nightly"})
	if err != nil {
		h.t.Fatal(err)
	}
	return secret
}

// useKey uses a key, and checks that it works, or that it is refused like every bad key (K5).
func (h *house) useKey(key string, works bool) {
	h.t.Helper()
	a := h.get("/api/agent", "X-API-Key", key)
	if works && a.status != http.StatusOK || !works && a.status != http.StatusUnauthorized {
		h.t.Errorf("on %s: %d %s", h.clock.Now().Format(time.DateTime), a.status, a.body)
	}
}

// TestKeysEndWithTheirPeople: a key works only while the identity provider knows its person. After
// a removal, a key is refused at its first use after sign_in.recheck has passed, even when the
// background work is behind.
func TestKeysEndWithTheirPeople(t *testing.T) {
	t.Parallel()
	t.Run("removed, key was idle", func(t *testing.T) {
		t.Parallel()
		h, p := startSealed(t, storeIn)
		h.loginUpstream()
		key := h.keyOfMia()
		p.lie(func(p *idp) { p.left = true })
		h.clock.Advance(20 * time.Hour)
		h.recheck(0)
		h.useKey(key, false)
		h.hasAudit(snap.AuditUserLeft, "mia@acme.test")
	})
	t.Run("removed, key in use", func(t *testing.T) {
		t.Parallel()
		h, p := startSealed(t, storeIn)
		h.loginUpstream()
		key := h.keyOfMia()
		h.clock.Advance(time.Minute)
		h.useKey(key, true)
		p.lie(func(p *idp) { p.left = true })
		h.clock.Advance(signin.DefaultRecheck - time.Minute - time.Second)
		h.useKey(key, true)
		h.clock.Advance(time.Second)
		h.useKey(key, false)
		h.recheck(0)
	})
	t.Run("a nightly job continues", func(t *testing.T) {
		t.Parallel()
		h, p := startSealed(t, storeIn)
		h.loginUpstream()
		key := h.keyOfMia()
		for range 40 { // longer than policy.max_login, which is about sessions
			h.clock.Advance(25 * time.Hour)
			h.useKey(key, true)
		}
		if p.refreshes != 40 {
			t.Errorf("the provider was asked %d times", p.refreshes)
		}
	})
	t.Run("local users", func(t *testing.T) {
		t.Parallel()
		h := start(t)
		key := h.keyOfMia()
		h.clock.Advance(400 * 24 * time.Hour)
		h.useKey(key, true)
	})
}

// TestKeysAtProvidersThatFail: an outage stops no key before max_staleness, and every key of the
// provider's people after it, until the provider responds or the person signs in.
func TestKeysAtProvidersThatFail(t *testing.T) {
	t.Parallel()
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		h, p := startSealed(t, storeIn)
		h.loginUpstream()
		key := h.keyOfMia()
		p.lie(func(p *idp) { p.down = true })
		h.clock.Advance(signin.DefaultMaxStaleness - time.Minute)
		h.useKey(key, true)
		h.clock.Advance(time.Minute)
		h.useKey(key, false)
		if !strings.Contains(h.log.String(), "has not confirmed its user recently") {
			t.Error("the log does not say why the key was refused")
		}
		p.lie(func(p *idp) { p.down = false })
		h.clock.Advance(time.Minute)
		h.useKey(key, true)
	})
	t.Run("no refresh tokens", func(t *testing.T) {
		t.Parallel()
		h, p := startSealed(t, storeIn)
		p.refresh = ""
		h.loginUpstream()
		key := h.keyOfMia()
		h.clock.Advance(signin.DefaultMaxStaleness - time.Minute)
		h.useKey(key, true)
		h.clock.Advance(time.Minute)
		h.useKey(key, false)
		h.loginUpstream()
		h.useKey(key, true)
	})
	t.Run("longer by policy", func(t *testing.T) {
		t.Parallel()
		c := newClock()
		p := newIDP(t, c)
		org := p.organization("acme")
		org.MaxStaleness = 10 * 24 * time.Hour
		h := &house{t: t, dir: t.TempDir(), clock: c, log: &syncBuffer{}}
		h.open(storeIn(h), []signin.Organization{org})
		h.loginUpstream()
		key := h.keyOfMia()
		h.clock.Advance(10*24*time.Hour - time.Second)
		h.useKey(key, true)
		h.clock.Advance(time.Second)
		h.useKey(key, false)
	})
}

// The form of a new key takes networks, and only owners and admins are offered the console.
func TestKeyForm(t *testing.T) {
	t.Parallel()
	h := start(t)
	mia, alice := h.browser(), h.browser()
	mia.signIn("mia@acme.test", "mia-password")
	alice.signIn("alice@acme.test", "alice-password")
	a := mia.submit(mia.get("/auth/account"), "/auth/account/keys", "name", "office",
		"from", "10.0.0.0/8 2001:db8::/32")
	if a.status != http.StatusCreated || !strings.Contains(a.body, "only from 10.0.0.0/8, 2001:db8::/32") {
		t.Errorf("a key with networks: %d %s", a.status, a.body)
	}
	if a := mia.submit(a, "/auth/account/keys", "name", "x", "from", "10.0.0.1/8"); a.status != http.StatusBadRequest {
		t.Errorf("a wrong network: %d", a.status)
	}
	if strings.Contains(mia.get("/auth/account").body, "/console") {
		t.Error("a member is offered the console")
	}
	if !strings.Contains(alice.get("/auth/account").body, `href="/console"`) {
		t.Error("an owner is not offered the console")
	}
}
