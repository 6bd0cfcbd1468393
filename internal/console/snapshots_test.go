package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/certificate"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// described gives a snapshot a card with these tables.
func described(t *testing.T, c *api.Client, id string, tables ...api.CardTable) {
	t.Helper()
	must(t, c.PutCard(t.Context(), id, api.PutCardRequest{Card: &api.Card{ServerVersion: "17.2", Encoding: "UTF8",
		From: "shop-original", Masking: &api.Masking{Rules: strings.Repeat("a", 64), Masked: 1, Kept: 1},
		Tables: tables}}))
}

var people = api.CardTable{Schema: "public", Name: "people", Rows: 1204, Bytes: 40_000, Columns: []api.CardColumn{
	{Name: "id", Type: "integer", NotNull: true, Key: "primary", Mask: "keep"},
	{Name: "email", Type: "text", Mask: "email"}}}

// Everybody who is signed in lists the snapshots that they may see, with the same filters as the
// API.
func TestEverybodyListsSnapshots(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	shop := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("twelve bytes"))
	c.Push(alice, "secret", []byte("x"))
	_, err := mia.ShareGroup(ctx, shop.ID, "eng")
	must(t, err)
	fleet := c.PushAs(c.As("gail@globex.test"), "fleet", snap.TypeSanitized, []byte("f"))
	_, err = c.As("gail@globex.test").ShareOrg(ctx, fleet.ID, "acme", nil)
	must(t, err)
	v := visit(t, c, "gus@acme.test")
	for path, want := range map[string][]string{
		"":        {"/snapshots/" + shop.ID, "/snapshots/" + fleet.ID, "mia@acme.test", "sanitized", "12 B"},
		"?q=shop": {shop.ID}, "?show=received": {fleet.ID}, "?target=shop&type=sanitized": {shop.ID},
		"?q=nothing-such": {"Nothing matches", "“<bdi>nothing-such</bdi>”"},
		"?show=mine":      {"Nothing matches"},
		"?type=odd":       {`role="alert"`}, "?show=odd": {`role="alert"`}, "?cursor=odd": {`role="alert"`},
	} {
		p := v.get("/snapshots" + path)
		if odd := strings.Contains(path, "odd"); p.StatusCode >= 500 || (p.StatusCode >= 400) != odd {
			t.Errorf("%q answered %d", path, p.StatusCode)
		}
		p.must(t, p.StatusCode, want...)
		for _, id := range []string{shop.ID, fleet.ID} {
			if listed := strings.Contains(p.text, "/snapshots/"+id); listed !=
				strings.Contains(strings.Join(want, " "), id) {
				t.Errorf("%q lists %s: %v", path, id, listed)
			}
		}
		if strings.Contains(p.text, "secret") || strings.Contains(p.text, `href="/console"`) {
			t.Errorf("%q shows what a member may not see", path)
		}
	}
	visit(t, c, "adam@acme.test").get("/snapshots").must(t, 200, "secret", `href="/console"`, "<bdi>eng</bdi>")
	visit(t, c, "vic@acme.test").get("/snapshots").must(t, 200, fleet.ID)
	for _, path := range []string{"/snapshots", "/snapshots?q=x", "/snapshots/" + shop.ID, "/snapshots/snap_absent"} {
		p := visit(t, c, "").get(path)
		p.must(t, http.StatusSeeOther)
		if want := "/auth/signin?next=" + url.QueryEscape(path); p.Header.Get("Location") != want {
			t.Errorf("%s leads to %s, want %s", path, p.Header.Get("Location"), want)
		}
	}
}

// The plot of sizes has only snapshots of one organization, although another one has a target of the
// same name.
func TestSizesAreOfOneOrganization(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, gary := c.As("alice@acme.test"), c.As("gary@globex.test")
	var own, received api.Snapshot
	for _, content := range []string{"first", "second"} {
		own = c.PushAs(gary, "shop", snap.TypeSanitized, []byte(content))
		received = c.PushAs(alice, "shop", snap.TypeSanitized, []byte(content))
		_, err := alice.ShareOrg(t.Context(), received.ID, "globex", nil)
		must(t, err)
	}
	for _, sn := range []api.Snapshot{own, received} {
		visit(t, c, "gary@globex.test").get("/snapshots/"+sn.ID).must(t, 200, "2 snapshots of shop")
	}
}

// The page of a snapshot says why the person sees it. It has the snapshot's card, except for people
// of another organization if the share does not include the tables.
func TestSnapshotsPage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	old := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("old"))
	described(t, mia, old.ID)
	shop := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("twelve bytes"))
	described(t, mia, shop.ID, people)
	_, err := alice.Describe(ctx, shop.ID, api.DescribeRequest{Description: "Before July", Labels: []string{"release"}})
	must(t, err)
	_, err = mia.ShareGroup(ctx, shop.ID, "eng")
	must(t, err)
	_, err = alice.ShareOrg(ctx, shop.ID, "globex", nil)
	must(t, err)
	must(t, c.As("gus@acme.test").Pulled(ctx, shop.ID, 12))
	path := "/snapshots/" + shop.ID
	all := []string{"public.people", "1,204", "SQLite 17.2", "shop-original", "1 column masked, 1 kept",
		"integer, not null, primary key", "<b>email</b>", "1 masked", shop.SHA256, "12 B",
		"snapcli pull shop --cloud --snapshot-id " + shop.ID, c.URL + path, "Before July", "release", "Size over time",
		"What changed"}
	for email, want := range map[string][]string{
		"gus@acme.test": {"You can see it <bdi>through the group eng</bdi>", "can change this list"},
		"mia@acme.test": {"because you pushed it", "Who can see it", "gus@acme.test", "once",
			"General access: Everyone in Acme Inc</h2><p class=\"hint\">6 people."},
		"adam@acme.test":   {"as an owner or admin of acme", "everyone in globex", "Revoke", "Pulled by"},
		"gail@globex.test": {"because acme shared it with your organization", "does not show the tables"},
	} {
		switch email {
		case "gail@globex.test":
		case "gus@acme.test": // does not see the previous snapshot
			want = append(want, all[:len(all)-2]...)
		default:
			want = append(want, all...)
		}
		p := visit(t, c, email).get(path)
		p.must(t, 200, want...)
		if strings.Contains(p.text, "<form method=\"post\"") && (email[0] == 'g') {
			t.Errorf("%s is offered a form", email)
		}
		if email == "gail@globex.test" && (strings.Contains(p.text, "people") || strings.Contains(p.text, "alice@")) {
			t.Error("another organization sees the card, or who shared it")
		}
	}
	v := visit(t, c, "gus@acme.test")
	v.get(path+"?q=mail").must(t, 200, "1 table with 1 column match", "<details open>")
	v.get(path+"?q=zzz").must(t, 200, "No table or column matches")
	v.get(path+"?page=-7").must(t, 200, "public.people")
	v.get(path+"?page=99").must(t, 200, "There are no tables on this page.")
}

// A snapshot that a person is not allowed to see looks like one that does not exist, both when its
// page is opened and when a form is sent to it.
func TestHiddenSnapshotsAreAbsent(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	hidden := c.Push(c.As("mia@acme.test"), "shop", []byte("x"))
	own := c.Push(c.As("max@acme.test"), "own", []byte("y"))
	v := visit(t, c, "max@acme.test")
	csrf := v.token("/snapshots/" + own.ID)
	strip := func(p page) string {
		for _, name := range []string{"X-Request-Id", "Date"} {
			p.Header.Del(name)
		}
		return p.text + url.Values(p.Header).Encode()
	}
	absent := "/snapshots/snap_7h2k9m4p6r8t0v2w"
	want := strip(v.get(absent))
	wantForm := strip(v.post(absent, csrf, "shared", "true"))
	for _, path := range []string{"/snapshots/" + hidden.ID, "/snapshots/" + hidden.ID + "?q=x&done=shared"} {
		p := v.get(path)
		p.must(t, http.StatusNotFound, "or you have no access to it", "Request access")
		if got := strip(p); got != want {
			t.Errorf("%s differs:\n%s\n%s", path, got, want)
		}
	}
	want = strip(v.get("/snapshots/odd"))
	for _, path := range []string{"/snapshots/x", "/snapshots/" + strings.Repeat("y", 300),
		"/snapshots/%3Cscript%3E", "/snapshots/%00"} {
		p := v.get(path)
		p.must(t, http.StatusNotFound, "or you have no access to it")
		if got := strip(p); got != want {
			t.Errorf("%s differs:\n%s\n%s", path, got, want)
		}
	}
	p := v.post("/snapshots/"+hidden.ID, csrf, "shared", "true")
	if p.must(t, http.StatusNotFound); strip(p) != wantForm {
		t.Errorf("a form for a hidden snapshot differs:\n%s\n%s", p.text, wantForm)
	}
	// The request for access, its announcement and the page afterwards are the same too.
	number := regexp.MustCompile(`name="request" value="\d+"`)
	ago := regexp.MustCompile(`(You asked for access) (now|\d+ \w+ ago)\.`) // time passes between two requests
	location := func(p page, id string) string {
		return ago.ReplaceAllString(number.ReplaceAllString(strings.ReplaceAll(strip(p), id, "ID"), ""), "$1.")
	}
	var seen [2][]string
	for i, id := range []string{hidden.ID, strings.TrimPrefix(absent, "/snapshots/")} {
		asked := v.post("/snapshots/"+id, csrf, "do", "request", "reason", "bug 412")
		asked.must(t, http.StatusSeeOther)
		seen[i] = []string{location(asked, id), location(v.get(asked.Header.Get("Location")), id),
			location(v.get("/snapshots/"+id), id), location(v.submit("/snapshots/"+id, "do", "withdraw", "request",
				regexp.MustCompile(`name="request" ` +
					`value="(\d+)"`).FindStringSubmatch(v.get("/snapshots/" + id).text)[1]), id)}
	}
	if !slices.Equal(seen[0], seen[1]) {
		t.Errorf("a request for a hidden snapshot differs:\n%q\n%q", seen[0], seen[1])
	}
}

// The owner sees a request on the list, on the page of the requests and on the snapshot's page, and
// answers it on either page.
func TestRequestsForAccessAreAnswered(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
		config.Organizations[0].Policy.MaxCrossOrgExpiry = "72h"
	}})
	shop := c.Push(c.As("mia@acme.test"), "shop", []byte("x"))
	path := "/snapshots/" + shop.ID
	ask := func(email, reason string) {
		t.Helper()
		visit(t, c, email).submit(path, "do", "request", "reason", reason).must(t, 404, "Your request was sent",
			"You asked for access")
	}
	ask("gus@acme.test", "<script>bug 412</script>")
	ask("ian@initech.test", "")
	mia := visit(t, c, "mia@acme.test")
	mia.get("/snapshots").must(t, 200, "2 requests for access")
	mia.get("/requests").must(t, 200, "gus@acme.test", "&lt;script&gt;bug 412", "with the group eng",
		"Only owners and admins can share with initech")
	mia.get(path).must(t, 200, "requests access", "with everyone in Acme Inc")
	first := regexp.MustCompile(`name="request" value="(\d+)"`).FindStringSubmatch(mia.get("/requests").text)[1]
	grant := []string{"do", "grant", "request", first, "snapshot", shop.ID, "with", "group:eng"}
	gus := visit(t, c, "gus@acme.test")
	for _, page := range []string{"/requests", path} {
		granted := mia.submit(page, grant...)
		granted.must(t, 200, "Shared with the group eng.", "can now see the original, unmasked data",
			"ian@initech.test")
		gus.get(path).must(t, 200, "through the group eng")
		mia.submit(page, granted.undo()...).must(t, 200, "No longer shared with the group eng.")
		gus.get(path).must(t, 404)
	}
	mia.submit("/requests", grant...).must(t, 200)
	ask("gail@globex.test", "")
	alice := visit(t, c, "alice@acme.test")
	alice.get("/requests").must(t, 200, `value="organization:globex:1d">with everyone in globex for 1 day<`)
	grant = []string{"do", "grant", "snapshot", shop.ID, "with", "organization:globex:1d"}
	granted := alice.submit("/requests", grant...)
	granted.must(t, 200, "Shared with everyone in globex.")
	alice.submit("/requests", granted.undo()...).must(t, 200, "No longer shared with everyone in globex.")
	alice.submit("/requests", grant...).must(t, 200)
	second := regexp.MustCompile(`name="request" value="(\d+)"`).FindStringSubmatch(alice.get(path).text)[1]
	alice.submit(path, "do", "refuse", "request", second).must(t, 200, "The person is not informed")
	alice.get("/requests").must(t, 200, "Nobody is waiting")
	ian := visit(t, c, "ian@initech.test")
	ian.get(path).must(t, 404, "You asked for access")
	ian.get("/requests").must(t, 200, shop.ID)
	ian.post("/requests", ian.token("/requests"), "do", "refuse", "request", second).must(t, 404, `role="alert"`)
}

// A change of shares is announced with the number of people, and Undo restores the former end to
// the millisecond. Only the browser that made the change is offered Undo, once.
func TestUndoRestoresTheFormerEnd(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	shop := c.PushAs(c.As("mia@acme.test"), "shop", snap.TypeSanitized, []byte("x"))
	path := "/snapshots/" + shop.ID
	yes := true
	end := time.Now().Add(1234567 * time.Second).UTC().Truncate(time.Millisecond)
	_, err := alice.ShareWith(ctx, shop.ID, api.SharesRequest{OrgWide: true, GroupIDs: []string{"eng"},
		OrgSlugs: []string{"globex"}, ExpiresAt: &end, WithSchema: &yes}, false)
	must(t, err)
	v := visit(t, c, "adam@acme.test")
	for _, with := range []struct{ make, end []string }{
		{[]string{"shared", "true"}, []string{"shared", "false"}},
		{[]string{"grant", "eng"}, []string{"revoke", "eng"}},
		{[]string{"slug", "globex"}, []string{"do", "revoke", "slug", "globex"}},
	} {
		for _, change := range [][]string{with.end, append(with.make, "expires", "7d"), with.make} {
			p := v.submit(path, change...)
			p.must(t, 200, `class="notice flash"`, "Undo")
			if again := v.get(path); strings.Contains(again.text, "flash") {
				t.Errorf("%v is announced twice", change)
			}
			v.submit(path, p.undo()...).must(t, 200, "flash")
		}
	}
	sn, err := alice.Snapshot(ctx, shop.ID)
	must(t, err)
	groups, err := alice.GroupShares(ctx, shop.ID)
	must(t, err)
	orgs, err := alice.OrgShares(ctx, shop.ID)
	must(t, err)
	if !sn.ExpiresAt.Equal(end) || !groups[0].ExpiresAt.Equal(end) || !orgs[0].ExpiresAt.Equal(end) ||
		!orgs[0].WithSchema {
		t.Errorf("restored %v, %+v, %+v; want %v", sn.ExpiresAt, groups, orgs, end)
	}
	p := v.submit(path, "shared", "false")
	p.must(t, 200, "No longer shared with everyone in Acme Inc. 2 people can no longer see it.")
	req, err := http.NewRequest(http.MethodGet, c.URL+path, nil)
	must(t, err)
	req.AddCookie(&http.Cookie{Name: "snap_flash", Value: "another." + base64.RawURLEncoding.EncodeToString(
		[]byte(`{"text":"Share it?","undo":[{"Name":"shared","Value":"true"}]}`))})
	if forged := v.do(req, nil); strings.Contains(forged.text, "Share it?") {
		t.Error("a cookie without the session's token is announced")
	}
}

// Owners find people behind a share, ask about one person, and write the description.
func TestShareBoxShowsPeople(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	shop := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("x"))
	path := "/snapshots/" + shop.ID
	_, err := mia.ShareWith(t.Context(), shop.ID, api.SharesRequest{GroupIDs: []string{"eng"}}, false)
	must(t, err)
	v := visit(t, c, "mia@acme.test")
	v.get(path).must(t, 200, ">2 people<", `<li><bdi>gus@acme.test</bdi></li>`, `<option value="max@acme.test">`,
		"Copy link", "Done")
	v.get(path+"?user=max@acme.test").must(t, 200, "cannot see it", "not shared org-wide")
	v.get(path+"?user=GUS@acme.test").must(t, 200, "can see it", "Member of the group eng")
	v.get(path+"?user=nobody@acme.test").must(t, 200, "has the e-mail")
	v.submit(path, "do", "describe", "description", "Before July", "labels", "release, demo, ").
		must(t, 200, "were saved", "Before July", `value="release, demo"`)
	v.submit(path, "do", "describe", "description", "x", "labels", strings.Repeat("y", 41)).
		must(t, 400, `role="alert"`, `value="x"`)
	gus := visit(t, c, "gus@acme.test")
	if p := gus.get(path + "?user=max@acme.test"); strings.Contains(p.text, "max@acme.test") {
		t.Error("a reader may ask about people")
	}
}

// The chosen snapshots are shared, unshared and deleted together. The person must confirm an
// unshare and a deletion.
func TestManySnapshotsAreChanged(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(o *cloud.Config) {
		o.Organizations[0].Users[5].Groups = []string{"DBA"} // next to dba
	}})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	one := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("x"))
	two := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("y"))
	hidden := c.Push(alice, "secret", []byte("z"))
	v := visit(t, c, "mia@acme.test")
	send := func(v *visitor, fields url.Values) page {
		t.Helper()
		fields.Set("csrf_token", v.token("/snapshots"))
		req, err := http.NewRequest(http.MethodPost, c.URL+"/snapshots", strings.NewReader(fields.Encode()))
		if err == nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		p := v.do(req, err)
		if p.StatusCode == http.StatusSeeOther {
			return v.get(p.Header.Get("Location"))
		}
		return p
	}
	ids := []string{one.ID, two.ID, hidden.ID}
	send(v, url.Values{"do": {"everyone"}, "id": ids}).must(t, 200,
		"2 snapshots shared with everyone in Acme Inc, 6 people. 1 other was not.",
		"or you have no access")
	send(v, url.Values{"do": {"group"}, "group": {"Eng"}, "id": ids[:2]}).must(t, 200,
		"2 snapshots shared with the group eng, 2 people.")
	send(v, url.Values{"do": {"group"}, "group": {"Dba"}, "id": ids[:2]}).must(t, 400, "2 groups have the name",
		"DBA or dba")
	if _, err := alice.ShareOrg(t.Context(), one.ID, "globex", nil); err != nil {
		t.Fatal(err)
	}
	v.get("/snapshots?show=expiring").must(t, 200, "Nothing matches")
	v.get("/snapshots?owner=mia@acme.test&since=2026-01-01").must(t, 200, one.ID)
	v.get("/snapshots?until=2020-01-01").must(t, 200, "Nothing matches")
	v.get("/snapshots?since=x").must(t, 400, `role="alert"`)
	admin := visit(t, c, "adam@acme.test")
	send(v, url.Values{"do": {"unshare"}, "id": ids[:1]}).must(t, 428, "None of the chosen snapshots has shares")
	send(admin, url.Values{"do": {"unshare"}, "id": ids}).must(t, 428,
		one.Name+"</bdi>: <bdi>everyone in Acme Inc</bdi>, <bdi>the group eng</bdi>, <bdi>globex</bdi></li>",
		two.Name+"</bdi>: <bdi>everyone in Acme Inc</bdi>, <bdi>the group eng</bdi></li></ul>")
	v.get("/snapshots?show=shared").must(t, 200, one.ID, two.ID)
	send(admin, url.Values{"do": {"unshare"}, "id": ids[:2], "confirmed": {"yes"}}).must(t, 200,
		"2 snapshots unshared. Shares with everyone in Acme Inc, 1 group and 1 organization ended.")
	send(v, url.Values{"do": {"unshare"}}).must(t, 400, `role="alert"`)
	send(admin, url.Values{"do": {"delete"}, "id": ids}).must(t, 428, "Delete 3 snapshots?")
	send(admin, url.Values{"do": {"delete"}, "id": ids, "confirmed": {"yes"}}).must(t, 200, "3 snapshots deleted.")
}

// Sharing several snapshots keeps the end of existing shares, warns about original data and offers
// Undo, which ends only the new shares.
func TestSharesOfManySnapshotsAreUndone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	one, raw := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("x")), c.Push(mia, "shop", []byte("y"))
	hidden := c.Push(c.As("alice@acme.test"), "secret", []byte("z"))
	end := time.Now().Add(100 * time.Hour).UTC().Truncate(time.Second)
	_, err := mia.ShareWith(ctx, one.ID,
		api.SharesRequest{OrgWide: true, GroupIDs: []string{"eng"}, ExpiresAt: &end}, false)
	must(t, err)
	v := visit(t, c, "mia@acme.test")
	for _, with := range [][]string{{"do", "everyone"}, {"do", "group", "group", "eng"}} {
		p := v.submit("/snapshots", append(with, "id", one.ID)...)
		p.must(t, 200, "0 snapshots shared. 1 snapshot was already shared.")
		if undo := p.undo(); undo != nil {
			t.Errorf("Undo of nothing is %q", undo)
		}
		p = v.submit("/snapshots", append(with, "id", one.ID, "id", raw.ID, "id", hidden.ID)...)
		p.must(t, 200, "1 snapshot shared with ", "1 other was not. 1 snapshot was already shared.",
			"can now see the original, unmasked data")
		v.submit("/snapshots", p.undo()...).must(t, 200, "1 snapshot unshared.")
	}
	kept, err := mia.Snapshot(ctx, one.ID)
	must(t, err)
	groups, err := mia.GroupShares(ctx, one.ID)
	must(t, err)
	if !kept.ExpiresAt.Equal(end) || !groups[0].ExpiresAt.Equal(end) {
		t.Errorf("the shares end at %v and %+v, want %v", kept.ExpiresAt, groups, end)
	}
	if sn, err := mia.Snapshot(ctx, raw.ID); err != nil || sn.Shared || sn.Groups > 0 {
		t.Errorf("after Undo the original is shared: %+v, %v", sn, err)
	}
}

// The forms of the share box make, change and end every kind of share.
func TestShareBox(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	shop := c.PushAs(c.As("mia@acme.test"), "shop", snap.TypeSanitized, []byte("x"))
	path := "/snapshots/" + shop.ID
	v := visit(t, c, "adam@acme.test")
	send := func(fields ...string) page {
		t.Helper()
		return v.submit(path, fields...)
	}
	send("shared", "true", "expires", "7d").
		must(t, 200, "Shared with everyone in Acme Inc. 3 more people can see it.", "ends in")
	send("shared", "false").must(t, 200, "No longer shared with everyone", "Private: only its owner")
	send("grant", "ENG").must(t, 200,
		"Shared with the group eng. 1 more person can see it.", "no end")
	send("grant", "eng").must(t, 200, "Nothing changed")
	send("grant", "eng", "expires", "30d").must(t, 200, "The end of the share", "ends in")
	shares, err := alice.GroupShares(ctx, shop.ID)
	if err != nil || len(shares) != 1 || shares[0].ExpiresAt == nil {
		t.Errorf("group shares %+v, %v", shares, err)
	}
	send("revoke", "eng").must(t, 200, `name="grant" value="eng"`)
	send("grant", "no-such").must(t, 404, `role="alert"`)
	day := time.Now().UTC().AddDate(0, 0, 9).Format(time.DateOnly)
	send("slug", " Globex ", "expires", "date", "date", day, "schema", "yes").
		must(t, 200, "Shared with everyone in globex.", "Globex Corporation", "with its tables",
			`<option value="globex">`)
	orgs, err := alice.OrgShares(ctx, shop.ID)
	if err != nil || len(orgs) != 1 || !orgs[0].WithSchema ||
		orgs[0].ExpiresAt.UTC().Format(time.DateTime) != day+" 23:59:59" {
		t.Errorf("shares with organizations %+v, %v", orgs, err)
	}
	send("slug", "globxe", "expires", "7d").must(t, 404,
		"Did you mean globex?", `value="globxe"`)
	for _, bad := range [][]string{{"slug", "", "expires", "7d"}, {"do", "explode"},
		{"do", "revoke"}, {"grant", ""}, {},
		{"shared", "true", "expires", "soon"},
		{"shared", "true", "expires", "date", "date", "x"}} {
		if p := send(bad...); p.StatusCode < 400 || p.StatusCode >= 500 || !strings.Contains(p.text, `role="alert"`) {
			t.Errorf("%v answered %d", bad, p.StatusCode)
		}
	}
	send("do", "revoke", "slug", "globex").must(t, 200,
		"No longer shared with everyone in globex.")
	if _, err := c.As("gail@globex.test").Snapshot(ctx, shop.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("globex still sees it: %v", err)
	}
	// A form without the browser's token changes nothing, and neither does a form of somebody who
	// may only see the snapshot.
	v.post(path, "", "shared", "true").must(t, http.StatusForbidden)
	_, err = alice.ShareGroup(ctx, shop.ID, "eng")
	must(t, err)
	own := c.Push(c.As("gus@acme.test"), "own", []byte("y"))
	gus := visit(t, c, "gus@acme.test")
	gus.post(path, gus.token("/snapshots/"+own.ID), "shared", "true").must(t, http.StatusForbidden,
		`role="alert"`)
	if sn, err := alice.Snapshot(ctx, shop.ID); err != nil || sn.Shared {
		t.Errorf("it is shared: %v, %v", sn.Shared, err)
	}
}

// With JavaScript, the share box works without reloading the page: the response has the box, the
// state and the announcement, and no cookie announces it again.
func TestShareBoxActsAtOnce(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	shop := c.Push(c.As("mia@acme.test"), "shop", []byte("x"))
	path := "/snapshots/" + shop.ID
	v := visit(t, c, "adam@acme.test")
	csrf := v.token(path)
	send := func(fields ...string) page {
		t.Helper()
		form := url.Values{"csrf_token": {csrf}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		req, err := http.NewRequest(http.MethodPost, c.URL+path, strings.NewReader(form.Encode()))
		must(t, err)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Fragment", "1")
		p := v.do(req, nil)
		whole := p.StatusCode != http.StatusForbidden && strings.Contains(p.text, "<html")
		kept := strings.Contains(strings.Join(p.Header["Set-Cookie"], ""), "snap_flash")
		if whole || kept || p.Header.Get("Location") != "" {
			t.Errorf("%v got a whole page, a redirect or a cookie", fields)
		}
		return p
	}
	send("grant", "eng").must(t, 200, `<section class="card box" id="sharing"`, `name="revoke" value="eng"`,
		`id="state"`, `id="change"`, ">Undo<", `name="csrf_token"`, "original, unmasked data")
	send("grant", "eng").must(t, 200, "Nothing changed")
	send("revoke", "eng").must(t, 200, "No longer shared with the group eng", `name="grant" value="eng"`)
	send("slug", "globxe", "expires", "7d").must(t, 404, `id="slug-problem"`, `value="globxe"`)
	send("slug", "globex", "expires", "7d").must(t, 200, "globex")
	send("do", "revoke", "slug", "globex").must(t, 200, "No longer shared with everyone in globex")
	send("grant", "no-such").must(t, 404, `role="alert"`, `id="sharing"`)
	csrf = "x"
	send("grant", "eng").must(t, http.StatusForbidden)
	req, err := http.NewRequest(http.MethodGet, c.URL+path+"?group=db", nil)
	must(t, err)
	req.Header.Set("Fragment", "1")
	v.do(req, nil).must(t, 200, `id="gs-dba"`)
	if p := v.get(path + "?group=db"); strings.Contains(p.text, `id="gs-eng"`) {
		t.Error("the search finds every group")
	}
}

// Names are shown harmlessly, however they are spelled.
func TestHostileNamesOfSnapshots(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	long := strings.Repeat("W", 100)
	for i, target := range []string{"עברית", long, "it's; rm -rf $HOME"} {
		sn := c.PushAs(mia, target, snap.TypeSanitized, []byte{byte(i)})
		described(t, mia, sn.ID, api.CardTable{Name: `<b onclick="x">`, Columns: []api.CardColumn{{Name: `"><script>`,
			Type: "<i>", Mask: "<u>", Refers: "<s>"}}})
		_, err := mia.Describe(t.Context(), sn.ID, api.DescribeRequest{Description: "<script>",
			Labels: []string{"<script>"}})
		must(t, err)
		v := visit(t, c, "mia@acme.test")
		for _, path := range []string{"/snapshots", "/snapshots/" + sn.ID,
			"/snapshots?target=" + url.QueryEscape(target),
			"/snapshots?q=%22%3E%3Cscript%3E", "/snapshots/" + sn.ID + "?q=%22%3E%3Cscript%3E"} {
			p := v.get(path)
			p.must(t, 200)
			for _, bad := range []string{"<script>", "<img", "<b onclick", "<i>", "<u>", "<s>"} {
				if strings.Contains(p.text, bad) {
					t.Errorf("%s has %s", path, bad)
				}
			}
		}
	}
	v := visit(t, c, "mia@acme.test")
	v.get("/snapshots?q=rm").must(t, 200, "it&#39;s; rm -rf $HOME")
	link := regexp.MustCompile(`/snapshots/snap_\w+`).FindString(v.get("/snapshots?q=rm").text)
	v.get(link).must(t, 200, `snapcli pull &#39;it&#39;\&#39;&#39;s; rm -rf $HOME&#39; --cloud`)
}

// The policy decides what the share box offers, and asks before original data is shared.
func TestShareBoxFollowsThePolicy(t *testing.T) {
	t.Parallel()
	start := func(what snap.UnsanitizedShares) (*visitor, string) {
		c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
			config.Organizations[0].Policy.UnsanitizedShares = what
		}})
		return visit(t, c, "mia@acme.test"), "/snapshots/" + c.Push(c.As("mia@acme.test"), "shop", []byte("x")).ID
	}
	v, path := start("")
	v.get(path).must(t, 200, "original, unmasked data")
	v.submit(path, "grant", "eng").must(t, 200,
		"can now see the original, unmasked data")

	v, path = start(snap.UnsanitizedAsk)
	v.submit(path, "shared", "true", "expires", "7d").must(t, http.StatusPreconditionRequired,
		"Share original data?", `name="confirmed" value="yes"`, `name="expires" value="7d"`)
	v.submit(path, "shared", "true", "expires", "7d", "confirmed", "yes").must(t, 200,
		"can now see the original, unmasked data", "ends in")

	v, path = start(snap.UnsanitizedRefuse)
	p := v.get(path)
	p.must(t, 200, "refuses to share snapshots that are not sanitized")
	if !strings.Contains(p.text, `value="true" disabled`) || strings.Contains(p.text, `name="slug"`) {
		t.Error("a share is offered that the policy refuses")
	}

	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
		config.Organizations[0].Policy.ShareRequires = snap.RequireCertificate
	}})
	mia := c.As("mia@acme.test")
	for _, typ := range []snap.Type{snap.TypeSnapshot, snap.TypeSanitized} {
		p := visit(t, c, "mia@acme.test").get("/snapshots/" + c.PushAs(mia, "shop", typ, []byte(typ)).ID)
		p.must(t, 200, "lets only snapshots with a valid certificate be shared")
		if strings.Count(p.text, " disabled") != 3 || strings.Contains(p.text, `name="slug"`) {
			t.Errorf("a share of a %s without a certificate is offered", typ)
		}
	}
}

// The pages stay below 60 KB with their stylesheet, with full lists and a large card.
func TestSnapshotsPagesStaySmall(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	var last api.Snapshot
	for i := range 30 {
		last = c.PushAs(mia, "a target with a long name", snap.TypeSanitized, bytes.Repeat([]byte{1}, i+1))
	}
	var tables []api.CardTable
	for i := range 60 {
		one := people
		one.Name += strconv.Itoa(i)
		one.Columns = nil
		for j := range 10 {
			one.Columns = append(one.Columns, people.Columns[1])
			one.Columns[j].Name += strconv.Itoa(j)
		}
		tables = append(tables, one)
	}
	described(t, mia, last.ID, tables...)
	v := visit(t, c, "adam@acme.test")
	style := 0 // bytes
	for _, sheet := range regexp.MustCompile(`href="([^"]+\.css)"`).FindAllStringSubmatch(v.get("/snapshots").text,
		-1) {
		style += len(v.get(sheet[1]).text)
	}
	for _, path := range []string{"/snapshots", "/snapshots/" + last.ID} {
		if size := len(v.get(path).text) + style; size > 60_000 {
			t.Errorf("%s is %d bytes with its stylesheet", path, size)
		}
	}
	v.get("/snapshots/"+last.ID).must(t, 200, "Page 1 of 2", "60 tables")
	v.get("/snapshots/"+last.ID+"?page=2").must(t, 200, "Previous")
}

// The list counts exactly what the caller may see, and has links to the next and the previous page.
func TestPagesOfSnapshots(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia := c.As("mia@acme.test")
	c.Push(c.As("alice@acme.test"), "hidden", []byte("x"))
	for i := range 3 {
		c.PushAs(mia, "shop", snap.TypeSanitized, []byte{byte(i)})
	}
	v := visit(t, c, "mia@acme.test")
	v.get("/snapshots").must(t, 200, ">3 snapshots<")
	for i := range 60 {
		c.PushAs(mia, "shop", snap.TypeSanitized, []byte{1, byte(i)})
	}
	link := func(p page, text string) string {
		t.Helper()
		found := regexp.MustCompile(`href="([^"]+)">(?:<svg.{0,400}?</svg>)?` + text).FindStringSubmatch(p.text)
		if found == nil {
			return ""
		}
		return html.UnescapeString(found[1])
	}
	seen := map[string]bool{}
	at, path, pages := 1, "/snapshots?target=shop", 0
	var p page
	var last string
	for ; path != ""; path = link(p, "Next") {
		p, last = v.get(path), path
		ids := regexp.MustCompile(`name="id" value="(snap_\w+)"`).FindAllStringSubmatch(p.text, -1)
		p.must(t, 200, ">"+strconv.Itoa(at)+" to "+strconv.Itoa(at+len(ids)-1)+" of 63<")
		for _, id := range ids {
			seen[id[1]] = true
		}
		at += len(ids)
		pages++
	}
	if len(seen) != 63 || pages < 2 {
		t.Errorf("%d pages list %d snapshots, want 63", pages, len(seen))
	}
	for range pages - 1 {
		p = v.get(link(p, "Previous"))
	}
	p.must(t, 200, ">1 to ")
	if link(p, "Previous") != "" || link(p, "First") != "" {
		t.Error("the first page leads back")
	}
	var ids []string
	for _, id := range regexp.MustCompile(`name="id" value="(snap_\w+)"`).FindAllStringSubmatch(v.get(last).text, -1) {
		ids = append(ids, id[1])
	}
	if _, err := c.As("alice@acme.test").Bulk(t.Context(), api.BulkRequest{IDs: ids, Delete: true}, false); err != nil {
		t.Fatal(err)
	}
	p = v.get(last)
	p.must(t, 200, "Nothing is left on this page")
	v.get(link(p, "First page")).must(t, 200, ">1 to ")
	v.get("/snapshots?cursor=odd&past=a.b.c").must(t, 400, `role="alert"`)
}

// The page of a snapshot shows the state of its certificate in words. An original has none.
func TestSnapshotsPageShowsTheCertificate(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	key := certificate.New()
	signed := c.PushCertified(alice, "shop", snap.TypeSanitized, []byte("signed"), certify(t, key, "signed"))
	bare := c.PushAs(alice, "shop", snap.TypeSanitized, []byte("bare"))
	original := c.Push(alice, "shop", []byte("raw"))
	v := visit(t, c, "alice@acme.test")
	is := func(id, want string) {
		t.Helper()
		v.get("/snapshots/"+id).must(t, 200, "<dt>Certificate</dt><dd><bdi>"+want)
	}
	id := key.PublicKey().ID()
	is(bare.ID, "none")
	is(signed.ID, "not valid: the key "+id+" is not registered")
	_, err := alice.AddCertificateKey(ctx, api.CertificateKeyRequest{Public: key.PublicKey().String(),
		Name: "<b>ci</b>"})
	must(t, err)
	is(signed.ID, "valid, signed by the key "+id+" (&lt;b&gt;ci&lt;/b&gt;)")
	must(t, alice.RevokeCertificateKey(ctx, id))
	is(signed.ID, "not valid: the key "+id+" (&lt;b&gt;ci&lt;/b&gt;) is revoked")
	if p := v.get("/snapshots/" + original.ID); strings.Contains(p.text, "Certificate") {
		t.Error("an original has a certificate")
	}
}

// certify returns a certificate for a file with this content.
func certify(t *testing.T, key certificate.Private, content string) json.RawMessage {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	text, err := certificate.Make(key, certificate.Subject{Name: "shop-1",
		Digest: certificate.Digest{SHA256: hex.EncodeToString(sum[:])}},
		certificate.Sanitization{Masked: 3, Tool: "test", Made: time.Unix(0, 0).UTC()})
	must(t, err)
	return text
}
