package cloud_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloudtest"
	"snap/internal/store"
)

// told returns the audit log of a client's organization, one line for each entry, without the
// entries about changed users, new keys and receipts.
func told(t *testing.T, client *api.Client, o api.AuditOptions) []string {
	t.Helper()
	o.OldestFirst = true
	var out []string
	for e, err := range client.AllAudit(context.Background(), o) {
		must(t, err)
		if e.Action == snap.AuditUserChanged || e.Action == snap.AuditKeyCreated || e.Action == snap.AuditReceipt {
			continue
		}
		d := e.Detail
		what := strings.Join(slices.DeleteFunc([]string{d.Group, d.Organization, string(d.Code)},
			func(s string) bool { return s == "" }), " ")
		if d.OrgWide {
			what = "org-wide"
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Actor, e.Action, what)))
		if e.Address != "127.0.0.1" || e.RequestID == "" || e.Credential != "cak test" {
			t.Errorf("where from and by what credential: %+v", e)
		}
	}
	return out
}

// Every change is in the log once, in order, with its actor. A request that changes nothing is not
// in the log.
func TestAuditRecordsEveryChange(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice, gary := c.As("mia@acme.test"), c.As("alice@acme.test"), c.As("gary@globex.test")
	sn := c.Push(mia, "shop", []byte("x"))
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			must(t, err)
		}
	}
	_, err := mia.Share(ctx, sn.ID)
	do(err)
	_, err = mia.Share(ctx, sn.ID) // changes nothing
	do(err, mia.Unshare(ctx, sn.ID), mia.Unshare(ctx, sn.ID))
	_, err = mia.ShareGroup(ctx, sn.ID, "dba")
	do(err)
	_, refusal := mia.ShareOrg(ctx, sn.ID, "globex", nil)
	if snap.CodeOf(refusal) != snap.CodeForbidden {
		t.Fatal(refusal)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} { // a read is refused, but was no attempt to share
		if res, _ := send(t, method, c.URL+api.MountAgent+"/snapshots/"+sn.ID+"/org-shares", "",
			c.Key("mia@acme.test")); res.StatusCode != http.StatusForbidden {
			t.Fatalf("%s of org-shares by a member: %s", method, res.Status)
		}
	}
	_, err = alice.ShareOrg(ctx, sn.ID, "globex", nil)
	do(err)
	_, err = gary.Pull(ctx, sn.ID)
	do(err, gary.Pulled(ctx, sn.ID, 1), alice.UnshareOrg(ctx, sn.ID, "globex"), alice.Delete(ctx, sn.ID))
	want := []string{
		"mia@acme.test snapshot.pushed",
		"mia@acme.test snapshot.shared org-wide",
		"mia@acme.test snapshot.unshared org-wide",
		"mia@acme.test snapshot.shared dba",
		"mia@acme.test snapshot.share_refused forbidden",
		"alice@acme.test snapshot.shared globex",
		"gary@globex.test snapshot.pull_started",
		"gary@globex.test snapshot.pulled",
		"alice@acme.test snapshot.unshared globex",
		"alice@acme.test snapshot.deleted",
	}
	if got := told(t, alice, api.AuditOptions{Snapshot: sn.ID, Limit: 3}); !slices.Equal(got, want) {
		t.Errorf("the log tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := told(t, alice, api.AuditOptions{Actor: "gary@globex.test", Action: snap.AuditPulled}); len(got) != 1 {
		t.Errorf("filtered: %v", got)
	}
	if got := told(t, c.As("gail@globex.test"), api.AuditOptions{Snapshot: sn.ID}); !slices.Equal(got, want[6:8]) {
		t.Errorf("the recipient's log tells %v: it is to tell of its own pulls and nothing else", got)
	}
	if v, err := alice.VerifyAudit(ctx, nil); err != nil || v.Lines < int64(len(want)) {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// The log names the right account when two accounts have the same e-mail, or one has changed its
// e-mail. It names the keys, and knows when the organization was closed.
func TestAuditNamesAccountsAndKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	alice := c.As("alice@acme.test")
	sn := c.Push(c.As("mia@acme.test"), "shop", []byte("x"))
	c.OrgKey("acme", snap.PipelineKey, snap.ScopePull)
	c.OrgKey("acme", snap.AgentKey, snap.ScopePull, snap.ScopePrivate)
	org, err := c.Store.OrgBySlug(ctx, "acme")
	must(t, err)
	double := store.SignIn{OrgID: org.ID, Issuer: "https://other.test", Subject: "2", Email: "mia@acme.test",
		Role: snap.RoleMember}
	second, err := c.Store.ApplySignIn(ctx, double)
	must(t, err)
	then := func() api.AudienceThen {
		t.Helper()
		clock.Advance(time.Minute)
		a, err := alice.AudienceAt(ctx, sn.ID, clock.Now())
		must(t, err)
		return a
	}
	mias := func(a api.AudienceThen) (all []api.ThenMember) {
		for _, u := range a.Users {
			if strings.HasPrefix(u.Email, "mia") {
				all = append(all, u)
			}
		}
		return all
	}
	if got := mias(then()); len(got) != 1 || got[0].Account == second {
		t.Errorf("of two accounts with one e-mail, %d: %+v", second, got)
	}
	double.Email, double.Role = "mia.two@acme.test", snap.RoleAdmin
	_, err = c.Store.ApplySignIn(ctx, double)
	must(t, err)
	a := then()
	if got := mias(a); len(got) != 2 || got[0].Email != "mia.two@acme.test" || got[0].Account != second {
		t.Errorf("after the second one's e-mail changed: %+v", got)
	}
	if len(a.Keys) != 1 || a.Keys[0].Kind != snap.AgentKey {
		t.Errorf("keys of a private snapshot: %+v", a.Keys)
	}
	_, err = alice.Share(ctx, sn.ID)
	must(t, err)
	if a := then(); len(a.Keys) != 2 {
		t.Errorf("keys of one that is shared org-wide: %+v", a.Keys)
	}
	_, err = alice.ShareWith(ctx, sn.ID, api.SharesRequest{OrgSlugs: []string{"globex"}}, true)
	must(t, err)
	must(t, c.Store.CloseAllBut(ctx, []string{"globex", "initech"}))
	closed := clock.Now()
	clock.Advance(time.Minute)
	must(t, c.Store.CloseAllBut(ctx, []string{"acme", "globex", "initech"}))
	a, err = alice.AudienceAt(ctx, sn.ID, closed)
	must(t, err)
	if through := []string{"shared with the organization globex"}; !a.Closed || len(a.Users) != 0 ||
		len(a.Keys) != 0 || !slices.Equal(a.Through, through) {
		t.Errorf("while it was closed: %+v", a)
	}
	if a := then(); a.Closed || len(a.Users) == 0 {
		t.Errorf("after it was opened: %+v", a)
	}
	_, err = c.As("max@acme.test").Snapshot(ctx, sn.ID)
	must(t, err)
	refused := c.As("max@acme.test").Delete(ctx, sn.ID)
	for action, want := range map[snap.AuditAction]int{snap.AuditOrgClosed: 1, snap.AuditOrgOpened: 1,
		snap.AuditDeleteRefused: 1} {
		page, err := alice.Audit(ctx, api.AuditOptions{Action: action})
		must(t, err)
		if len(page.Items) != want {
			t.Errorf("%d lines of %s, %v", len(page.Items), action, refused)
		}
	}
}

// "Who could see this snapshot on that day" is answered from the log, even after the snapshot was
// deleted, and the answer agrees with the past access.
func TestAuditAnswersWhoCouldSee(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	type day struct {
		at   time.Time
		want string
	}
	var days []day
	sn := c.Push(mia, "shop", []byte("x"))
	pass := func() {
		var acme []string
		for _, name := range strings.Fields(audience(t, c, sn.ID)) {
			if !slices.Contains([]string{"gail", "gary"}, name) {
				acme = append(acme, name+"@acme.test")
			}
		}
		slices.Sort(acme)
		days = append(days, day{clock.Now(), strings.Join(acme, " ")})
		clock.Advance(24 * time.Hour)
	}
	pass()
	_, err := mia.ShareGroup(ctx, sn.ID, "dba")
	must(t, err)
	pass()
	_, err = mia.Share(ctx, sn.ID)
	must(t, err)
	pass()
	must(t, disable(c, "vic@acme.test"))
	days = append(days, day{clock.Now(), "adam@acme.test alice@acme.test gus@acme.test max@acme.test mia@acme.test"})
	clock.Advance(24 * time.Hour)
	must(t, alice.Delete(ctx, sn.ID))
	days = append(days, day{clock.Now(), ""})
	clock.Advance(24 * time.Hour)
	for _, d := range days {
		then, err := alice.AudienceAt(ctx, sn.ID, d.at)
		must(t, err)
		var emails []string
		for _, u := range then.Users {
			emails = append(emails, u.Email)
		}
		if got := strings.Join(emails, " "); got != d.want {
			t.Errorf("on %s: %s, want %s (%+v)", d.at.Format(time.DateOnly), got, d.want, then)
		}
	}
	var paged []string
	for cursor := "0"; cursor != ""; {
		var page api.AudienceThen
		_, text := get(t, fmt.Sprintf("%s%s/audit/access?limit=2&cursor=%s&snapshot=%s&at=%s", c.URL, api.MountAgent,
			cursor, sn.ID, days[2].at.Format(time.RFC3339)), "Authorization", "Bearer "+c.Key("alice@acme.test"))
		must(t, json.Unmarshal(text, &page))
		if len(page.Users) > 2 {
			t.Errorf("a page of %d users", len(page.Users))
		}
		for _, u := range page.Users {
			paged = append(paged, u.Email)
		}
		cursor = page.NextCursor
	}
	if got := strings.Join(paged, " "); got != days[2].want {
		t.Errorf("the pages have %s, want %s", got, days[2].want)
	}
	for _, id := range []string{snap.NewSnapshotID(), "x"} {
		if _, err := alice.AudienceAt(ctx, id, clock.Now()); snap.CodeOf(err) != snap.CodeNotFound {
			t.Errorf("a snapshot that never was: %v", err)
		}
	}
	if _, err := c.As("gail@globex.test").AudienceAt(ctx, sn.ID, clock.Now()); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("another organization's snapshot: %v", err)
	}
}
