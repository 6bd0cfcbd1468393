package signin_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"snap/internal/servertest"
	"snap/internal/signin"
	"snap/internal/store"
)

// TestProviderThatHangs: a provider that never responds locks nobody out before max_staleness, and
// gives nobody rights. When it responds again, everything continues.
func TestProviderThatHangs(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	got := h.loginUpstream()
	key := h.keyOfMia()
	p.lie(func(p *idp) { p.hangs, p.claims = make(chan struct{}), map[string]any{"groups": []string{"admins"}} })
	h.service.SetTimeouts(time.Millisecond, servertest.Patience, servertest.Patience)
	for range 5 {
		h.clock.Advance(signin.DefaultMaxStaleness/5 - time.Minute)
		got = h.renewed(got)
		h.useKey(key, true)
		h.recheck(0) // the provider is not asked for a minute
	}
	h.hasRole("viewer", 0)
	h.clock.Advance(5 * time.Minute)
	wantError(t, h.refresh(got.refresh), "unauthorized_client")
	h.useKey(key, false)
	p.lie(func(p *idp) { p.hangs = nil })
	h.service.SetTimeouts(servertest.Patience, servertest.Patience, servertest.Patience)
	h.clock.Advance(time.Minute)
	h.renewed(got)
	h.useKey(key, true)
	h.hasRole("admin", 1)
}

// TestProviderThatIsSlow: requests do not wait until a slow provider responds. They are served with
// the previous rights, and the response counts when it arrives.
func TestProviderThatIsSlow(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	got := h.loginUpstream()
	key := h.keyOfMia()
	answers := make(chan struct{})
	p.lie(func(p *idp) { p.hangs, p.left = answers, true })
	h.service.SetTimeouts(servertest.Patience, 0, 0)
	h.clock.Advance(signin.DefaultRecheck)
	got = h.renewed(got)
	h.useKey(key, true)
	close(answers)
	h.until(func() bool { return strings.Contains(h.log.String(), "all sessions were ended and all keys revoked") })
	h.until(func() bool {
		m, err := h.member("acme", "mia@acme.test")
		return err == nil && m.Disabled
	})
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	h.useKey(key, false)
}

// TestRefusalThatIsLate: if a person signs in again, or the provider signs them out, while the
// provider is asked about the earlier sign-in, its refusal is no removal.
func TestRefusalThatIsLate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(*house, *idp)
		status    int // of the refresh that asked
	}{
		"signed in again": {func(h *house, _ *idp) { h.browser().get(startAcme) }, http.StatusOK},
		"signed out": {func(h *house, p *idp) { h.post("/upstream/logout", "logout_token", p.logout(nil)) },
			http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := startSealed(t, storeIn)
			got := h.loginUpstream()
			key := h.keyOfMia()
			answers := make(chan struct{})
			p.lie(func(p *idp) { p.hangs, p.left = answers, true })
			h.clock.Advance(signin.DefaultRecheck)
			refreshed := make(chan answer)
			go func() { refreshed <- h.refresh(got.refresh) }()
			h.until(func() (asked bool) {
				p.lie(func(p *idp) { asked = p.refreshes > 0 })
				return asked
			})
			test.meanwhile(h, p)
			close(answers)
			if a := <-refreshed; a.status != test.status {
				t.Errorf("the refresh: %d %s", a.status, a.body)
			}
			h.useKey(key, true)
			if m, err := h.member("acme", "mia@acme.test"); err != nil || m.Disabled {
				t.Errorf("the account: %+v, %v", m, err)
			}
		})
	}
}

// TestStopWaitsForProviders: a service that stops stores the responses of providers for which no
// request and no round of background checks waits any more.
func TestStopWaitsForProviders(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*house, tokens){
		"request": func(h *house, got tokens) { h.renewed(got) },
		"round": func(h *house, _ tokens) {
			if _, err := h.service.Recheck(h.t.Context()); err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := startSealed(t, storeIn)
			got, key := h.loginUpstream(), h.keyOfMia()
			h.clock.Advance(time.Minute)
			h.useKey(key, true) // background checks ask only about people who are active
			answers := make(chan struct{})
			p.lie(func(p *idp) { p.hangs, p.left = answers, true })
			h.service.SetTimeouts(servertest.Patience, 0, 0)
			h.clock.Advance(signin.DefaultRecheck)
			ask(h, got)
			close(answers)
			h.service.Wait()
			if m, err := h.member("acme", "mia@acme.test"); err != nil || !m.Disabled {
				t.Errorf("the response of the provider was lost: %+v, %v", m, err)
			}
		})
	}
}

// until waits for a condition.
func (h *house) until(ok func() bool) {
	h.t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-h.t.Context().Done():
			h.t.Fatal("the test ended before a condition held")
		}
	}
}

// TestSlowProviderDelaysNobodyElse: while one organization's provider hangs, all people of another are
// checked, and the provider that hangs gets one request.
func TestSlowProviderDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	c := newClock()
	hanging, good := newIDP(t, c), newIDP(t, c)
	h := &house{t: t, dir: t.TempDir(), clock: c, log: &syncBuffer{}, sealer: newSealer(t)}
	h.open(storeIn(h), []signin.Organization{hanging.organization("acme"), good.organization("globex")})
	for slug, p := range map[string]*idp{"acme": hanging, "globex": good} {
		h.signInMany(slug, p, 3)
		p.lie(func(p *idp) { p.garbage = `{}` })
	}
	answers := make(chan struct{})
	defer close(answers)
	hanging.lie(func(p *idp) { p.hangs = answers })
	h.clock.Advance(signin.DefaultRecheck)
	h.service.SetTimeouts(servertest.Patience, servertest.Patience, time.Millisecond)
	asked := func(p *idp) (n int) {
		p.lie(func(p *idp) { n = p.refreshes })
		return n
	}
	h.until(func() bool {
		if _, err := h.service.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		return asked(good) == 3 && asked(hanging) > 0
	})
	if n := asked(hanging); n != 1 {
		t.Errorf("the provider that hangs got %d requests", n)
	}
}

// TestRestoreLocksNobodyOut: after a restore from a backup, a provider that rotates refresh tokens
// refuses the restored ones. That is no removal.
func TestRestoreLocksNobodyOut(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	got := h.loginUpstream()
	key := h.keyOfMia()
	restored := &house{t: t, dir: t.TempDir(), clock: h.clock, log: &syncBuffer{}, sealer: h.sealer}
	if err := store.BackUp(t.Context(), h.dir, filepath.Join(restored.dir, "snapcloud.db")); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(signin.DefaultRecheck)
	h.renewed(got) // the provider replaces the token
	restored.open(storeIn(restored), []signin.Organization{p.organization("acme")})
	restored.useKey(key, true)
	if p.refreshes != 2 {
		t.Errorf("the provider was asked %d times", p.refreshes)
	}
	if m, err := restored.member("acme", "mia@acme.test"); err != nil || m.Disabled {
		t.Errorf("the account: %+v, %v", m, err)
	}
	restored.loginUpstream()
	h.clock.Advance(signin.DefaultMaxStaleness)
	restored.useKey(key, true)
}

// TestLostAnswerLocksNobodyOut: a provider that rotates refresh tokens refuses one whose successor
// was in a response that did not arrive. That is no removal: sessions and keys stay for
// max_staleness after the last confirmation. A refusal without such a doubt is a removal.
func TestLostAnswerLocksNobodyOut(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	got := h.loginUpstream()
	key := h.keyOfMia()
	p.lie(func(p *idp) { p.loses = true })
	h.clock.Advance(signin.DefaultRecheck)
	got = h.renewed(got)
	p.lie(func(p *idp) { p.loses, p.down = false, true })
	h.clock.Advance(time.Minute)
	got = h.renewed(got) // an outage in between proves nothing about the lost response
	p.lie(func(p *idp) { p.down, p.claims = false, map[string]any{"groups": []string{"admins"}} })
	h.clock.Advance(time.Minute)
	got = h.renewed(got) // refused by the provider
	h.useKey(key, true)
	h.clock.Advance(signin.DefaultMaxStaleness - signin.DefaultRecheck - 3*time.Minute)
	got = h.renewed(got)
	h.useKey(key, true)
	h.hasRole("viewer", 0)
	h.clock.Advance(time.Minute)
	a := h.refresh(got.refresh)
	wantError(t, a, "invalid_grant")
	if !strings.Contains(a.body, "sign in again") {
		t.Errorf("the response does not ask for a new sign-in: %s", a.body)
	}
	h.useKey(key, false)
	got = h.loginUpstream()
	h.useKey(key, true)
	p.lie(func(p *idp) { p.left = true })
	h.clock.Advance(signin.DefaultRecheck)
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	h.useKey(key, false)
	h.hasAudit("user.left", "mia@acme.test")
}
