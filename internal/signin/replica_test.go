package signin_test

import (
	"net/http"
	"sync"
	"testing"

	"snap/internal/signin"
	"snap/internal/store"
)

// replicas starts two services over one database.
func replicas(t *testing.T, o store.Options, dir string) (one, two *house) {
	t.Helper()
	c := newClock()
	o.Now = c.Now
	houses := [2]*house{}
	for i := range houses {
		houses[i] = &house{t: t, dir: dir, clock: c, log: &syncBuffer{}}
		houses[i].public = "https://cloud.test"
		houses[i].open(o, []signin.Organization{acme()})
	}
	return houses[0], houses[1]
}

// onBoth runs a test on two replicas over SQLite, and over PostgreSQL.
func onBoth(t *testing.T, f func(t *testing.T, one, two *house)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		one, two := replicas(t, store.Options{DataDir: dir}, dir)
		f(t, one, two)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		one, two := replicas(t, store.Options{URL: postgres(t)}, "")
		f(t, one, two)
	})
}

// State is in the database: another replica handles each step of a login, each replica accepts the
// other's tokens, and a session that ends on one ends on both.
func TestAnyReplicaAnswersAnyStep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, one, two *house) {
		deviceCode, userCode := one.device()
		wantError(t, two.poll(deviceCode), "authorization_pending")
		grant, err := two.store.PendingDevice(t.Context(), userCode[:4]+userCode[5:])
		if err != nil || grant.Host != "laptop" {
			t.Fatalf("the other replica: %+v, %v", grant, err)
		}
		m, err := two.member("acme", "mia@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := two.store.RecordSignIn(t.Context(), store.InteractiveSignIn{UserID: m.ID}); err != nil {
			t.Fatal(err)
		}
		if err := two.store.ApproveDevice(t.Context(), grant.UserCode, m.ID); err != nil {
			t.Fatal(err)
		}
		first := tokensOf(t, one.poll(deviceCode))
		second := tokensOf(t, two.refresh(first.refresh))
		for _, h := range []*house{one, two} {
			if a := h.api(second.access); a.status != http.StatusOK {
				t.Errorf("API: %d %s", a.status, a.body)
			}
		}
		if a := one.post("/revoke", "client_id", "snapcli", "token", second.refresh); a.status != http.StatusOK {
			t.Errorf("revoke: %d", a.status)
		}
		if a := two.api(second.access); a.status != http.StatusUnauthorized {
			t.Errorf("API of the other replica after the revocation: %d", a.status)
		}
	})
}

// D4: of 24 polls at once on two replicas, one gets the tokens.
func TestApprovedCodeGivesTokensOnceOverReplicas(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, one, two *house) {
		deviceCode, userCode := one.device()
		m, err := one.member("acme", "mia@acme.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := one.store.ApproveDevice(t.Context(), userCode[:4]+userCode[5:], m.ID); err != nil {
			t.Fatal(err)
		}
		if won := count(24, func(i int) answer { return []*house{one, two}[i%2].poll(deviceCode) }); won != 1 {
			t.Errorf("%d polls got tokens, want 1", won)
		}
	})
}

func count(n int, do func(i int) answer) (won int) {
	var wg sync.WaitGroup
	answers := make([]answer, n)
	for i := range answers {
		wg.Go(func() { answers[i] = do(i) })
	}
	wg.Wait()
	for _, a := range answers {
		if a.status == http.StatusOK {
			won++
		}
	}
	return won
}
