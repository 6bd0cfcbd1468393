package store_test

import (
	"testing"
	"time"

	"snap"
	"snap/internal/store"
)

// DESIGN 4: newest first; a page never repeats or skips a row because of
// concurrent pushes, and a deletion does not break a cursor.
func TestPagesStayWhereTheyWere(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		var all []snap.Snapshot
		for range 7 {
			all = append(all, w.push(alice, "shop", snap.TypeSnapshot))
		}
		first, err := w.Snapshots(w.ctx, alice, store.Query{Limit: 3})
		w.ok(err)
		w.push(alice, "shop", snap.TypeSnapshot)
		_, err = w.Delete(w.ctx, adam, all[4]) // the last item of the first page
		w.ok(err)
		second, err := w.Snapshots(w.ctx, alice, store.Query{Limit: 3, Cursor: first.Next})
		w.ok(err)
		third, err := w.Snapshots(w.ctx, alice, store.Query{Limit: 3, Cursor: second.Next})
		w.ok(err)
		var got []string
		for _, page := range []store.Page{first, second, third} {
			for _, sn := range page.Items {
				got = append(got, sn.ID)
			}
		}
		if len(got) != 7 || third.Next != "" {
			t.Fatalf("%d items, next %q, want 7 on three pages", len(got), third.Next)
		}
		for i, id := range got {
			if id != all[6-i].ID {
				t.Errorf("item %d is not the one pushed %d-th", i, 7-i)
			}
		}
	})
}

// DESIGN 4: a query with an invalid filter, type, limit or cursor has the code invalid.
func TestInvalidQueries(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		for name, q := range map[string]store.Query{
			"filter": {Filter: "secret"}, "type": {Type: "dump"}, "limit": {Limit: 201}, "negative limit": {Limit: -1},
			"cursor": {Cursor: "AAAA"}, "cursor of another version": {Cursor: "AgAAAAAAAAAA"},
			"cursor that is no base64": {Cursor: "%"},
		} {
			if _, err := w.Snapshots(w.ctx, alice, q); snap.CodeOf(err) != snap.CodeInvalid {
				t.Errorf("%s: %v, want code invalid", name, err)
			}
		}
	})
}

// A caller sees the groups and members of their own organization only.
func TestGroupsAndMembers(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.user(w.acme, "mia", snap.RoleMember, "eng", "dba")
		gus := w.user(w.acme, "Gus", snap.RoleViewer, "eng")
		w.user(w.globex, "gail", snap.RoleOwner, "eng")
		w.ok(w.SetDisabled(w.ctx, gus.User.ID, true))
		groups, err := w.Groups(w.ctx, w.orgKey(w.acme))
		w.ok(err)
		if len(groups) != 2 || groups[0].GroupID != "dba" || groups[1].Members != 1 {
			t.Errorf("groups = %+v, want dba, and eng with 1 member", groups)
		}
		members, err := w.Members(w.ctx, gus)
		w.ok(err)
		if len(members) != 2 || !members[0].Disabled || len(members[1].Groups) != 2 ||
			members[1].Groups[0].Name != "the dba" {
			t.Errorf("members = %+v", members)
		}
		if m, err := w.UserByEmail(w.ctx, w.acme.ID, "gUS@ACME.test"); err != nil || m.ID != gus.User.ID {
			t.Errorf("by e-mail: %+v, %v", m, err)
		}
		w.clock.Advance(time.Millisecond)
		id, err := w.ApplySignIn(w.ctx, store.SignIn{OrgID: w.acme.ID, Issuer: "https://other-idp.test", Subject: "gus",
			Email: "gus@acme.test", Role: snap.RoleViewer})
		w.ok(err)
		if m, err := w.UserByEmail(w.ctx, w.acme.ID, "gus@acme.test"); err != nil || m.ID != id {
			t.Errorf("of two accounts by e-mail: %+v, %v, want the newer one", m, err)
		}
		if _, err := w.UserByEmail(w.ctx, w.acme.ID, "gail@globex.test"); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("a user of another organization by e-mail: %v, want not found", err)
		}
	})
}
