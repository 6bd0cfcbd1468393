package signin_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"snap"
	"snap/internal/signin"
	"snap/internal/store"
)

// lines returns the lines of acme's audit log after a line, as "ACTION by ACTOR", sorted and
// without repetitions. last is the number of the newest line.
func (h *house) lines(since int64) (all []string, last int64) {
	h.t.Helper()
	org, err := h.store.OrgBySlug(h.t.Context(), "acme")
	if err != nil {
		h.t.Fatal(err)
	}
	h.sequence(org.ID)
	page, err := h.store.Audit(h.t.Context(), snap.Caller{Org: org.OrgRef},
		store.AuditQuery{OldestFirst: true, Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range page.Items {
		if last = e.Seq; e.Seq > since {
			all = append(all, string(e.Action)+" by "+e.By())
		}
	}
	slices.Sort(all)
	return slices.Compact(all), last
}

// TestActorsOfProvidersAndJobs is TestEveryDoorNamesItsActor of the package cloud for the doors of
// identity providers and of CI jobs.
func TestActorsOfProvidersAndJobs(t *testing.T) {
	t.Parallel()
	const provider, mia = " by the identity provider of acme", " by mia@acme.test"
	h, p := startSealed(t, storeIn)
	var last int64
	check := func(door string, want ...string) {
		t.Helper()
		var got []string
		if got, last = h.lines(last); !slices.Equal(got, want) {
			t.Errorf("%s\n got %q\nwant %q", door, got, want)
		}
	}
	_, last = h.lines(0)
	got := h.loginUpstream()
	check("/upstream/callback", "session.started"+mia, "user.changed"+provider)
	p.lie(func(p *idp) { p.userinfo = map[string]any{"sub": "subject-1", "groups": []string{"new"}} })
	h.clock.Advance(signin.DefaultRecheck)
	got = h.renewed(got)
	check("/token, with a recheck", "user.changed"+provider)
	if a := h.post("/upstream/logout", "logout_token", p.logout(nil)); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	check("/upstream/logout", "session.ended"+provider)
	wantError(t, h.refresh(got.refresh), "invalid_grant")
	got = h.loginUpstream()
	check("/upstream/callback again", "session.started"+mia)
	p.lie(func(p *idp) { p.left = true })
	h.clock.Advance(signin.DefaultRecheck - time.Minute)
	h.renewed(got)
	h.clock.Advance(time.Minute)
	h.recheck(1)
	check("the background recheck", "session.ended"+provider, "user.left"+provider)

	h, c := startCI(t, nil)
	_, last = h.lines(0)
	exchangedOf(t, h.exchange(c.token(c.github(), "one")))
	check("/token, for a CI job", "key.created by CI job repo:octo/shop:ref:refs/heads/main of acme")
}
