package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"snap"
)

// DESIGN 4, GET /snapshots/{id}/access: the people who can see a snapshot, and why.
func TestAccessNamesEveryWay(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember)
		adam := w.user(w.acme, "adam", snap.RoleAdmin)
		w.user(w.acme, "olga", snap.RoleOwner)
		w.user(w.acme, "mia", snap.RoleMember, "eng")
		gone := w.user(w.acme, "gone", snap.RoleMember, "eng")
		w.ok(w.SetDisabled(w.ctx, gone.User.ID, true))
		vic := w.user(w.acme, "vic", snap.RoleViewer)
		w.user(w.globex, "gail", snap.RoleOwner)
		sn := w.push(alice, "shop", snap.TypeSnapshot)
		_, err := w.ShareGroup(w.ctx, alice, sn, "eng")
		w.ok(err)
		_, _, err = w.ShareOrg(w.ctx, adam, sn, "globex", w.clock.Now().Add(time.Hour))
		w.ok(err)
		ways := func(c snap.Caller) (text []string, people int) {
			t.Helper()
			all, people, err := w.Access(w.ctx, c, sn)
			w.ok(err)
			for _, a := range all {
				text = append(text, fmt.Sprintf("%s %s %d by %s", a.Org.Slug, a, a.People, a.By))
			}
			return text, people
		}
		got, people := ways(adam)
		want := []string{
			"acme owner of the snapshot 1 by ",
			"acme owner or admin of the organization 2 by ",
			"acme member of the group the eng 1 by alice@acme.test",
			"globex shared with the organization globex until 2026-01-02 04:04 UTC 0 by adam@acme.test",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || people != 4 {
			t.Errorf("%d people, through\n%s\nwant 4, through\n%s", people, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
		outside := " shared outside the organization; owners and admins know with whom 0 by "
		if got, _ := ways(alice); len(got) != 4 || got[3] != outside {
			t.Errorf("a member sees %q, want the other organization without its name", got)
		}
		w.clock.Advance(time.Hour)
		if got, _ := ways(adam); len(got) != 3 {
			t.Errorf("after the end: %v", got)
		}
		for email, why := range map[string]string{
			"alice@acme.test": "owner of the snapshot", "olga@acme.test": "owner or admin of the organization",
			"mia@acme.test": "member of the group the eng", "vic@acme.test": "not a member",
			"gone@acme.test": "disabled",
		} {
			m, verdict, err := w.Judge(w.ctx, adam, sn, email)
			w.ok(err)
			c, err := w.CallerOfUser(w.ctx, m.ID)
			sees := false
			if err == nil {
				_, err = w.Snapshot(w.ctx, c, sn.ID)
				sees = err == nil
			}
			if verdict.Visible != sees || !strings.Contains(verdict.Why, why) {
				t.Errorf("%s: %v, %q; sees it: %v; want %q", email, verdict.Visible, verdict.Why, sees, why)
			}
		}
		if _, _, err := w.Judge(w.ctx, adam, sn, "gail@globex.test"); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("another organization's user: %v, want not found", err)
		}
		if _, _, err := w.Access(w.ctx, vic, sn); err != nil {
			t.Errorf("a caller who cannot see it gets %v", err)
		}
	})
}

// share --dry-run names exactly the people whom the share would add.
func TestNewcomersAreWhoAShareAdds(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		alice := w.user(w.acme, "alice", snap.RoleMember, "eng")
		adam := w.user(w.acme, "adam", snap.RoleAdmin, "eng")
		w.user(w.acme, "mia", snap.RoleMember, "eng", "dba")
		w.user(w.acme, "gus", snap.RoleMember, "eng")
		w.user(w.acme, "vic", snap.RoleViewer)
		sn := w.push(alice, "shop", snap.TypeSnapshot)
		would := func(group string, limit int) string {
			t.Helper()
			users, count, err := w.Newcomers(w.ctx, adam, sn, group, limit)
			w.ok(err)
			var names []string
			for _, u := range users {
				names = append(names, u.Name)
			}
			return fmt.Sprint(count, names)
		}
		if got := would("eng", 10); got != "2 [gus mia]" {
			t.Errorf("sharing with eng would add %s", got)
		}
		if got := would("", 2); got != "3 [gus mia]" {
			t.Errorf("sharing org-wide would add %s", got)
		}
		_, err := w.ShareGroup(w.ctx, alice, sn, "dba")
		w.ok(err)
		if got := would("eng", 10); got != "1 [gus]" {
			t.Errorf("sharing with eng as well would add %s", got)
		}
		if _, _, err := w.Newcomers(w.ctx, adam, sn, "none", 1); snap.CodeOf(err) != snap.CodeGroupNotFound {
			t.Errorf("an unknown group: %v", err)
		}
	})
}
