package snap

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// people of two organizations, for the tables below.
var (
	acme   = OrgRef{ID: 1, Slug: "acme"}
	globex = OrgRef{ID: 2, Slug: "globex"}
	eng    = Group{ID: 30, GroupID: "eng"}
	dba    = Group{ID: 31, GroupID: "dba"}
)

func person(id int64, org OrgRef, role Role, groups ...Group) Caller {
	return Caller{Org: org, User: &User{ID: id}, Role: role, Groups: groups, Credential: Credential{Kind: UserKey}}
}

func orgKey(org OrgRef, kind CredentialKind) Caller {
	return Caller{Org: org, Credential: Credential{Kind: kind, Scopes: []Scope{ScopePull, ScopePush}}}
}

// SPEC 5.3, row by row.
func TestVisible(t *testing.T) {
	t.Parallel()
	pushed := []Grant{{Audience: AudienceOf(KindUser, 10)}, {Audience: AudienceOf(KindAdmins, acme.ID)}}
	orgWide := append(pushed[:2:2], Grant{Audience: AudienceOf(KindMembers, acme.ID)})
	toDBA := append(pushed[:2:2], Grant{Audience: AudienceOf(KindGroup, dba.ID)})
	toGlobex := append(pushed[:2:2], Grant{Audience: AudienceOf(KindRecipients, globex.ID), Until: noon.Add(time.Hour)})
	byKey := pushed[1:]
	unknown := person(13, acme, RoleMember, dba)
	unknown.GroupsUnknown = true
	tests := []struct {
		name   string
		caller Caller
		grants []Grant
		want   bool
	}{
		{"the owner always sees it", person(10, acme, RoleMember), pushed, true},
		{"even as a viewer", person(10, acme, RoleViewer), pushed, true},
		{"organization owners see everything", person(11, acme, RoleOwner), pushed, true},
		{"and admins", person(12, acme, RoleAdmin), pushed, true},
		{"members do not see what is private", person(13, acme, RoleMember), pushed, false},
		{"nor do viewers", person(14, acme, RoleViewer), pushed, false},
		{"org-wide reaches members", person(13, acme, RoleMember), orgWide, true},
		{"and viewers", person(14, acme, RoleViewer), orgWide, true},
		{"but no other organization, not even its owner", person(20, globex, RoleOwner), orgWide, false},
		{"a group share reaches the group", person(13, acme, RoleMember, eng, dba), toDBA, true},
		{"and no one else", person(13, acme, RoleMember, eng), toDBA, false},
		{"unknown groups give nothing", unknown, toDBA, false},
		{"a cross-org share reaches every role there", person(21, globex, RoleViewer), toGlobex, true},
		{"and does not widen at home", person(13, acme, RoleMember), toGlobex, false},
		{"an organization-level key sees what is of its organization", orgKey(acme, PipelineKey), byKey, true},
		{"and what was shared to it", orgKey(globex, AgentKey), toGlobex, true},
		{"but nothing else", orgKey(globex, AgentKey), orgWide, false},
		{"what such a key pushed is hidden from members", person(13, acme, RoleMember), byKey, false},
		{"the anonymous see nothing", Caller{}, append(orgWide, Grant{Audience: AudienceOf(KindMembers, 0)}), false},
	}
	for _, tt := range tests {
		if got := Visible(tt.caller, tt.grants, noon); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// SPEC 2.3: the share ends when its time is reached, not after.
func TestGrantEndsInTheInstantItExpires(t *testing.T) {
	t.Parallel()
	g := Grant{Until: noon}
	if !g.Live(noon.Add(-time.Nanosecond)) || g.Live(noon) || g.Live(noon.Add(time.Hour)) {
		t.Error("a grant is live until its time and no longer")
	}
	if !(Grant{}).Live(noon) {
		t.Error("a grant without a time never ends")
	}
}

func TestAudienceHoldsKindAndSubject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := AudienceKind(rapid.Int64Range(0, 4).Draw(t, "kind"))
		subject := rapid.Int64Range(0, 1<<50).Draw(t, "subject")
		a := AudienceOf(kind, subject)
		if a.Kind() != kind || a.Subject() != subject {
			t.Fatalf("%d of %d became %d of %d", kind, subject, a.Kind(), a.Subject())
		}
	})
}

// Adding a grant never takes a snapshot away, removing one never shows it.
func TestSharingOnlyWidens(t *testing.T) {
	t.Parallel()
	grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Grant {
		g := Grant{Audience: AudienceOf(AudienceKind(rapid.Int64Range(0, 4).Draw(t, "kind")), rapid.Int64Range(1, 3).Draw(t, "subject"))}
		if rapid.Bool().Draw(t, "ends") {
			g.Until = noon.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "hours")) * time.Hour)
		}
		return g
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		all := grants.Draw(t, "grants")
		some := all[:rapid.IntRange(0, len(all)).Draw(t, "kept")]
		caller := person(rapid.Int64Range(1, 3).Draw(t, "user"), OrgRef{ID: rapid.Int64Range(1, 3).Draw(t, "org")},
			rapid.SampledFrom([]Role{RoleOwner, RoleAdmin, RoleMember, RoleViewer}).Draw(t, "role"), Group{ID: rapid.Int64Range(1, 3).Draw(t, "group")})
		if Visible(caller, some, noon) && !Visible(caller, all, noon) {
			t.Fatal("a further grant hid the snapshot")
		}
	})
}

// SPEC 4.2, 5.1, 5.3; the design's table of who may do what.
func TestAllowed(t *testing.T) {
	t.Parallel()
	mine := Snapshot{Org: acme, Owner: &User{ID: 10}}
	const (
		yes      = Code("")
		no       = CodeForbidden
		nameless = CodeUserAttributionRequired
	)
	tests := []struct {
		do                                                                  Action
		owner, admin, pusher, pusherNowViewer, member, viewer, foreign, key Code
	}{
		{ActView, yes, yes, yes, yes, yes, yes, yes, yes},
		{ActPull, yes, yes, yes, yes, yes, yes, yes, yes},
		{ActPush, yes, yes, yes, no, yes, no, yes, yes},
		{ActDelete, yes, yes, no, no, no, no, no, nameless},
		{ActShare, yes, yes, yes, no, no, no, no, nameless},
		{ActShareOrg, yes, yes, no, no, no, no, no, nameless},
		{ActDecline, no, no, no, no, no, no, yes, nameless},
		{ActListGroups, yes, yes, yes, yes, yes, yes, no, yes},
		{ActExplain, yes, yes, yes, yes, no, no, no, no},
		{ActReadGroups, yes, yes, yes, yes, yes, yes, yes, yes},
		{ActAdminister, yes, yes, no, no, no, no, yes, no},
	}
	for _, tt := range tests {
		for _, cell := range []struct {
			who    string
			caller Caller
			want   Code
		}{
			{"owner", person(1, acme, RoleOwner), tt.owner},
			{"admin", person(2, acme, RoleAdmin), tt.admin},
			{"pusher", person(10, acme, RoleMember), tt.pusher},
			{"pusher, now a viewer", person(10, acme, RoleViewer), tt.pusherNowViewer},
			{"member", person(3, acme, RoleMember), tt.member},
			{"viewer", person(4, acme, RoleViewer), tt.viewer},
			{"owner of a recipient", person(5, globex, RoleOwner), tt.foreign},
			{"pipeline key", orgKey(acme, PipelineKey), tt.key},
			{"agent key", orgKey(acme, AgentKey), tt.key},
		} {
			if got := CodeOf(Allowed(cell.caller, tt.do, mine)); got != cell.want {
				t.Errorf("%s by %s: got %q, want %q", tt.do, cell.who, got, cell.want)
			}
		}
	}
}

func TestScopesBoundOrganizationLevelKeys(t *testing.T) {
	t.Parallel()
	k := Caller{Org: acme, Credential: Credential{Kind: PipelineKey, Scopes: []Scope{ScopePush}}}
	if Allowed(k, ActPush, Snapshot{}) != nil {
		t.Error("a key with the scope push may push")
	}
	if CodeOf(Allowed(k, ActPull, Snapshot{Org: acme})) != CodeForbidden {
		t.Error("and not pull")
	}
}
