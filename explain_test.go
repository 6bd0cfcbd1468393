package snap_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
)

// An explanation names each grant that lets somebody see the snapshot, or the right that they lack.
func TestJudgeSaysWhy(t *testing.T) {
	t.Parallel()
	grants := []snap.Access{
		{Grant: snap.Grant{Audience: snap.AudienceOf(snap.KindUser, 10)}, Org: acme},
		{Grant: snap.Grant{Audience: snap.AudienceOf(snap.KindAdmins, acme.ID)}, Org: acme},
		{Grant: snap.Grant{Audience: snap.AudienceOf(snap.KindGroup, dba.ID)}, Org: acme,
			Group: &snap.Group{ID: dba.ID, Name: "DBA"}},
		{Grant: snap.Grant{Audience: snap.AudienceOf(snap.KindRecipients, globex.ID), Until: noon}, Org: globex},
	}
	unknown := person(13, acme, snap.RoleMember)
	unknown.GroupsUnknown = true
	for name, test := range map[string]struct {
		caller   snap.Caller
		disabled bool
		now      time.Time
		visible  bool
		why      string
	}{
		"the owner": {person(10, acme, snap.RoleMember), false, noon, true, "owner of the snapshot"},
		"the owner, an admin": {person(10, acme, snap.RoleAdmin), false, noon, true,
			"owner of the snapshot; owner or admin"},
		"a member of the group": {person(11, acme, snap.RoleViewer, dba), false, noon, true, "member of the group DBA"},
		"a recipient": {person(20, globex, snap.RoleMember), false, noon.Add(-1), true,
			"shared with the organization globex until 2026-03-01 12:00 UTC"},
		"a recipient at the end": {person(20, globex, snap.RoleMember), false, noon, false,
			"ended at 2026-03-01 12:00 UTC"},
		"a member of other groups": {person(12, acme, snap.RoleMember, eng), false, noon, false,
			"shared with DBA, of which they are not a member"},
		"unknown groups":   {unknown, false, noon, false, "sent no groups"},
		"a disabled admin": {person(14, acme, snap.RoleAdmin), true, noon, false, "disabled"},
		"a stranger": {person(30, snap.OrgRef{ID: 3, Slug: "initech"}, snap.RoleOwner), false, noon, false,
			"does not share it with initech"},
	} {
		got := snap.Judge(test.caller, test.disabled, grants, test.now)
		if got.Visible != test.visible || !strings.Contains(got.Why, test.why) {
			t.Errorf("%s: %v, %q, want %v, %q", name, got.Visible, got.Why, test.visible, test.why)
		}
	}
}

// The explanation agrees with the rule: it says that a user can see a snapshot exactly if they can.
func TestJudgeIsTheAccessRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		audience := rapid.Custom(func(t *rapid.T) snap.Audience {
			return snap.AudienceOf(snap.AudienceKind(rapid.IntRange(0, 4).Draw(t, "kind")),
				rapid.Int64Range(1, 3).Draw(t, "subject"))
		})
		var grants []snap.Access
		var plain []snap.Grant
		for _, a := range rapid.SliceOfDistinct(audience, rapid.ID[snap.Audience]).Draw(t, "audiences") {
			g := snap.Grant{Audience: a}
			if rapid.Bool().Draw(t, "ends") {
				g.Until = noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")))
			}
			grants = append(grants, snap.Access{Grant: g, Group: &snap.Group{}})
			plain = append(plain, g)
		}
		c := person(rapid.Int64Range(1, 3).Draw(t, "user"), snap.OrgRef{ID: rapid.Int64Range(1, 3).Draw(t, "org")},
			rapid.SampledFrom([]snap.Role{snap.RoleAdmin, snap.RoleViewer}).Draw(t, "role"),
			snap.Group{ID: rapid.Int64Range(1, 3).Draw(t, "group")})
		c.GroupsUnknown = rapid.Bool().Draw(t, "unknown")
		if got, want := snap.Judge(c, false, grants, noon).Visible, snap.Visible(c, plain, noon); got != want {
			t.Fatalf("judged %v, but the rule says %v", got, want)
		}
	})
}
