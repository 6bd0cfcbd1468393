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

// TestRechecksAreSpread: however many people are due, the service asks the provider about one of
// them each second, and about each of them before it asks about anybody again, even if the provider
// fails for more people than there are seconds until they are retried. Nobody loses anything.
// SNAP_DUE=20000 runs it with that number of people.
func TestRechecksAreSpread(t *testing.T) {
	t.Parallel()
	people := 70
	if n, err := strconv.Atoi(os.Getenv("SNAP_DUE")); err == nil {
		people = n
	}
	for name, store := range map[string]func(*house) store.Options{
		"SQLite": storeIn,
		"PostgreSQL": func(h *house) store.Options {
			return store.Options{URL: postgres(h.t), Now: h.clock.Now}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p := startSealed(t, store)
			h.signInMany("acme", p, people)
			p.lie(func(p *idp) { p.garbage = `{}` })
			h.clock.Advance(signin.DefaultRecheck)
			began := time.Now()
			for i := range people {
				h.recheck(1)
				p.lie(func(p *idp) {
					if p.refreshes != i+1 || len(p.redeemed) != i+1 {
						t.Fatalf("in %d seconds, the provider got %d requests about %d people", i+1, p.refreshes,
							len(p.redeemed))
					}
				})
				h.clock.Advance(time.Second)
			}
			t.Logf("%s for each of %d people", time.Since(began)/time.Duration(people), people)
			if m, err := h.member("acme", "0@acme.test"); err != nil || m.Disabled {
				t.Errorf("a provider that answers nonsense locked somebody out: %+v, %v", m, err)
			}
		})
	}
}

// signInMany signs in people of an organization, one a second, who then use a browser session. Each
// has a refresh token of their own.
func (h *house) signInMany(slug string, p *idp, people int) {
	h.t.Helper()
	ctx := h.t.Context()
	org, err := h.store.OrgBySlug(ctx, slug)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range people {
		id, err := h.store.ApplySignIn(ctx, store.SignIn{OrgID: org.ID, Issuer: p.URL, Subject: fmt.Sprint(i),
			Email: fmt.Sprintf("%d@%s.test", i, slug), Role: snap.RoleMember})
		if err != nil {
			h.t.Fatal(err)
		}
		if err := h.store.RecordSignIn(ctx, store.InteractiveSignIn{UserID: id,
			Refresh: h.sealer.Seal(fmt.Sprint("sign-in:", id), fmt.Append(nil, "refresh-", i))}); err != nil {
			h.t.Fatal(err)
		}
		h.clock.Advance(time.Second)
		end := h.clock.Now().Add(24 * time.Hour)
		if _, err := h.store.AddBrowserSession(ctx, store.Session{UserID: id, Kind: snap.Browser, Name: "b",
			Idle: end, Expires: end}, fmt.Append(nil, slug, i)); err != nil {
			h.t.Fatal(err)
		}
	}
}
