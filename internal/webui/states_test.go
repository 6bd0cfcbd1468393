package webui

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/archive"
	"snap/internal/local"
	"snap/internal/login"
	"snap/internal/look"
	"snap/internal/nightly"
)

// Every page renders in every possible state, including states that no other test reaches, because
// html/template finds misspelled fields only when it runs.
func TestEveryStateRenders(t *testing.T) {
	t.Parallel()
	u := startUI(t, nil, "")
	page := look.Page{Title: "T", Product: product, Nav: []look.Link{{URL: "/x", Text: "X", Icon: "cloud", Count: 3}},
		Who: "mia", WhoLink: "/account"}
	rendered := map[string]bool{}
	for _, state := range states(page) {
		for _, part := range append([]string{"base"}, state.parts...) {
			var out bytes.Buffer
			if err := u.Server.views.Write(&out, state.page, part, state.data); err != nil {
				t.Errorf("%s, %s: %v", state.page, part, err)
			}
			text := out.String()
			for _, bad := range []string{"<no value>", "ZgotmplZ", "%!", "<nil>"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s, %s holds %q:\n%s", state.page, part, bad, text)
				}
			}
			for _, want := range state.want {
				if part == "base" && !strings.Contains(text, want) {
					t.Errorf("%s lacks %q:\n%s", state.page, want, text)
				}
			}
		}
		rendered[state.page] = true
	}
	for _, name := range u.Server.views.Names() {
		if !rendered[name] {
			t.Errorf("no state of %s is rendered here", name)
		}
	}
}

type state struct {
	page  string
	parts []string
	data  any
	want  []string
}

func states(page look.Page) []state {
	now := time.Now()
	later := now.Add(48 * time.Hour)
	bad := &problem{Title: "Something went wrong", Detail: "it broke", Hint: "run `this`"}
	here := local.Snapshot{Target: "shop", Name: "shop-1", Type: snap.TypeSnapshot, Engine: snap.Postgres, Size: 5,
		Created: now, Tables: []archive.Table{{}, {}}}
	cloud := api.Snapshot{ID: "snap_1", Target: "shop", Name: "shop-1", Type: snap.TypeSanitized, Engine: snap.MySQL,
		Created: now, Organization: "acme", Owner: "mia@acme.test", Groups: 2, Orgs: 1}
	received := cloud
	received.Received, received.Shared, received.ExpiresAt, received.Owner = true, true, &later, ""
	admin := api.Me{Organization: "acme", OrganizationName: "Acme", Email: "mia@acme.test", Role: snap.RoleAdmin,
		Credential: api.MeCredential{Kind: snap.LoginToken, Name: "laptop"}}
	sealed := here
	sealed.Encrypted, sealed.Subset = 2, &archive.Subset{Percent: 10}
	rows := []row{{Local: &here}, {Local: &sealed}, {Cloud: &cloud, Me: admin}, {Cloud: &received, Me: admin},
		{Local: &here, Cloud: &cloud}}
	list := listing{Query: query{Show: showAll, Q: "x", Target: "shop", Sort: bySize, Cursor: "c"}, Rows: rows,
		Next: &query{Show: showCloud}, SortedOnly: true, Counts: counts{All: tally{N: 200, More: true, Known: true}}}
	choice := look.GroupChoice{Group: api.Group{GroupID: "g", Name: "G", Members: 1}, On: true}
	sharing := sharingPage{Page: page, Row: row{Cloud: &cloud, Me: admin}, Box: &look.ShareBox{
		Snapshot: cloud, Can: api.Can{Share: true, ShareOrg: true, Explain: true}, Org: "acme",
		Search: "e", Total: 2000, More: 9, Shared: []look.GroupChoice{choice},
		Others: []look.GroupChoice{{Group: api.Group{GroupID: "h", Name: "h"}}},
		Orgs: []api.OrgShare{{OrgSlug: "globex", Name: "Globex", ExpiresAt: &later}, {OrgSlug: "x", Name: "x"},
			{OrgSlug: "y", DeclinedAt: &now}},
		Adds: &api.Newcomers{Count: 1}, Asked: "a@b",
		Audience: look.AudienceOf(api.Access{Ways: []api.AccessWay{{Kind: "owner", Owner: "mia"},
			{Kind: "admins", People: 2},
			{Kind: "org_wide"}, {Kind: "group", GroupID: "g"},
			{Kind: "organization", Organization: "globex", ExpiresAt: &later}, {Kind: "new", Through: "something new"}},
			Keys: []api.AccessKey{{Kind: snap.PipelineKey, Name: "nightly"}}}, "acme", "acme"),
		Verdict: &api.AccessVerdict{Email: "a@b", Why: "not a member"},
	}}
	recipient := sharingPage{Page: page, Row: row{Cloud: &received, Me: api.Me{Organization: "globex"}},
		Box: &look.ShareBox{Snapshot: received}}
	viewer := sharingPage{Page: page, Row: row{Cloud: &cloud, Me: admin},
		Box: &look.ShareBox{Snapshot: cloud, Shared: []look.GroupChoice{choice}}}
	flight := local.Preflight{Destination: "postgres://h/shop_dev", Exists: true, Tables: 1, Size: 9,
		Connections: []string{"psql"}, ServerVersion: "15", Warnings: []string{"older server"}}
	return append([]state{
		{"snapshots.html", []string{"listing"}, snapshotsPage{Page: page, listing: list, Targets: []string{"shop"},
			Types: []snap.Type{snap.TypeSnapshot}, Cloud: true, Problem: bad, Jobs: jobStates(now)},
			[]string{"200&#43;", "Only the newest 1,000", "ends in 2 days", "Decline for acme",
				"2 groups, 1 organization",
				"Resume", "Interrupted", "encrypted to 2 recipients", "a subset of the rows"}},
		{"snapshots.html", []string{"one-row"},
			rowStates{snapshotsPage{Page: page, Cloud: true, listing: listing{Query: query{Show: showLocal}}}, rows[2],
				look.Change{Text: "It is shared.", Warning: "it was not masked", Action: "/x",
					Fields: look.Fields("shared", "false")}},
			[]string{"Nothing on this machine yet"}},
		{"snapshots.html", nil, snapshotsPage{Page: page, Cloud: true, Problem: bad,
			listing: listing{Query: query{Show: showCloud}}}, []string{"without the cloud", "<code>this</code>"}},
		{"snapshots.html", nil, snapshotsPage{Page: page, Cloud: true, Problem: bad, SignedOut: true,
			SignIn:  signinView{Offered: true, Service: "https://c", Back: "/snapshots?show=cloud"},
			listing: listing{Query: query{Show: showCloud}}},
			[]string{"You are signed out", `value="/snapshots?show=cloud"`, "are not shown"}},
		{"snapshots.html", nil, snapshotsPage{Page: page, Cloud: true, listing: listing{Query: query{Show: showCloud}}},
			[]string{"No cloud snapshots that you may see"}},
		{"snapshots.html", nil, snapshotsPage{Page: page, Cloud: true,
			listing: listing{Query: query{Show: showShared}}},
			[]string{"Nothing is shared yet"}},
		{"sharing.html", []string{"dialog", "changed"}, sharing,
			[]string{"2,000 groups", "and 9 more", "declined", "no end", "Sharing it adds 1 person", "something new",
				"Not a member."}},
		{"sharing.html", []string{"dialog"}, viewer, []string{"needs the owner or admin role", "Only its owner"}},
		{"sharing.html", []string{"dialog"}, recipient,
			[]string{"Shared with your organization", "can see who else it is shared with"}},
		{"load.html", []string{"dialog"}, loadPage{Page: page, Snapshot: here, Preflight: flight, Database: "shop_dev",
			Certificate: "none", Back: "/"},
			[]string{"Older server.", "psql", "shop_dev", "1 table", "<dt>Certificate</dt><dd><bdi>none</bdi>"}},
		{"load.html", []string{"dialog"}, loadPage{Page: page, Snapshot: here, Problem: bad, Back: "/"},
			[]string{"It broke."}},
		{"load.html", nil, loadPage{Page: page, Snapshot: here, Back: "/"}, []string{"will be created"}},
		{"confirm.html", []string{"dialog"}, confirmPage{Page: page, Question: "Q?", Detail: "D", Icon: "people",
			Fields: look.Fields("shared", "true"), Button: "B", Action: "/a", Back: "/"}, []string{"Q?"}},
		{"jobs.html", nil, jobsData{Page: page}, []string{"No jobs yet"}},
		{"jobs.html", nil, jobsData{Page: page, Jobs: jobStates(now)},
			[]string{"Try again", "Resume", "Start again", "Canceled", `value="42"`}},
		{"targets.html", nil, targetsPage{Page: page, Config: "/c"}, []string{"No targets yet"}},
		{"targets.html", nil,
			targetsPage{Page: page,
				Targets: []targetView{{Target: local.Target{Name: "a", Production: true, Source: "postgres://u:p@h/d",
					Sanitize: local.SanitizeSpec{Rules: "r", SQL: "s"}}, Snapshots: 2, Newest: now}, {}}},
			[]string{"production", "xxxxx", "2 snapshots"}},
		{"clones.html", []string{"clones"}, clonesPage{Page: page, Problem: bad}, []string{"No clones", "It broke."}},
		{"clones.html", nil, clonesPage{Page: page, Targets: []string{"shop"}, Clones: cloneStates(now)},
			[]string{"<option>shop", `href="/clones/feature%2Fx/drop"`, "2 connections", "making", "warm",
				`href="/clones/warm_1/drop"`, "no answer", "branched from pr-1"}},
		{"find.html", []string{"dialog"}, findPage{Page: page, Q: "x", Rows: rows, Problem: bad,
			Targets: []finding{{Text: "shop", Icon: "target", URL: "/x"}},
			Actions: []finding{{Text: "Build it", Icon: "camera", URL: "/b", Post: true}}},
			[]string{`action="/b"`, `href="/cloud/snap_1"`, "Arrow keys"}},
		{"find.html", nil, findPage{Page: page, Q: "<x>"}, []string{"Nothing matches “&lt;x&gt;”"}},
		{"home.html", []string{"home"}, homePage{Page: page}, []string{"Nothing here yet", "snapcli login"}},
		{"home.html", nil, homePage{Page: page, Cloud: true, Partial: true, More: 2, Ending: []row{rows[3]},
			Exposed: []row{rows[2], rows[4]}, Targets: homeStates(rows, now)},
			[]string{"ends in 2 days", "Originals that are shared", "2 groups, 1 organization", "2 more targets",
				"Verified by a load", "failed</span> It broke.\n<time", "Size of shop over time",
				"about 12.5% of the data since shop-0"}},
		{"snapshot.html", []string{"snapshot"}, snapshotPage{Page: page, Gone: true}, []string{"no longer here"}},
		{"snapshot.html", []string{"changed"}, changedSnapshot{snapshotPage: snapshotPage{Page: page, Row: rows[4],
			Link: "https://c/snapshots/snap_1", Pulls: []api.PullCount{{Email: "max@acme.test", Times: 2, LastAt: now}},
			Mine:     look.Ways([]api.AccessWay{{Kind: "group", GroupID: "eng"}}, "acme"),
			Audience: look.AudienceOf(api.Access{People: 3}, "acme", "Acme"), Problem: bad,
			Sizes: look.Sizes([]api.Snapshot{cloud, cloud}, time.UTC), Card: look.Card{SnapshotCard: api.SnapshotCard{
				Snapshot: cloud}}}},
			[]string{"through the group eng", "3 people in Acme", "2 times", "https://c/snapshots/snap_1",
				"snapcli pull shop --cloud --snapshot-id snap_1", "On this machine", "Size over time"}},
		{"snapshot.html", nil, snapshotPage{Page: page, Row: rows[1], Card: look.Card{Sealed: true}},
			[]string{"no key on this machine opens it", "encrypted to 2 recipients"}},
		{"clone.html", nil, clonePage{Page: page, Question: "Q?", Detail: "D", Button: "B", Action: "/a"},
			[]string{"Q?"}},
		{"target.html", nil, targetPage{Page: page, NameProblem: bad,
			Source:      secretField{Name: "source", Label: "S", Kept: "postgres://u:xxxxx@h/d"},
			Destination: secretField{Name: "destination", Label: "D", Problem: bad}},
			[]string{"It broke. Run", "xxxxx", "unchanged", `aria-invalid="true"`}},
		{"target.html", nil, targetPage{Page: page, Source: secretField{Name: "source",
			Tested: &local.DatabaseCheck{Exists: true, Tables: 1, ServerVersion: "15.1",
				Warnings: []string{"it is old"}}}},
			[]string{"The database can be reached: 1 table, server version 15.1. It is old."}},
		{"target.html", nil, targetPage{Page: page, Known: true, Name: "a b"},
			[]string{`action="/targets/a%20b/edit"`}},
		{"rules.html", []string{"review"}, rulesPage{Page: page, Target: "a/<b>"},
			[]string{`action="/targets/a%2F%3Cb%3E/rules/propose"`, "a/&lt;b&gt;"}},
		{"rules.html", []string{"review"}, rulesPage{Page: page, Target: "shop", Saved: "Saved to `r`."},
			[]string{"Saved to <code>r</code>."}},
		{"rules.html", []string{"review"}, rulesPage{Page: page, Target: "shop", Review: rulesStates().view(2)},
			[]string{"57 of 60 columns to decide", "Page 2 of 2", "?page=1", "<code>/r</code>",
				"people.&lt;img src=x&gt;", "rows dropped", "A &lt;b&gt; name", "Undo all", "to decide", "</svg>hash",
				`<option selected>email`}},
		{"error.html", []string{"toast"}, errorPage{page, *problemOf(errors.New("internal"))},
			[]string{"Something went wrong"}},
	}, accountStates(page, admin, bad, later)...)
}

// homeStates are targets in every state.
func homeStates(rows []row, now time.Time) []homeTarget {
	proven := local.Snapshot{Name: "shop-2", Target: "shop", Type: snap.TypeSanitized, Created: now, Proven: true,
		From: local.Provenance{Origin: local.Mine}, New: &local.New{Since: "shop-0", Share: 0.125}}
	shop := homeTarget{targetView: targetView{Target: local.Target{Name: "shop", Source: "s", Production: true}},
		Known: true, Night: &nightly.Run{State: nightly.Failed, Problem: "it broke", Began: now},
		rows: append([]row{{Local: &proven}}, rows[2], rows[4])}
	shop.fill(time.UTC)
	return []homeTarget{shop, {targetView: targetView{Target: local.Target{Name: "x"}}}}
}

// rulesStates is a review with columns in every state on its second page.
func rulesStates() *ruleReview {
	open := &local.OpenColumns{}
	for i := range 56 {
		open.Columns = append(open.Columns, local.OpenColumn{Table: "log", Name: strconv.Itoa(i), Rule: "redact"})
	}
	open.Columns = append(open.Columns,
		local.OpenColumn{Table: "people", Name: "<img src=x>", Subject: "a <b> name", Rule: "email", Sure: true},
		local.OpenColumn{Table: "people", Name: "b", Subject: "a <b> name", Rule: "email", Sure: true},
		local.OpenColumn{Table: "gone", Name: "c", Subject: "a key", Rule: "keep", Sure: true},
		local.OpenColumn{Table: "gone*", Name: "d", Subject: "a measurement", Rule: "keep", Sure: true})
	v := newRuleReview(&local.ProposedRules{OpenColumns: open, Target: "shop", Path: "/r"}, nil)
	v.rules[57], v.dropped["gone"] = "hash", true
	v.rules[59] = "keep"
	return v
}

// rowStates is a page's data together with a row's.
type rowStates struct {
	snapshotsPage
	Row    row
	Change look.Change
}

// signedInAs is the service's description of a user who has unused keys.
func signedInAs(role snap.Role) api.Me {
	due := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	me := api.Me{Organization: "acme", Role: role, Credential: api.MeCredential{Kind: snap.LoginToken}, IdleKeys: 1,
		SignInDue: &due}
	if role.IsAdmin() {
		me.OrgIdleKeys = 2
	}
	return me
}

func accountStates(page look.Page, admin api.Me, bad *problem, later time.Time) []state {
	unknown := admin
	unknown.GroupsUnknown, unknown.Groups, unknown.GroupsAsOf = true, []api.MyGroup{{Name: "eng"}, {Name: "dba"}},
		&later
	unknown.GroupsWhy = "you are in more groups than fit; ask your admin"
	key := api.Me{Organization: "acme", Credential: api.MeCredential{Kind: snap.AgentKey,
		Scopes: []snap.Scope{snap.ScopePull, snap.ScopePush}}}
	code := &login.Code{UserCode: "BCDF-GHJK", URL: "https://cloud.example/device", Expires: later}
	log := []snap.AuditEntry{{Action: snap.AuditShared, Actor: "mia", Snapshot: "snap_1",
		Detail: snap.AuditDetail{Group: "eng", Expires: &later}}, {Action: "new.action"},
		{Action: snap.AuditUserChanged, Detail: snap.AuditDetail{User: "vic"}}}
	for _, action := range snap.AuditActions() {
		log = append(log, snap.AuditEntry{Action: action, ActorOrg: "acme", Credential: string(snap.PipelineKey),
			Detail: snap.AuditDetail{Name: "n", Bytes: 5, Organization: "globex", Code: snap.CodePolicy}})
	}
	return []state{
		{"account.html", []string{"account"}, accountPage{Page: page}, []string{"No cloud service"}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c", Problem: bad}, []string{"It broke."}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c",
			SignIn: signinView{Offered: true, Problem: bad, Notes: []string{"note"}}},
			[]string{"You are signed out", "Note."}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c",
			SignIn: signinView{Offered: true, Code: code}},
			[]string{"BCDF-GHJK", `href="https://cloud.example/device"`}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c", Me: unknown,
			Sessions: []api.Session{{ID: "1", Name: "a", Current: true}, {ID: "2", Name: "b"}},
			Keys:     []api.Key{{ID: "3", Name: "ci", Hint: "cak_1234…", ExpiresAt: &later}}},
			[]string{"eng, dba", "no usable groups", "You are in more groups than fit; ask your admin.", "this one",
				"never used"}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c", Me: signedInAs(snap.RoleAdmin),
			KeyList: allKeys, now: later,
			Keys: []api.Key{{ID: "3", Name: "ci", User: "mia@acme.test", CreatedAt: later.Add(-snap.IdleKey),
				From: []string{"10.0.0.0/8"}}, {ID: "4", Name: "new", CreatedAt: later}}},
			[]string{"2 keys have not been used", ">not used for 90 days</span>", "mia@acme.test",
				"only from 10.0.0.0/8", "the organization", "revoke?keys=all", `href="/account?keys=idle"`}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c", Me: signedInAs(snap.RoleMember)},
			[]string{"1 key has not been used", "Sign in again", "2027-01-02"}},
		{"account.html", nil, accountPage{Page: page, Cloud: "https://c", Me: key},
			[]string{"pull, push", "service agent"}},
		{"activity.html", []string{"activity"}, activityPage{Page: page, Entries: inWords(log),
			Actions: snap.AuditActions(),
			Next:    "/n", First: "/f"}, []string{"with the group eng until", "new.action", "vic", "a key of acme",
			"the operator"}},
		{"activity.html", nil, activityPage{Page: page}, []string{"No activity"}},
		{"activity.html", nil, activityPage{Page: page, Problem: bad}, []string{"It broke."}},
	}
}

// jobStates is a job in every state.
func jobStates(now time.Time) []jobView {
	failed := problemOf(&snap.Error{Code: snap.CodeUnreachable, Detail: "no answer", Hint: "look"})
	log := []logLine{{now, "started"}}
	return []jobView{
		{ID: 1, Kind: "pull", Title: "Pull", State: jobRunning, Phase: "download", Done: 42, Total: 100, Started: now,
			Took: 2 * time.Second, Log: log, Full: true},
		{ID: 2, Kind: "push", Title: "Push", State: jobRunning, Done: 5, Started: now},
		{ID: 3, Kind: "build", Title: "Build", State: jobDone, Result: "built", Started: now, Took: time.Hour,
			Full: true},
		{ID: 4, Kind: "sanitize", Title: "Sanitize", State: jobFailed, Problem: failed, Again: "/again", Started: now},
		{ID: 5, Kind: "load", Title: "Load", State: jobCanceled, Again: "/again", Started: now},
		{ID: 6, Kind: "pull", Title: "Pull", State: jobInterrupted, Again: "/again", Started: now},
		{ID: 8, Kind: "build", Title: "Build", State: jobInterrupted, Again: "/again", Started: now},
		{ID: 7, Kind: "pull", Title: "Pull", State: jobDone, Snapshot: "a b", Started: now},
	}
}

// The pages apply the service's own rules: what a role may do with whose snapshot.
func TestRowsFollowTheRules(t *testing.T) {
	t.Parallel()
	item := api.Snapshot{Organization: "acme", Owner: "mia@acme.test"}
	received := item
	received.Received = true
	for _, try := range []struct {
		email   string
		role    snap.Role
		kind    snap.CredentialKind
		item    api.Snapshot
		share   bool
		deletes bool
	}{
		{"mia@acme.test", snap.RoleMember, snap.UserKey, item, true, false},
		{"mia@acme.test", snap.RoleViewer, snap.UserKey, item, false, false},
		{"max@acme.test", snap.RoleMember, snap.LoginToken, item, false, false},
		{"adam@acme.test", snap.RoleAdmin, snap.LoginToken, item, true, true},
		{"", "", snap.PipelineKey, item, false, false},
		{"", "", snap.AgentKey, item, false, false},
		{"gail@globex.test", snap.RoleOwner, snap.UserKey, received, false, false},
	} {
		me := api.Me{Organization: "acme", Email: try.email, Role: try.role,
			Credential: api.MeCredential{Kind: try.kind}}
		r := row{Cloud: &try.item, Me: me}
		if r.MayShare() != try.share || r.MayDelete() != try.deletes {
			t.Errorf("%s %s: share %t, delete %t", try.email, try.role, r.MayShare(), r.MayDelete())
		}
	}
}

// Actions of the audit log are described in words, with their subjects.
func TestActivityInWords(t *testing.T) {
	t.Parallel()
	later := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, e := range map[string]snap.AuditEntry{
		"shared shop-1 with the group eng until " +
			look.Exact(later.Local()): {Action: snap.AuditShared, Snapshot: "snap_1",
			Detail: snap.AuditDetail{Name: "shop-1", Group: "eng", Expires: &later}},
		"was not allowed to share snap_1 (forbidden)": {Action: snap.AuditShareRefused,
			Snapshot: "snap_1", Detail: snap.AuditDetail{Code: snap.CodeForbidden}},
		"created a channel for shop with everyone": {Action: snap.AuditChannelCreated,
			Detail: snap.AuditDetail{Channel: 1, Target: "shop", OrgWide: true}},
		"ended a channel for shop": {Action: snap.AuditChannelDeleted,
			Detail: snap.AuditDetail{Channel: 1, Target: "shop"}},
		"changed the retention rule of shop": {Action: snap.AuditRetention,
			Detail: snap.AuditDetail{Target: "shop", KeepLast: 3}},
		"created the webhook https://hooks.example": {Action: snap.AuditWebhookCreated,
			Detail: snap.AuditDetail{URL: "https://hooks.example"}},
		"changed the user vic (disabled)": {Action: snap.AuditUserChanged,
			Detail: snap.AuditDetail{User: "vic", Disabled: true, Role: snap.RoleViewer}},
		"changed the user vic (viewer)": {Action: snap.AuditUserChanged,
			Detail: snap.AuditDetail{User: "vic", Role: snap.RoleViewer}},
		"created the key ci": {Action: snap.AuditKeyCreated,
			Detail: snap.AuditDetail{Name: "ci"}},
	} {
		line := inWords([]snap.AuditEntry{e})[0]
		if got := strings.TrimSpace(line.Did + " " + line.Thing + " " + line.How); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, d := range actionTexts() {
		if d.verb == string(d.action) || d.icon == "" {
			t.Errorf("%s has no text or no icon", d.action)
		}
	}
}

// Every action of the audit log has a text.
func TestEveryActionIsAnnounced(t *testing.T) {
	t.Parallel()
	for _, action := range snap.AuditActions() {
		if actionTextOf(action).verb == string(action) {
			t.Errorf("%s has no text", action)
		}
	}
}
