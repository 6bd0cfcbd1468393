package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// login signs a user in by device grant, with this first refresh token.
func (w *world) login(user snap.Caller, refresh string) store.Session {
	w.t.Helper()
	code := "CODE-" + refresh
	w.ok(w.AddDeviceGrant(w.ctx, store.DeviceGrant{
		UserCode: code, ClientID: "snapcli", Program: "snapcli", Host: "laptop", Address: "127.0.0.1",
		Expires: w.clock.Now().Add(10 * time.Minute), Wait: 5 * time.Second,
	}, digest(code), store.DeviceLimits{PerAddress: 50, PerSite: 50, PerNetwork: 50, Total: 100}))
	w.ok(w.ApproveDevice(w.ctx, code, user.User.ID))
	result, n, _, err := w.PollDevice(w.ctx, store.Poll{
		Hash: digest(code), ClientID: "snapcli", Refresh: digest(refresh), Idle: w.clock.Now().Add(24 * time.Hour),
		Expires: w.clock.Now().Add(48 * time.Hour),
	})
	w.ok(err)
	if result != store.PollApproved {
		w.t.Fatalf("poll: %v", result)
	}
	return n
}

func (w *world) rotate(from, to string) error {
	_, err := w.RotateRefresh(w.ctx, store.Rotation{Hash: digest(from), Next: digest(to), ClientID: "snapcli",
		Idle: w.clock.Now().Add(24 * time.Hour)})
	return err
}

// A refresh token of a closed organization is not used up: it works again once the organization is
// open.
func TestRefreshWhileClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.login(w.user(w.acme, "mia", snap.RoleMember), "r0")
		w.ok(w.CloseAllBut(w.ctx, []string{"globex"}))
		for range 2 {
			w.clock.Advance(2 * store.RefreshGrace)
			if err := w.rotate("r0", "r1"); !errors.Is(err, store.ErrClosed) {
				t.Errorf("while closed: %v", err)
			}
		}
		w.ok(w.CloseAllBut(w.ctx, []string{"acme", "globex"}))
		w.ok(w.rotate("r0", "r1"))
	})
}

// T2, T4: of many redemptions of one refresh token at once, each gets a different successor. One
// successor is good and all others are superseded.
func TestRefreshRaces(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.login(w.user(w.acme, "mia", snap.RoleMember), "r0")
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if err := w.rotate("r0", fmt.Sprint("r1-", i)); err != nil {
					t.Errorf("redemption %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		var good, superseded int
		w.ok(w.DB().QueryRowContext(w.ctx, `
			SELECT sum(CASE WHEN superseded = 0 THEN 1 ELSE 0 END), sum(superseded) FROM refresh_tokens
				WHERE session_id = $1 AND parent IS NOT NULL`, n.ID).Scan(&good, &superseded))
		if good != 1 || superseded != 11 {
			t.Errorf("%d good and %d superseded successors, want 1 and 11", good, superseded)
		}
	})
}

// T3: a superseded token ends the session, wherever it is used.
func TestSupersededTokenEndsTheSession(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.login(w.user(w.acme, "mia", snap.RoleMember), "r0")
		w.ok(w.rotate("r0", "lost"))
		w.ok(w.rotate("r0", "r1"))
		if err := w.rotate("lost", "r2"); !errors.Is(err, store.ErrTokenReused) {
			t.Errorf("the superseded token: %v", err)
		}
		if _, err := w.LiveSession(w.ctx, n.ID); !errors.Is(err, snap.ErrUnauthenticated) {
			t.Errorf("the session: %v", err)
		}
		if err := w.rotate("r1", "r2"); !errors.Is(err, snap.ErrUnauthenticated) {
			t.Errorf("the good token: %v", err)
		}
	})
}

// A chain that lasts for months stays small.
func TestOldTokensAreForgotten(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		n := w.login(w.user(w.acme, "mia", snap.RoleMember), "r0")
		for i := range 200 {
			w.clock.Advance(10 * time.Second)
			w.ok(w.rotate(fmt.Sprint("r", i), fmt.Sprint("r", i+1)))
		}
		var kept int
		w.ok(w.DB().QueryRowContext(w.ctx,
			`SELECT count(*) FROM refresh_tokens WHERE session_id = $1`, n.ID).Scan(&kept))
		if kept > 70 {
			t.Errorf("%d tokens are kept", kept)
		}
		if err := w.rotate("r150", "x"); !errors.Is(err, store.ErrTokenReused) {
			t.Errorf("an old token that is still kept: %v", err)
		}
	})
}

// D7: failures are counted within a window, under concurrency too.
func TestMisses(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := w.Miss(w.ctx, "code:user:1", time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, err := w.Misses(w.ctx, "code:user:1"); n != 20 || err != nil {
			t.Errorf("%d misses, %v", n, err)
		}
		if n, err := w.Misses(w.ctx, "code:user:2"); n != 0 || err != nil {
			t.Errorf("another bucket: %d, %v", n, err)
		}
		w.clock.Advance(time.Minute)
		if n, err := w.Misses(w.ctx, "code:user:1"); n != 0 || err != nil {
			t.Errorf("after the window: %d, %v", n, err)
		}
		if n, err := w.Miss(w.ctx, "code:user:1", time.Minute); n != 1 || err != nil {
			t.Errorf("the first of a new window: %d, %v", n, err)
		}
	})
}

// A reused token has an action of its own in the audit log, and its user sees a
// notice for 30 days.
func TestReuseIsReportedToTheUser(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		mia := w.user(w.acme, "mia", snap.RoleMember)
		w.login(mia, "r0")
		w.ok(w.rotate("r0", "lost"))
		w.ok(w.rotate("r0", "r1"))
		if err := w.rotate("lost", "r2"); !errors.Is(err, store.ErrTokenReused) {
			t.Fatalf("the superseded token: %v", err)
		}
		w.sequence()
		page, err := w.Audit(w.ctx, mia, store.AuditQuery{Action: snap.AuditTokenReused, Limit: 10})
		w.ok(err)
		ended, err := w.Audit(w.ctx, mia, store.AuditQuery{Action: snap.AuditSessionEnded, Limit: 10})
		w.ok(err)
		if len(page.Items) != 1 || len(ended.Items) != 0 {
			t.Errorf("%d lines of reuse and %d of an end", len(page.Items), len(ended.Items))
		}
		told, err := w.Notices(w.ctx, mia)
		w.ok(err)
		if len(told) != 1 || told[0].Action != snap.AuditTokenReused {
			t.Errorf("told %+v", told)
		}
		w.clock.Advance(31 * 24 * time.Hour)
		if told, err = w.Notices(w.ctx, mia); err != nil || len(told) != 0 {
			t.Errorf("after 31 days: %+v, %v", told, err)
		}
	})
}
