package store_test

import (
	"errors"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// Users and organizations have limits of open uploads and of bytes, which are
// counted correctly. Ending an upload makes room for another.
func TestQuotas(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.SetQuotas(store.Quotas{UserUploads: 2, OrgUploads: 3, UserBytes: 100, OrgBytes: 150})
		alice, bob := w.user(w.acme, "alice", snap.RoleMember), w.user(w.acme, "bob", snap.RoleMember)
		gail := w.user(w.globex, "gail", snap.RoleMember)
		begin := func(c snap.Caller, size int64) (store.Upload, error) {
			u := w.upload("shop", snap.TypeSnapshot)
			u.Size = size
			return u, w.BeginUpload(w.ctx, c, u)
		}
		refused := func(what string, err error) {
			t.Helper()
			if snap.CodeOf(err) != snap.CodeQuota {
				t.Errorf("%s: %v, want quota_exceeded", what, err)
			}
		}
		_, err := begin(alice, 101)
		refused("more than a user may have", err)
		first, err := begin(alice, 60)
		w.ok(err)
		_, err = begin(alice, 41)
		refused("more than the announced bytes leave", err)
		second, err := begin(alice, 40)
		w.ok(err)
		_, err = begin(alice, 1)
		refused("a third upload", err)
		third, err := begin(bob, 90)
		w.ok(err) // alice's announced bytes do not count against the organization's limit
		_, err = begin(w.orgKey(w.acme), 1)
		refused("a fourth upload of the organization", err)
		_, err = begin(gail, 100)
		w.ok(err)

		_, err = w.CompleteUpload(w.ctx, alice, first)
		w.ok(err)
		_, err = w.CompleteUpload(w.ctx, bob, third)
		w.ok(err)
		_, err = w.CompleteUpload(w.ctx, alice, second)
		refused("the upload for which the organization has no more room", err)
		mine, err := w.Usage(w.ctx, alice)
		if want := (store.Usage{Snapshots: 1, Bytes: 60, Uploads: 1, Announced: 40}); err != nil || mine != want {
			t.Errorf("alice has %+v, %v, want %+v", mine, err, want)
		}
		org, err := w.OrgUsage(w.ctx, w.acme.ID)
		if want := (store.Usage{Snapshots: 2, Bytes: 150, Uploads: 1, Announced: 40}); err != nil || org != want {
			t.Errorf("the organization has %+v, %v, want %+v", org, err, want)
		}

		if err := w.AbortUpload(w.ctx, bob, second); !errors.Is(err, snap.ErrNotFound) {
			t.Errorf("bob ends the upload of alice: %v", err)
		}
		w.ok(w.AbortUpload(w.ctx, alice, second))
		if left, err := w.Uploads(w.ctx, alice); err != nil || len(left) != 0 {
			t.Errorf("uploads %+v, %v after the end of the only one", left, err)
		}
		if garbage, err := w.Garbage(w.ctx, "", 10); err != nil || len(garbage) != 1 || garbage[0].Blob != second.Blob {
			t.Errorf("garbage %+v, %v, want what arrived of the upload", garbage, err)
		}
	})
}

// People does not count keys that are older than the organization's policy allows.
func TestPeopleCountsUsableKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		olivia := w.user(w.acme, "olivia", snap.RoleOwner)
		_, err := w.AddKey(w.ctx, store.Key{Kind: snap.UserKey, Name: "old", Org: w.acme, UserID: olivia.User.ID},
			[]byte("old"), olivia.User.ID)
		w.ok(err)
		count := func(want int) {
			t.Helper()
			people, err := w.People(w.ctx, olivia)
			if err != nil || len(people) != 1 || people[0].Keys != want {
				t.Errorf("people are %+v, %v, want one with %d keys", people, err, want)
			}
		}
		count(1)
		_, err = w.ApplyOrg(w.ctx, "acme", "The acme", snap.Policy{MaxKeyAge: 24 * time.Hour})
		w.ok(err)
		count(1)
		w.clock.Advance(25 * time.Hour)
		count(0)
	})
}
