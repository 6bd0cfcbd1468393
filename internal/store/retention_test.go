package store_test

import (
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// A process that pauses between finding and deleting expired snapshots deletes by the current
// state: no snapshot that a rule now keeps, none that another organization may pull, and none
// twice.
func TestExpireAsksAgain(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world, alice snap.Caller, old, newest snap.Snapshot){
		"the rule is gone": func(w *world, alice snap.Caller, _, _ snap.Snapshot) {
			w.ok(w.DeleteRetention(w.ctx, alice, "shop"))
		},
		"the rule keeps more": func(w *world, alice snap.Caller, _, _ snap.Snapshot) {
			w.ok(w.SetRetention(w.ctx, alice, store.Retention{Target: "shop", KeepLast: 2}))
		},
		"the newest is gone": func(w *world, alice snap.Caller, _, newest snap.Snapshot) {
			_, err := w.Delete(w.ctx, alice, newest)
			w.ok(err)
		},
		"it is shared with another organization": func(w *world, alice snap.Caller, old, _ snap.Snapshot) {
			_, _, err := w.ShareOrg(w.ctx, alice, old, w.globex.Slug, time.Time{})
			w.ok(err)
		},
		"another replica has deleted it": func(w *world, alice snap.Caller, old, _ snap.Snapshot) {
			_, gone, err := w.Expire(w.ctx, old)
			if w.ok(err); !gone {
				w.t.Error("it was not deleted")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world) {
				alice := w.user(w.acme, "alice", snap.RoleOwner)
				old := w.push(alice, "shop", snap.TypeSnapshot)
				w.clock.Advance(time.Hour)
				newest := w.push(alice, "shop", snap.TypeSnapshot)
				w.ok(w.SetRetention(w.ctx, alice, store.Retention{Target: "shop", KeepLast: 1}))
				found, err := w.Expirable(w.ctx, w.acme.ID, 10)
				if w.ok(err); len(found) != 1 || found[0].ID != old.ID {
					t.Fatalf("found %v, want the older one", found)
				}
				meanwhile(w, alice, old, newest)
				if _, gone, err := w.Expire(w.ctx, found[0]); err != nil || gone {
					t.Errorf("deleted %v, %v; want it kept", gone, err)
				}
			})
		})
	}
}
