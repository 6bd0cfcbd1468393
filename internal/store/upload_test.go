package store_test

import (
	"errors"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// Only the user who started a push can see it until it is complete (SPEC 1, 3).
func TestOnlyThePusherSeesAnUpload(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		u := w.upload("shop", snap.TypeSnapshot)
		w.ok(w.BeginUpload(w.ctx, alice, u))
		if got, err := w.Upload(w.ctx, alice, u.ID); err != nil || got.Blob != u.Blob || got.Size != u.Size {
			t.Errorf("the maker gets %+v, %v, want %+v", got, err, u)
		}
		for name, c := range map[string]snap.Caller{"admin": adam, "key": w.orgKey(w.acme), "nobody": {}} {
			if _, err := w.Upload(w.ctx, c, u.ID); !errors.Is(err, snap.ErrNotFound) {
				t.Errorf("%s gets the upload: %v, want not found", name, err)
			}
			if _, err := w.CompleteUpload(w.ctx, c, u); !errors.Is(err, snap.ErrNotFound) {
				t.Errorf("%s completes the upload: %v, want not found", name, err)
			}
			if _, err := w.Snapshot(w.ctx, c, u.ID); !errors.Is(err, snap.ErrNotFound) {
				t.Errorf("%s sees the unfinished snapshot: %v, want not found", name, err)
			}
		}
		first, err := w.CompleteUpload(w.ctx, alice, u)
		w.ok(err)
		again, err := w.CompleteUpload(w.ctx, alice, u)
		if err != nil || again.Key != first.Key {
			t.Errorf("completing twice: %+v, %v, want %+v", again, err, first)
		}
		if _, err := w.Upload(w.ctx, alice, u.ID); !errors.Is(err, snap.ErrNotFound) {
			t.Errorf("a complete upload: %v, want not found", err)
		}
	})
}

// Pushing the same file again transfers no bytes, but only for the user who pushed it: others do
// not learn that it exists.
func TestFindPushFindsOnlyOwnPushes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		key := w.orgKey(w.acme)
		u := w.upload("shop", snap.TypeSnapshot)
		find := func(c snap.Caller) (done, begun bool) {
			t.Helper()
			d, b, err := w.FindPush(w.ctx, c, u)
			w.ok(err)
			return d != nil, b != nil
		}
		w.ok(w.BeginUpload(w.ctx, alice, u))
		if done, begun := find(alice); done || !begun {
			t.Errorf("begun: done %v, begun %v", done, begun)
		}
		_, err := w.CompleteUpload(w.ctx, alice, u)
		w.ok(err)
		if done, begun := find(alice); !done || begun {
			t.Errorf("complete: done %v, begun %v", done, begun)
		}
		for name, c := range map[string]snap.Caller{"admin": adam, "key": key} {
			if done, begun := find(c); done || begun {
				t.Errorf("%s learns of alice's push: done %v, begun %v", name, done, begun)
			}
		}
	})
}

// Two snapshots with equal bytes share an object. It is deleted with the last of them.
func TestBytesAreDeletedWithTheirLastSnapshot(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		var both []snap.Snapshot
		for range 2 {
			u := w.upload("shop", snap.TypeSnapshot)
			u.Blob = "one"
			w.ok(w.BeginUpload(w.ctx, adam, u))
			sn, err := w.CompleteUpload(w.ctx, adam, u)
			w.ok(err)
			both = append(both, sn)
		}
		for i, want := range []string{"", "one"} {
			if got, err := w.Delete(w.ctx, adam, both[i]); err != nil || got != want {
				t.Errorf("deletion %d returns the blob %q, %v, want %q", i, got, err, want)
			}
		}
	})
}

// A push that is completed and ended at the same time either becomes a snapshot or leaves garbage.
// If both happened, the bytes of the snapshot would be removed.
func TestCompletedAndEndedAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		if !w.IsPostgres() { // SQLite runs one writing transaction at a time
			return
		}
		alice := w.user(w.acme, "alice", snap.RoleMember)
		for name, slower := range map[string]func(store.Upload) error{
			"complete": func(u store.Upload) error { _, err := w.CompleteUpload(w.ctx, alice, u); return err },
			"end":      func(u store.Upload) error { return w.AbortUpload(w.ctx, alice, u) },
		} {
			u := w.upload("shop", snap.TypeSnapshot)
			w.ok(w.BeginUpload(w.ctx, alice, u))
			faster, err := w.DB().BeginTx(w.ctx, nil)
			w.ok(err)
			_, err = faster.ExecContext(w.ctx, `DELETE FROM uploads WHERE id = $1`, u.ID)
			w.ok(err)
			ended := make(chan error)
			go func() { ended <- slower(u) }()
			for waits := false; !waits; {
				w.ok(w.DB().QueryRowContext(w.ctx, `SELECT EXISTS(SELECT 1 FROM pg_stat_activity
					WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits))
			}
			w.ok(faster.Commit())
			if err := <-ended; !errors.Is(err, snap.ErrNotFound) {
				t.Errorf("%s: %v, want not found", name, err)
			}
			if garbage, err := w.Garbage(w.ctx, "", 1); err != nil || len(garbage) > 0 {
				t.Errorf("%s: garbage %v, %v", name, garbage, err)
			}
		}
	})
}

// An upload without progress becomes stale, and a dropped upload is gone.
func TestStaleUploads(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		old, kept := w.upload("shop", snap.TypeSnapshot), w.upload("shop", snap.TypeSnapshot)
		w.ok(w.BeginUpload(w.ctx, adam, old))
		w.ok(w.BeginUpload(w.ctx, adam, kept))
		w.clock.Advance(time.Hour)
		_, err := w.Upload(w.ctx, adam, kept.ID)
		w.ok(err)
		stale, err := w.StaleUploads(w.ctx, w.clock.Now(), 10)
		w.ok(err)
		if len(stale) != 1 || stale[0].ID != old.ID {
			t.Fatalf("stale = %+v, want only the one without progress", stale)
		}
		w.ok(w.DropUpload(w.ctx, old.ID))
		if _, err := w.Upload(w.ctx, adam, old.ID); !errors.Is(err, snap.ErrNotFound) {
			t.Errorf("a dropped upload: %v, want not found", err)
		}
	})
}

// An Idempotency-Key names one request of one caller.
func TestIdempotencyKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		mia := w.user(w.acme, "mia", snap.RoleMember)
		claim := func(c snap.Caller, request string) (*store.Reply, snap.Code) {
			a, err := w.Claim(w.ctx, c, "key", []byte(request))
			return a, snap.CodeOf(err)
		}
		expect := func(what string, got *store.Reply, code snap.Code, body string, wantCode snap.Code) {
			t.Helper()
			has := ""
			if got != nil {
				has = string(got.Body)
			}
			if has != body || code != wantCode {
				t.Errorf("%s: answer %q, code %q, want %q, %q", what, has, code, body, wantCode)
			}
		}
		got, code := claim(adam, "a")
		expect("first", got, code, "", "")
		got, code = claim(adam, "a")
		expect("while it is carried out", got, code, "", snap.CodeConflict)
		w.ok(w.Unclaim(w.ctx, adam, "key"))
		got, code = claim(adam, "a")
		expect("after it failed", got, code, "", "")
		w.ok(w.SaveReply(w.ctx, adam, "key", store.Reply{Status: 201, Body: []byte("done")}))
		got, code = claim(adam, "a")
		expect("again", got, code, "done", "")
		got, code = claim(adam, "b")
		expect("another request", got, code, "", snap.CodeConflict)
		got, code = claim(mia, "b")
		expect("another caller", got, code, "", "")
		w.clock.Advance(24 * time.Hour)
		got, code = claim(adam, "b")
		expect("a day later", got, code, "", "")
		w.clock.Advance(24 * time.Hour)
		if n, err := w.Sweep(w.ctx, 10); err != nil || n != 2 {
			t.Errorf("swept %d, %v, want 2", n, err)
		}
	})
}

// All callers get the same secret of a name, and different names have different secrets.
func TestSecretIsMadeOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		one, err := w.Secret(w.ctx, "url", 32)
		w.ok(err)
		two, err := w.Secret(w.ctx, "url", 32)
		w.ok(err)
		other, err := w.Secret(w.ctx, "other", 32)
		w.ok(err)
		if string(one) != string(two) || len(one) != 32 || string(one) == string(other) {
			t.Errorf("secrets: %x, %x; another %x", one, two, other)
		}
	})
}
