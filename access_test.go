package snap_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"snap"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Two organizations and two groups, for the tests below.
var (
	acme   = snap.OrgRef{ID: 1, Slug: "acme"}
	globex = snap.OrgRef{ID: 2, Slug: "globex"}
	eng    = snap.Group{ID: 30, GroupID: "eng"}
	dba    = snap.Group{ID: 31, GroupID: "dba"}
)

func person(id int64, org snap.OrgRef, role snap.Role, groups ...snap.Group) snap.Caller {
	return snap.Caller{Org: org, User: &snap.User{ID: id}, Role: role, Groups: groups,
		Credential: snap.Credential{Kind: snap.UserKey}}
}

func orgKey(org snap.OrgRef, kind snap.CredentialKind) snap.Caller {
	return snap.Caller{Org: org, Credential: snap.Credential{Kind: kind,
		Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush}}}
}

// SPEC 5.3, row by row.
func TestVisible(t *testing.T) {
	t.Parallel()
	pushed := []snap.Grant{{Audience: snap.AudienceOf(snap.KindUser, 10)},
		{Audience: snap.AudienceOf(snap.KindAdmins, acme.ID)}}
	orgWide := append(pushed[:2:2], snap.Grant{Audience: snap.AudienceOf(snap.KindMembers, acme.ID)})
	toDBA := append(pushed[:2:2], snap.Grant{Audience: snap.AudienceOf(snap.KindGroup, dba.ID)})
	toGlobex := append(pushed[:2:2], snap.Grant{Audience: snap.AudienceOf(snap.KindRecipients, globex.ID),
		Until: noon.Add(time.Hour)})
	byKey := append(pushed[1:2:2], snap.Grant{Audience: snap.AudienceOf(snap.KindKeys, acme.ID)})
	private := orgKey(acme, snap.AgentKey)
	private.Credential.Scopes = append(private.Credential.Scopes, snap.ScopePrivate)
	unknown := person(13, acme, snap.RoleMember, dba)
	unknown.GroupsUnknown = true
	tests := []struct {
		name   string
		caller snap.Caller
		grants []snap.Grant
		want   bool
	}{
		{"the owner always sees it", person(10, acme, snap.RoleMember), pushed, true},
		{"even as a viewer", person(10, acme, snap.RoleViewer), pushed, true},
		{"organization owners see everything", person(11, acme, snap.RoleOwner), pushed, true},
		{"and admins", person(12, acme, snap.RoleAdmin), pushed, true},
		{"members do not see what is private", person(13, acme, snap.RoleMember), pushed, false},
		{"nor do viewers", person(14, acme, snap.RoleViewer), pushed, false},
		{"org-wide reaches members", person(13, acme, snap.RoleMember), orgWide, true},
		{"and viewers", person(14, acme, snap.RoleViewer), orgWide, true},
		{"but no other organization, not even its owner", person(20, globex, snap.RoleOwner), orgWide, false},
		{"a group share reaches the group", person(13, acme, snap.RoleMember, eng, dba), toDBA, true},
		{"and no one else", person(13, acme, snap.RoleMember, eng), toDBA, false},
		{"unknown groups give nothing", unknown, toDBA, false},
		{"a cross-org share reaches every role there", person(21, globex, snap.RoleViewer), toGlobex, true},
		{"and does not widen at home", person(13, acme, snap.RoleMember), toGlobex, false},
		{"an organization-level key sees what such keys pushed", orgKey(acme, snap.PipelineKey), byKey, true},
		{"and what is shared org-wide", orgKey(acme, snap.AgentKey), orgWide, true},
		{"and snapshots shared with its organization", orgKey(globex, snap.AgentKey), toGlobex, true},
		{"but nothing of another organization", orgKey(globex, snap.AgentKey), orgWide, false},
		{"nor what a group sees", orgKey(acme, snap.AgentKey), toDBA, false},
		{"nor what is private", orgKey(acme, snap.PipelineKey), pushed, false},
		{"unless it has the scope private", private, pushed, true},
		{"which adds nothing at another organization", private,
			[]snap.Grant{{Audience: snap.AudienceOf(snap.KindAdmins, globex.ID)}}, false},
		{"what such a key pushed is hidden from members", person(13, acme, snap.RoleMember), byKey, false},
		{"the anonymous see nothing", snap.Caller{},
			append(orgWide, snap.Grant{Audience: snap.AudienceOf(snap.KindMembers, 0)}), false},
	}
	for _, tt := range tests {
		if got := snap.Visible(tt.caller, tt.grants, noon); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// SPEC 2.3: a share ends at the instant of its expiry, not after it.
func TestGrantEndsInTheInstantItExpires(t *testing.T) {
	t.Parallel()
	g := snap.Grant{Until: noon}
	if !g.Live(noon.Add(-time.Nanosecond)) || g.Live(noon) || g.Live(noon.Add(time.Hour)) {
		t.Error("a grant is live until its time and no longer")
	}
	if !(snap.Grant{}).Live(noon) {
		t.Error("a grant without a time never ends")
	}
}

// An audience keeps its kind and the identifier of its subject.
func TestAudienceHoldsKindAndSubject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := snap.AudienceKind(rapid.Int64Range(0, int64(snap.KindKeys)).Draw(t, "kind"))
		subject := rapid.Int64Range(0, 1<<50).Draw(t, "subject")
		a := snap.AudienceOf(kind, subject)
		if a.Kind() != kind || a.Subject() != subject {
			t.Fatalf("%d of %d became %d of %d", kind, subject, a.Kind(), a.Subject())
		}
	})
}

// Adding a grant never hides a snapshot, and removing one never shows it.
func TestSharingOnlyWidens(t *testing.T) {
	t.Parallel()
	grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) snap.Grant {
		kind := snap.AudienceKind(rapid.Int64Range(0, int64(snap.KindKeys)).Draw(t, "kind"))
		g := snap.Grant{Audience: snap.AudienceOf(kind, rapid.Int64Range(1, 3).Draw(t, "subject"))}
		if rapid.Bool().Draw(t, "ends") {
			g.Until = noon.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "hours")) * time.Hour)
		}
		return g
	}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		all := grants.Draw(t, "grants")
		some := all[:rapid.IntRange(0, len(all)).Draw(t, "kept")]
		caller := person(rapid.Int64Range(1, 3).Draw(t, "user"), snap.OrgRef{ID: rapid.Int64Range(1, 3).Draw(t, "org")},
			rapid.SampledFrom([]snap.Role{snap.RoleOwner, snap.RoleAdmin, snap.RoleMember, snap.RoleViewer}).Draw(t,
				"role"),
			snap.Group{ID: rapid.Int64Range(1, 3).Draw(t, "group")})
		if snap.Visible(caller, some, noon) && !snap.Visible(caller, all, noon) {
			t.Fatal("a further grant hid the snapshot")
		}
	})
}

// SPEC 4.2, 5.1 and 5.3.
func TestAllowed(t *testing.T) {
	t.Parallel()
	mine := snap.Snapshot{Org: acme, Owner: &snap.User{ID: 10}}
	const (
		yes      = snap.Code("")
		no       = snap.CodeForbidden
		nameless = snap.CodeUserAttributionRequired
	)
	tests := []struct {
		do                                                                  snap.Action
		owner, admin, pusher, pusherNowViewer, member, viewer, foreign, key snap.Code
	}{
		{snap.ActView, yes, yes, yes, yes, yes, yes, yes, yes},
		{snap.ActPull, yes, yes, yes, yes, yes, yes, yes, yes},
		{snap.ActPush, yes, yes, yes, no, yes, no, yes, yes},
		{snap.ActDelete, yes, yes, no, no, no, no, no, nameless},
		{snap.ActShare, yes, yes, yes, no, no, no, no, nameless},
		{snap.ActShareOrg, yes, yes, no, no, no, no, no, nameless},
		{snap.ActDecline, no, no, no, no, no, no, yes, nameless},
		{snap.ActListGroupShares, yes, yes, yes, yes, yes, yes, no, yes},
		{snap.ActExplain, yes, yes, yes, yes, no, no, no, no},
		{snap.ActReadOrganization, yes, yes, yes, yes, yes, yes, yes, yes},
		{snap.ActAdminister, yes, yes, no, no, no, no, yes, no},
	}
	for _, tt := range tests {
		for _, cell := range []struct {
			who    string
			caller snap.Caller
			want   snap.Code
		}{
			{"owner", person(1, acme, snap.RoleOwner), tt.owner},
			{"admin", person(2, acme, snap.RoleAdmin), tt.admin},
			{"pusher", person(10, acme, snap.RoleMember), tt.pusher},
			{"pusher, now a viewer", person(10, acme, snap.RoleViewer), tt.pusherNowViewer},
			{"member", person(3, acme, snap.RoleMember), tt.member},
			{"viewer", person(4, acme, snap.RoleViewer), tt.viewer},
			{"owner of a recipient", person(5, globex, snap.RoleOwner), tt.foreign},
			{"pipeline key", orgKey(acme, snap.PipelineKey), tt.key},
			{"agent key", orgKey(acme, snap.AgentKey), tt.key},
		} {
			if got := snap.CodeOf(snap.Allowed(cell.caller, tt.do, mine)); got != cell.want {
				t.Errorf("%s by %s: got %q, want %q", tt.do, cell.who, got, cell.want)
			}
		}
	}
}

// A viewer who owns a snapshot is refused as a viewer. The refusal does not say that only the owner
// may share or describe it.
func TestViewersLearnWhyTheyAreRefused(t *testing.T) {
	t.Parallel()
	viewer := person(10, acme, snap.RoleViewer)
	for do, want := range map[snap.Action]string{
		snap.ActShare:    "viewers cannot share snapshots, even their own",
		snap.ActDescribe: "viewers cannot edit descriptions, even of their own snapshots",
	} {
		err := snap.Allowed(viewer, do, snap.Snapshot{Org: acme, Owner: viewer.User})
		if snap.CodeOf(err) != snap.CodeForbidden || err.Error() != want {
			t.Errorf("%s by a viewer who owns the snapshot: %v", do, err)
		}
	}
}

// SPEC 5.1: an organization-level key acts only within its scopes.
func TestScopesBoundOrganizationLevelKeys(t *testing.T) {
	t.Parallel()
	k := snap.Caller{Org: acme, Credential: snap.Credential{Kind: snap.PipelineKey,
		Scopes: []snap.Scope{snap.ScopePush}}}
	if snap.Allowed(k, snap.ActPush, snap.Snapshot{}) != nil {
		t.Error("a key with the scope push may push")
	}
	if snap.CodeOf(snap.Allowed(k, snap.ActPull, snap.Snapshot{Org: acme})) != snap.CodeForbidden {
		t.Error("a key without the scope pull may not pull")
	}
}
