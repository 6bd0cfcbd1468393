package store_test

import (
	"errors"
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// SPEC 5.3: each of the three shares lets exactly the right callers see a snapshot, until it ends.
func TestSharesDecideWhoSees(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		mia := w.user(w.acme, "mia", snap.RoleMember, "eng")
		vic := w.user(w.acme, "vic", snap.RoleViewer)
		gail := w.user(w.globex, "gail", snap.RoleViewer)
		key, private := w.orgKey(w.acme), w.privateKey(w.acme)
		sn := w.push(alice, "shop", snap.TypeSanitized)
		all := []snap.Snapshot{sn}
		alone := func() {
			t.Helper()
			w.sees(alice, all, sn)
			w.sees(adam, all, sn)
			w.sees(private, all, sn)
			w.sees(key, all)
			for _, c := range []snap.Caller{mia, vic, gail, {}} {
				w.sees(c, all)
			}
		}
		alone()

		w.ok(w.Share(w.ctx, alice, sn))
		w.ok(w.Share(w.ctx, alice, sn))
		w.sees(mia, all, sn)
		w.sees(vic, all, sn)
		w.sees(key, all, sn)
		w.sees(gail, all)
		w.ok(w.Unshare(w.ctx, alice, sn))
		w.ok(w.Unshare(w.ctx, alice, sn))
		alone()

		_, err := w.ShareGroup(w.ctx, alice, sn, "eng")
		w.ok(err)
		w.sees(mia, all, sn)
		w.sees(vic, all)
		w.ok(w.UnshareGroup(w.ctx, alice, sn, "eng"))
		alone()

		_, previous, err := w.ShareOrg(w.ctx, adam, sn, "globex", w.clock.Now().Add(time.Hour))
		w.ok(err)
		if previous != nil {
			t.Errorf("the first share replaced %v", previous)
		}
		w.sees(gail, all, sn)
		w.clock.Advance(time.Hour - time.Millisecond)
		w.sees(gail, all, sn)
		w.clock.Advance(time.Millisecond)
		alone()
	})
}

// SPEC 2.3: a share is unique per snapshot and recipient; sharing again changes its expiry, and
// sharing again without an expiry removes it.
func TestSharingAgainReplacesTheExpiry(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		sn := w.push(adam, "shop", snap.TypeSnapshot)
		soon := w.clock.Now().Add(time.Hour)
		first, _, err := w.ShareOrg(w.ctx, adam, sn, "globex", soon)
		w.ok(err)
		w.clock.Advance(time.Minute)
		again, previous, err := w.ShareOrg(w.ctx, adam, sn, "globex", time.Time{})
		w.ok(err)
		if previous == nil || !previous.Expires.Equal(soon) || previous.Org.Slug != "globex" {
			t.Errorf("previous = %+v, want the share until %v", previous, soon)
		}
		if !again.Expires.IsZero() || !again.Created.Equal(first.Created) || again.By != "adam@acme.test" {
			t.Errorf("shared again: %+v after %+v", again, first)
		}
		shares, err := w.OrgShares(w.ctx, adam, sn)
		w.ok(err)
		if len(shares) != 1 || shares[0] != again {
			t.Errorf("shares = %+v, want only %+v", shares, again)
		}
	})
}

// SPEC 2.3: a share that has ended is neither listed nor counted, cannot be ended again, and sharing
// again makes a new one.
func TestExpiredSharesAreGone(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		sn := w.push(adam, "shop", snap.TypeSnapshot)
		_, _, err := w.ShareOrg(w.ctx, adam, sn, "globex", w.clock.Now().Add(time.Second))
		w.ok(err)
		w.clock.Advance(time.Second)
		if shares, err := w.OrgShares(w.ctx, adam, sn); err != nil || len(shares) != 0 {
			t.Errorf("shares = %+v, %v, want none", shares, err)
		}
		if got, err := w.Snapshot(w.ctx, adam, sn.ID); err != nil || got.Orgs != 0 {
			t.Errorf("org shares counted = %d, %v, want 0", got.Orgs, err)
		}
		ended, err := w.UnshareFrom(w.ctx, adam, sn, snap.Shares{Orgs: []string{"globex"}})
		if err != nil || ended[0].Changed {
			t.Errorf("unsharing after the end: %+v, %v, want no change", ended, err)
		}
		share, previous, err := w.ShareOrg(w.ctx, adam, sn, "globex", time.Time{})
		w.ok(err)
		if previous != nil || !share.Created.Equal(w.clock.Now()) {
			t.Errorf("sharing after the end: %+v, previous %+v; want a new share", share, previous)
		}
	})
}

// The shares of a snapshot that a caller sees depend on who they are.
func TestSharesShownToEachCaller(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleOwner)
		mia := w.user(w.acme, "mia", snap.RoleMember, "eng")
		gail := w.user(w.globex, "gail", snap.RoleOwner)
		sn := w.push(alice, "shop", snap.TypeSnapshot)
		until := w.clock.Now().Add(time.Hour)
		_, err := w.ShareGroup(w.ctx, alice, sn, "eng")
		w.ok(err)
		_, _, err = w.ShareOrg(w.ctx, adam, sn, "globex", until)
		w.ok(err)
		type told struct {
			shared, received, owner bool
			groups, orgs            int
			expires                 time.Time
		}
		for name, test := range map[string]struct {
			caller snap.Caller
			want   told
		}{
			"owner of the snapshot": {alice, told{owner: true, groups: 1}},
			"admin":                 {adam, told{owner: true, groups: 1, orgs: 1}},
			"member of the group":   {mia, told{owner: true}},
			"organization key":      {w.privateKey(w.acme), told{owner: true}},
			"recipient":             {gail, told{shared: true, received: true, expires: until}},
		} {
			one, err := w.Snapshot(w.ctx, test.caller, sn.ID)
			w.ok(err)
			page, err := w.Snapshots(w.ctx, test.caller, store.Query{})
			w.ok(err)
			for door, got := range map[string]snap.Snapshot{"found": one, "listed": page.Items[0]} {
				is := told{got.Shared, got.Received, got.Owner != nil, got.Groups, got.Orgs, got.Expires}
				if is != test.want {
					t.Errorf("%s, %s: %+v, want %+v", name, door, is, test.want)
				}
				if got.Org != w.acme {
					t.Errorf("%s, %s: organization %+v, want acme", name, door, got.Org)
				}
			}
		}
	})
}

// Each recipient that cannot get a share has an error code of its own.
func TestShareErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		mia := w.user(w.acme, "mia", snap.RoleMember)
		w.user(w.globex, "gail", snap.RoleOwner, "theirs")
		sn := w.push(adam, "shop", snap.TypeSnapshot)
		_, group := w.ShareGroup(w.ctx, adam, sn, "theirs")
		_, _, org := w.ShareOrg(w.ctx, adam, sn, "nobody", time.Time{})
		_, _, own := w.ShareOrg(w.ctx, adam, sn, "acme", time.Time{})
		_, err := w.Delete(w.ctx, adam, sn)
		w.ok(err)
		for name, test := range map[string]struct {
			err  error
			want snap.Code
		}{
			"group of another organization": {group, snap.CodeGroupNotFound},
			"unknown slug":                  {org, snap.CodeOrganizationNotFound},
			"own slug":                      {own, snap.CodeInvalid},
			"share a deleted one":           {w.Share(w.ctx, adam, sn), snap.CodeNotFound},
			"unshare a hidden one":          {w.Unshare(w.ctx, mia, sn), snap.CodeNotFound},
		} {
			if got := snap.CodeOf(test.err); got != test.want {
				t.Errorf("%s: %v, want code %s", name, test.err, test.want)
			}
		}
	})
}

// SPEC 2.4, 5.3: a role change, a sign-in with other groups and disabling act
// at the next request.
func TestChangesOfAUserActAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		mia := w.user(w.acme, "mia", snap.RoleMember, "eng", "dba")
		hidden := w.push(alice, "shop", snap.TypeSnapshot)
		grouped := w.push(alice, "shop", snap.TypeSnapshot)
		_, err := w.ShareGroup(w.ctx, alice, grouped, "eng")
		w.ok(err)
		all := []snap.Snapshot{hidden, grouped}
		w.sees(mia, all, grouped)
		w.ok(w.SetRole(w.ctx, mia.User.ID, snap.RoleAdmin))
		w.sees(w.caller(mia.User.ID), all, hidden, grouped)
		w.ok(w.SetRole(w.ctx, mia.User.ID, snap.RoleViewer))
		w.sees(w.caller(mia.User.ID), all, grouped)
		w.sees(w.user(w.acme, "mia", snap.RoleMember, "dba"), all)
		w.ok(w.SetDisabled(w.ctx, mia.User.ID, true))
		if _, err := w.CallerOfUser(w.ctx, mia.User.ID); !errors.Is(err, snap.ErrUnauthenticated) {
			t.Errorf("a disabled user: %v, want unauthenticated", err)
		}
		logged := func() int {
			w.sequence()
			page, err := w.Audit(w.ctx, alice, store.AuditQuery{Action: snap.AuditUserChanged, Limit: 100})
			w.ok(err)
			return len(page.Items)
		}
		before := logged()
		w.ok(w.SetDisabled(w.ctx, mia.User.ID, true))
		w.ok(w.SetRole(w.ctx, mia.User.ID, snap.RoleMember))
		if n := logged(); n != before {
			t.Errorf("%d lines for changes that change nothing", n-before)
		}
		w.ok(w.SetDisabled(w.ctx, mia.User.ID, false))
		w.ok(w.SetDisabled(w.ctx, mia.User.ID, false))
		w.ok(w.SetRole(w.ctx, mia.User.ID, snap.RoleViewer))
		if n := logged(); n != before+2 {
			t.Errorf("%d lines for two changes", n-before)
		}
		for _, cursor := range []string{"1-2x", "1-2-3", " 1-2", "1", "x"} {
			_, _, err := w.LiveShares(w.ctx, alice, store.ShareQuery{Cursor: cursor})
			if snap.CodeOf(err) != snap.CodeInvalid {
				t.Errorf("the cursor %q: %v", cursor, err)
			}
		}
	})
}
