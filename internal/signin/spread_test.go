package signin_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"snap"
	"snap/internal/signin"
	"snap/internal/store"
)

// TestRechecksAreSpread: however many people are due, each second asks the provider about one of
// them, and about nobody twice within a minute while it does not answer. Nobody loses anything.
// SNAP_DUE=20000 runs it with that number of people.
func TestRechecksAreSpread(t *testing.T) {
	t.Parallel()
	people := 40
	if n, err := strconv.Atoi(os.Getenv("SNAP_DUE")); err == nil {
		people = n
	}
	h, p := startSealed(t, storeIn)
	org, err := h.store.OrgBySlug(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for i := range people {
		id, err := h.store.ApplySignIn(t.Context(), store.SignIn{OrgID: org.ID, Issuer: p.URL, Subject: fmt.Sprint(i),
			Email: fmt.Sprintf("%d@acme.test", i), Role: snap.RoleMember})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.store.RecordSignIn(t.Context(), store.SignedIn{UserID: id,
			Refresh: h.sealer.Seal(fmt.Sprint("sign-in:", id), []byte("refresh"))}); err != nil {
			t.Fatal(err)
		}
		h.clock.Advance(time.Second)
		end := h.clock.Now().Add(24 * time.Hour)
		if _, err := h.store.AddBrowserSession(t.Context(), store.Session{UserID: id, Kind: snap.Browser, Name: "b",
			Idle: end, Expires: end}, []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	p.lie(func(p *idp) { p.garbage = `{}` })
	h.clock.Advance(signin.DefaultRecheck)
	for i := range people {
		h.recheck(1)
		p.lie(func(p *idp) {
			if p.refreshes != i+1 {
				t.Errorf("the provider got %d requests in %d seconds", p.refreshes, i+1)
			}
		})
		h.clock.Advance(time.Second)
	}
	if people == 40 {
		h.recheck(0)
		h.clock.Advance(20 * time.Second) // a minute after the first ones
		h.recheck(1)
	}
	if m, err := h.member("acme", "0@acme.test"); err != nil || m.Disabled {
		t.Errorf("a provider that answers nonsense locked somebody out: %+v, %v", m, err)
	}
}
