package snap

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestJudgeSaysWhy(t *testing.T) {
	t.Parallel()
	grants := []Access{
		{Grant: Grant{Audience: AudienceOf(KindUser, 10)}, Org: acme},
		{Grant: Grant{Audience: AudienceOf(KindAdmins, acme.ID)}, Org: acme},
		{Grant: Grant{Audience: AudienceOf(KindGroup, dba.ID)}, Org: acme, Group: &Group{ID: dba.ID, Name: "DBA"}},
		{Grant: Grant{Audience: AudienceOf(KindRecipients, globex.ID), Until: noon}, Org: globex},
	}
	unknown := person(13, acme, RoleMember)
	unknown.GroupsUnknown = true
	for name, test := range map[string]struct {
		caller   Caller
		disabled bool
		now      time.Time
		visible  bool
		why      string
	}{
		"the owner":                {person(10, acme, RoleMember), false, noon, true, "owner of the snapshot"},
		"the owner, an admin":      {person(10, acme, RoleAdmin), false, noon, true, "owner of the snapshot; owner or admin"},
		"a member of the group":    {person(11, acme, RoleViewer, dba), false, noon, true, "member of the group DBA"},
		"a recipient":              {person(20, globex, RoleMember), false, noon.Add(-1), true, "shared with the organization globex until 2026-03-01T12:00:00Z"},
		"a recipient at the end":   {person(20, globex, RoleMember), false, noon, false, "ended at 2026-03-01T12:00:00Z"},
		"a member of other groups": {person(12, acme, RoleMember, eng), false, noon, false, "shared with DBA, of which they are not a member"},
		"unknown groups":           {unknown, false, noon, false, "sent no groups"},
		"a disabled admin":         {person(14, acme, RoleAdmin), true, noon, false, "disabled"},
		"a stranger":               {person(30, OrgRef{ID: 3, Slug: "initech"}, RoleOwner), false, noon, false, "does not share it with initech"},
	} {
		got := Judge(test.caller, test.disabled, grants, test.now)
		if got.Visible != test.visible || !strings.Contains(got.Why, test.why) {
			t.Errorf("%s: %v, %q, want %v, %q", name, got.Visible, got.Why, test.visible, test.why)
		}
	}
}

// The explanation and the rule are one: whoever is judged visible is.
func TestJudgeIsTheAccessRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		audience := rapid.Custom(func(t *rapid.T) Audience {
			return AudienceOf(AudienceKind(rapid.IntRange(0, 4).Draw(t, "kind")), rapid.Int64Range(1, 3).Draw(t, "subject"))
		})
		var grants []Access
		var plain []Grant
		for _, a := range rapid.SliceOfDistinct(audience, rapid.ID[Audience]).Draw(t, "audiences") {
			g := Grant{Audience: a}
			if rapid.Bool().Draw(t, "ends") {
				g.Until = noon.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")))
			}
			grants = append(grants, Access{Grant: g, Group: &Group{}})
			plain = append(plain, g)
		}
		c := person(rapid.Int64Range(1, 3).Draw(t, "user"), OrgRef{ID: rapid.Int64Range(1, 3).Draw(t, "org")}, rapid.SampledFrom([]Role{RoleAdmin, RoleViewer}).Draw(t, "role"), Group{ID: rapid.Int64Range(1, 3).Draw(t, "group")})
		c.GroupsUnknown = rapid.Bool().Draw(t, "unknown")
		if got, want := Judge(c, false, grants, noon).Visible, Visible(c, plain, noon); got != want {
			t.Fatalf("judged %v, but the rule says %v", got, want)
		}
	})
}
