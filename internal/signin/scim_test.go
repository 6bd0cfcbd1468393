package signin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/internal/auth"
	"snap/internal/signin"
	"snap/internal/store"
)

// reporter returns the identity provider of acme as one that reports by SCIM.
func (h *house) reporter() store.Reporter {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	if _, _, err := h.auth.NewKey(h.t.Context(),
		auth.KeySpec{OrgID: org.ID, Kind: snap.SCIMKey, Name: "scim"}); err != nil {
		h.t.Fatal(err)
	}
	return h.service.Reporter(snap.Caller{Org: org.OrgRef})
}

// reported adds a person to the provider's reports.
func (h *house) reported(r store.Reporter, externalID string) store.SCIMUser {
	h.t.Helper()
	u, err := h.store.AddSCIMUser(h.t.Context(), r,
		store.SCIMUserChange{UserName: &externalID, ExternalID: &externalID})
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

func (h *house) regroup(r store.Reporter, id string, do store.SCIMAction, members ...string) {
	h.t.Helper()
	if _, err := h.store.ChangeSCIMGroup(h.t.Context(), r, id,
		store.SCIMGroupChange{Members: []store.SCIMMemberChange{{Action: do, IDs: members}}}); err != nil {
		h.t.Fatal(err)
	}
}

// TestSCIMGroupsGiveRoles: a change of groups that SCIM reports changes the role immediately, or at
// the first sign-in. A check that says otherwise about a reported group changes nothing.
func TestSCIMGroupsGiveRoles(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	r := h.reporter()
	mia, name := h.reported(r, "subject-1"), "admins"
	g, err := h.store.AddSCIMGroup(t.Context(), r, store.SCIMGroupChange{DisplayName: &name,
		Members: []store.SCIMMemberChange{{IDs: []string{mia.ID}}}})
	if err != nil {
		t.Fatal(err)
	}
	got := h.loginUpstream() // without a groups claim
	h.hasRole("admin", 1)
	h.regroup(r, g.ID, store.SCIMRemove, mia.ID)
	h.hasRole("member", 0)
	p.lie(func(p *idp) { p.claims = map[string]any{"groups": []string{"admins", "eng"}} })
	h.clock.Advance(signin.DefaultRecheck)
	h.renewed(got)
	h.hasRole("member", 1)
	h.regroup(r, g.ID, store.SCIMAdd, mia.ID)
	h.hasRole("admin", 2)
	if err := h.store.DeleteSCIMGroup(t.Context(), r, g.ID); err != nil {
		t.Fatal(err)
	}
	h.hasRole("member", 1)
}

// While SCIM reports a person as inactive, they cannot sign in. Afterwards they can, and their
// earlier sessions stay ended.
func TestInactivePeopleCannotSignIn(t *testing.T) {
	t.Parallel()
	h, _ := startSealed(t, storeIn)
	r, no, yes := h.reporter(), false, true
	mia := h.reported(r, "subject-1")
	got := h.loginUpstream()
	set := func(active *bool) {
		t.Helper()
		h.clock.Advance(time.Second)
		if _, err := h.store.ChangeSCIMUser(t.Context(), r, mia.ID, store.SCIMUserChange{Active: active}); err != nil {
			t.Fatal(err)
		}
	}
	set(&no)
	set(&no)
	h.hasAudit(snap.AuditUserLeft, "mia@acme.test") // once
	if a := h.browser().get(startAcme); a.status != http.StatusForbidden || !strings.Contains(a.body, "not active") {
		t.Errorf("a sign-in while inactive: %d %s", a.status, a.body)
	}
	set(&yes)
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	if a := h.api(h.loginUpstream().access); a.status != http.StatusOK {
		t.Errorf("a sign-in when active again: %d %s", a.status, a.body)
	}
	if a := h.api(got.access); a.status != http.StatusUnauthorized {
		t.Errorf("the session from before: %d", a.status)
	}
}

// TestLateSignInsAreRefused: a sign-in or device login that began before the provider removed or
// signed out the person, or an admin signed them out, has no effect afterwards. Neither do keys
// created while the person was removed.
func TestLateSignInsAreRefused(t *testing.T) {
	t.Parallel()
	h, p := startSealed(t, storeIn)
	h.loginUpstream()
	m, err := h.member("acme", "mia@acme.test")
	if err != nil {
		t.Fatal(err)
	}
	org, err := h.store.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(ctx context.Context) error{
		"removed": func(ctx context.Context) error {
			standing, err := h.store.StandingOf(ctx, m.ID)
			if err != nil {
				return err
			}
			_, err = h.store.EndRefused(ctx, standing)
			return err
		},
		"signed out": func(ctx context.Context) error {
			_, err := h.store.EndByLogout(ctx, store.Logout{OrgID: org.ID, Issuer: p.URL, Subject: "subject-1",
				Hash: []byte("token"), Until: h.clock.Now().Add(time.Hour)})
			return err
		},
		"signed out by an admin": func(ctx context.Context) error {
			_, err := h.store.SignOutUser(ctx, snap.Caller{Org: org.OrgRef}, m.ID)
			return err
		},
	} {
		deviceCode, userCode := h.device()
		b := h.browser()
		b.get(startAcme)
		page := b.submit(b.get("/auth/device?user_code="+userCode), "/auth/device", "user_code", userCode)
		b.submit(page, "/auth/device/confirm", "user_code", userCode, "decision", "approve")
		h.clock.Advance(time.Second)
		p.lie(func(p *idp) {
			p.during = func() {
				h.clock.Advance(time.Second)
				if err := end(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
		late := h.browser()
		if a := late.get(startAcme); a.status != http.StatusForbidden {
			t.Errorf("%s during a sign-in: %d at %s", name, a.status, a.url)
		}
		if a := late.get("/api/user"); a.status != http.StatusUnauthorized {
			t.Errorf("%s during a sign-in: the browser is signed in: %d", name, a.status)
		}
		p.lie(func(p *idp) { p.during = nil })
		wantError(t, h.poll(deviceCode), "access_denied")
		key, _, err := h.auth.NewKey(t.Context(), auth.KeySpec{OrgID: org.ID, UserID: m.ID, Kind: snap.UserKey,
			Name: "created while the person was removed"})
		if err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(time.Second)
		h.loginUpstream() // the removal does not affect a new sign-in
		if a := h.get("/api/agent", "X-API-Key", key); name == "removed" && a.status != http.StatusUnauthorized {
			t.Errorf("%s: a key created in the meantime: %d", name, a.status)
		}
	}
}

// If a person whom the operator disabled leaves, the audit log says so once, even if the provider
// reports other changes later.
func TestDisabledPeopleLeaveOnce(t *testing.T) {
	t.Parallel()
	h, _ := startSealed(t, storeIn)
	r, no, name := h.reporter(), false, "Mia M"
	mia := h.reported(r, "subject-1")
	h.loginUpstream()
	orgs, err := h.store.Orgs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range orgs {
		if m, err := h.store.UserByEmail(t.Context(), o.ID, "mia@acme.test"); err == nil {
			if err := h.store.SetDisabled(t.Context(), m.ID, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, change := range []store.SCIMUserChange{{Active: &no}, {DisplayName: &name}} {
		h.clock.Advance(time.Second)
		if _, err := h.store.ChangeSCIMUser(t.Context(), r, mia.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	h.hasAudit(snap.AuditUserLeft, "mia@acme.test")
}
