package store_test

import (
	"slices"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

const pruneAfter = 400 * 24 * time.Hour

func (w *world) prune(org snap.OrgRef) store.Pruned {
	w.t.Helper()
	n, err := w.Prune(w.ctx, org.ID, w.clock.Now().Add(-pruneAfter), 100)
	w.ok(err)
	return n
}

// members returns the first names of an organization's users.
func (w *world) members(c snap.Caller) (names []string) {
	w.t.Helper()
	all, err := w.Members(w.ctx, c)
	w.ok(err)
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names
}

// An account is deleted when its person left long enough ago and nothing refers to it. No other
// account is deleted.
func TestAccountsOfPeopleWhoLeftArePruned(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleOwner, "eng")
		snapshot := w.push(alice, "shop", snap.TypeSnapshot)
		left := func(name string, before ...func(snap.Caller)) snap.Caller {
			c := w.user(w.acme, name, snap.RoleAdmin, "eng", name)
			w.ok(w.RecordSignIn(w.ctx, store.InteractiveSignIn{UserID: c.User.ID, SID: "s"}))
			for _, f := range before {
				f(c)
			}
			w.ok(w.EndUser(w.ctx, c.User.ID))
			return c
		}
		gone := left("gone")
		returned := left("returned")
		left("owner", func(c snap.Caller) { w.push(c, "crm", snap.TypeSnapshot) })
		left("sharer", func(c snap.Caller) { w.ok(w.Share(w.ctx, c, snapshot)) })
		left("hooked", func(c snap.Caller) {
			_, err := w.AddWebhook(w.ctx, c, store.Webhook{URL: "https://hooks.test", Secrets: [][]byte{{1}},
				Events: []snap.AuditAction{snap.AuditShared}})
			w.ok(err)
		})
		left("channel", func(c snap.Caller) {
			_, err := w.AddChannel(w.ctx, c, store.NewChannel{Target: "shop", Type: snap.TypeSnapshot})
			w.ok(err)
		})
		left("pushing", func(c snap.Caller) { w.ok(w.BeginUpload(w.ctx, c, w.upload("shop", snap.TypeSnapshot))) })
		unlisted := w.user(w.acme, "unlisted", snap.RoleMember)
		_, err := w.SetListed(w.ctx, unlisted.User.ID, false)
		w.ok(err)
		barred := w.user(w.acme, "barred", snap.RoleMember)
		w.ok(w.SetDisabled(w.ctx, barred.User.ID, true))
		elsewhere := w.user(w.globex, "elsewhere", snap.RoleMember)
		w.ok(w.EndUser(w.ctx, elsewhere.User.ID))
		all := w.members(alice)

		w.clock.Advance(pruneAfter - time.Hour)
		if n := w.prune(w.acme); n.Accounts != 0 || len(w.members(alice)) != len(all) {
			t.Errorf("an hour before the time: %+v", n)
		}
		w.ok(w.RecordSignIn(w.ctx, store.InteractiveSignIn{UserID: returned.User.ID}))
		w.clock.Advance(2 * time.Hour)
		if n := w.prune(w.acme); n != (store.Pruned{Accounts: 2, Groups: 1}) {
			t.Errorf("pruned %+v, want gone with their group, and unlisted", n)
		}
		want := slices.DeleteFunc(all, func(name string) bool { return name == "gone" || name == "unlisted" })
		if got := w.members(alice); !slices.Equal(got, want) {
			t.Errorf("the accounts are %v, want %v", got, want)
		}
		if n := w.prune(w.acme); n != (store.Pruned{}) {
			t.Errorf("a second run pruned %+v", n)
		}
		w.sequence()
		log, err := w.Audit(w.ctx, alice, store.AuditQuery{Action: snap.AuditUserPruned, Limit: 10})
		w.ok(err)
		if len(log.Items) != 2 || log.Items[1].Detail.Account != gone.User.ID ||
			log.Items[1].Detail.User != gone.User.Email {
			t.Errorf("the log says %+v", log.Items)
		}
		if again := w.user(w.acme, "gone", snap.RoleMember); again.User.ID <= gone.User.ID {
			t.Errorf("the returned person has account %d, and had %d", again.User.ID, gone.User.ID)
		}
	})
}

// The data of a closed organization is not pruned.
func TestClosedOrganizationsAreNotPruned(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		gone := w.user(w.acme, "gone", snap.RoleOwner, "eng")
		w.ok(w.EndUser(w.ctx, gone.User.ID))
		w.ok(w.CloseAllBut(w.ctx, []string{"globex"}))
		w.clock.Advance(2 * pruneAfter)
		if n := w.prune(w.acme); n != (store.Pruned{}) {
			t.Errorf("pruned %+v", n)
		}
		w.ok(w.CloseAllBut(w.ctx, []string{"acme", "globex"}))
		if n := w.prune(w.acme); n != (store.Pruned{Accounts: 1, Groups: 1}) {
			t.Errorf("open again, pruned %+v", n)
		}
	})
}

// A group is deleted when it has no members and nothing refers to it. It is created again with the
// next member.
func TestUnusedGroupsArePruned(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleOwner, "used", "empty", "shared", "channel")
		snapshot := w.push(alice, "shop", snap.TypeSnapshot)
		_, err := w.ShareGroup(w.ctx, alice, snapshot, "shared")
		w.ok(err)
		_, err = w.AddChannel(w.ctx, alice,
			store.NewChannel{Target: "crm", Type: snap.TypeSnapshot, GroupID: "channel"})
		w.ok(err)
		w.user(w.acme, "alice", snap.RoleOwner, "used")
		if n := w.prune(w.acme); n != (store.Pruned{Groups: 1}) {
			t.Errorf("pruned %+v, want the empty group", n)
		}
		if _, err := w.ShareGroup(w.ctx, alice, snapshot, "empty"); snap.CodeOf(err) != snap.CodeGroupNotFound {
			t.Errorf("share with a pruned group: %v", err)
		}
		max := w.user(w.acme, "max", snap.RoleMember, "empty")
		_, err = w.ShareGroup(w.ctx, alice, snapshot, "empty")
		w.ok(err)
		w.sees(max, []snap.Snapshot{snapshot}, snapshot)
	})
}

// A share, a sign-in and a run of Prune at the same time leave no share or member whose group is
// gone.
func TestPruningRacesWithSharesAndSignIns(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleOwner)
		snapshot := w.push(alice, "shop", snap.TypeSnapshot)
		for range 20 {
			w.user(w.acme, "alice", snap.RoleOwner, "eng")
			w.user(w.acme, "alice", snap.RoleOwner)
			done := make(chan error, 3)
			go func() { _, err := w.Prune(w.ctx, w.acme.ID, w.clock.Now(), 100); done <- err }()
			go func() {
				_, err := w.ShareGroup(w.ctx, alice, snapshot, "eng")
				if snap.CodeOf(err) == snap.CodeGroupNotFound {
					err = nil
				}
				done <- err
			}()
			go func() {
				_, err := w.ApplySignIn(w.ctx, store.SignIn{OrgID: w.acme.ID, Issuer: "https://idp.test",
					Subject: "max", Email: "max@acme.test", Role: snap.RoleMember,
					Groups: []snap.Group{{GroupID: "eng"}}})
				done <- err
			}()
			for range cap(done) {
				w.ok(<-done)
			}
			var dangling int
			w.ok(w.DB().QueryRowContext(w.ctx, `SELECT (SELECT count(*) FROM membership m WHERE m.kind = 3
					AND NOT EXISTS(SELECT 1 FROM groups g WHERE g.id * 8 + 3 = m.audience))
				+ (SELECT count(*) FROM grants m WHERE m.audience & 7 = 3
					AND NOT EXISTS(SELECT 1 FROM groups g WHERE g.id * 8 + 3 = m.audience))`).Scan(&dangling))
			if dangling != 0 {
				t.Fatalf("%d rows name a group that is gone", dangling)
			}
			if err := w.UnshareGroup(w.ctx, alice, snapshot, "eng"); snap.CodeOf(err) != snap.CodeGroupNotFound {
				w.ok(err)
			}
			w.user(w.acme, "max", snap.RoleMember)
		}
	})
}
