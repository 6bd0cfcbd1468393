package cloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/clocktest"
	"snap/internal/cloud"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
)

// sees reports whether the client finds the snapshot at every door: the
// listing, the lookup and the pull. It fails when the doors disagree.
func sees(t *testing.T, client *api.Client, id string) bool {
	t.Helper()
	ctx := context.Background()
	listed := false
	for s, err := range client.AllSnapshots(ctx, api.ListOptions{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = listed || s.ID == id
	}
	_, getErr := client.Snapshot(ctx, id)
	_, pullErr := client.Pull(ctx, id)
	_, resolveErr := client.Resolve(ctx, id[:len(id)-2])
	for _, err := range []error{getErr, pullErr, resolveErr} {
		if (err == nil) != listed || err != nil && !errors.Is(err, snap.ErrNotFound) {
			t.Fatalf("the doors disagree: listed %v, get %v, pull %v, resolve %v", listed, getErr, pullErr, resolveErr)
		}
	}
	return listed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// audience names those of everyone who see the snapshot.
func audience(t *testing.T, c *cloudtest.Cloud, id string) string {
	t.Helper()
	var who []string
	for _, email := range []string{"alice@acme.test", "adam@acme.test", "mia@acme.test", "gus@acme.test",
		"max@acme.test",
		"vic@acme.test", "gail@globex.test", "gary@globex.test", "ian@initech.test"} {
		if sees(t, c.As(email), id) {
			name, _, _ := strings.Cut(email, "@")
			who = append(who, name)
		}
	}
	return strings.Join(who, " ")
}

// SPEC 3: every transition, and who finds the snapshot after each; effective
// immediately.
func TestSharesWidenAndNarrowAtOnce(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	clock := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	c := cloudtest.Start(t, cloudtest.Options{Clock: clock})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	sn := c.Push(mia, "shop", []byte("private at first"))
	expires := clock.Now().Add(time.Hour)
	steps := []struct {
		name string
		do   func() error
		want string
	}{
		{"a new snapshot is private", func() error { return nil }, "alice adam mia"},
		{"shared with a group", func() error { _, err := mia.ShareGroup(ctx, sn.ID, "dba"); return err },
			"alice adam mia gus"},
		{"twice is once", func() error { _, err := mia.ShareGroup(ctx, sn.ID, "dba"); return err },
			"alice adam mia gus"},
		{"shared org-wide", func() error { _, err := mia.Share(ctx, sn.ID); return err }, "alice adam mia gus max vic"},
		{"no longer with the group", func() error { return mia.UnshareGroup(ctx, sn.ID, "dba") },
			"alice adam mia gus max vic"},
		{"private again", func() error { return mia.Unshare(ctx, sn.ID) }, "alice adam mia"},
		{"unshared twice", func() error { return mia.Unshare(ctx, sn.ID) }, "alice adam mia"},
		{"across organizations", func() error { _, err := alice.ShareOrg(ctx, sn.ID, "globex", nil); return err },
			"alice adam mia gail gary"},
		{"updated to end", func() error { _, err := alice.ShareOrg(ctx, sn.ID, "globex", &expires); return err },
			"alice adam mia gail gary"},
		{"a moment before its end", func() error { clock.Advance(time.Hour - time.Millisecond); return nil },
			"alice adam mia gail gary"},
		{"at its end", func() error { clock.Advance(time.Millisecond); return nil }, "alice adam mia"},
		{"revoked when it was over", func() error { return alice.UnshareOrg(ctx, sn.ID, "globex") }, "alice adam mia"},
		{"shared again", func() error { _, err := alice.ShareOrg(ctx, sn.ID, "globex", nil); return err },
			"alice adam mia gail gary"},
		{"revoked", func() error { return alice.UnshareOrg(ctx, sn.ID, "globex") }, "alice adam mia"},
	}
	for _, step := range steps {
		must(t, step.do())
		if got := audience(t, c, sn.ID); got != step.want {
			t.Fatalf("%s: seen by %q, want %q", step.name, got, step.want)
		}
	}
	const ended = 3 // the second unshare, and the one after the share's end, ended nothing
	page, err := alice.Audit(ctx, api.AuditOptions{Snapshot: sn.ID, Action: snap.AuditUnshared})
	if err != nil || len(page.Items) != ended {
		t.Errorf("%d lines about shares that were ended, %v", len(page.Items), err)
	}
}

// SPEC 2.3: there is one share per snapshot and organization. Sharing again updates it, and the
// response contains the replaced expiry.
func TestResharingUpdatesTheOneShare(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	sn := c.Push(alice, "shop", []byte("x"))
	expires := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Millisecond)
	first, err := alice.ShareOrg(ctx, sn.ID, "globex", &expires)
	must(t, err)
	if first.ExpiresAt == nil || !first.ExpiresAt.Equal(expires) || first.PreviousExpiresAt != nil {
		t.Errorf("first share: %+v", first)
	}
	second, err := alice.ShareOrg(ctx, sn.ID, "globex", nil)
	must(t, err)
	if second.ExpiresAt != nil || second.PreviousExpiresAt == nil || !second.PreviousExpiresAt.Equal(expires) {
		t.Errorf("second share: %+v", second)
	}
	shares, err := alice.OrgShares(ctx, sn.ID)
	must(t, err)
	if len(shares) != 1 || shares[0].OrgSlug != "globex" || shares[0].ExpiresAt != nil ||
		shares[0].SharedBy != "alice@acme.test" {
		t.Errorf("shares: %+v", shares)
	}
}

// DESIGN 3: a recipient gets certain fields, and the owner keeps the others.
func TestRecipientLearnsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	got, err := c.As("gail@globex.test").Snapshot(ctx, s.id)
	must(t, err)
	if !got.Shared || !got.Received || got.Organization != "acme" || got.Owner != "" || got.Groups != 0 ||
		got.Orgs != 0 {
		t.Errorf("the recipient sees %+v", got)
	}
	if want := (api.Can{Pull: true}); got.Can == nil || *got.Can != want {
		t.Errorf("the recipient can %+v", got.Can)
	}
	page, err := c.As("gary@globex.test").Snapshots(ctx, api.ListOptions{Filter: snap.FilterShared})
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].ID != s.id {
		t.Errorf("the recipient's shared listing: %+v", page.Items)
	}
	mine, err := c.As("mia@acme.test").Snapshot(ctx, s.id)
	must(t, err)
	if mine.Shared || mine.Groups != 1 || mine.Orgs != 0 || mine.Owner != "mia@acme.test" {
		t.Errorf("the pusher sees %+v", mine)
	}
	admins, err := c.As("adam@acme.test").Snapshot(ctx, s.id)
	must(t, err)
	if admins.Groups != 1 || admins.Orgs != 1 || !admins.Can.ShareOrg || !admins.Can.Delete {
		t.Errorf("the admin sees %+v", admins)
	}
}

// DESIGN 3: a share that is not possible is refused with the code of its cause, and leaves no
// share.
func TestShareRefusals(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.As("alice@acme.test")
	sn := c.Push(alice, "shop", []byte("x"))
	past := time.Now().Add(-time.Second)
	share := func(slug string, expires *time.Time) error {
		_, err := alice.ShareOrg(ctx, sn.ID, slug, expires)
		return err
	}
	_, noGroup := alice.ShareGroup(ctx, sn.ID, "nobody")
	for name, tt := range map[string]struct {
		err  error
		want snap.Code
	}{
		"own slug":           {share("acme", nil), snap.CodeInvalid},
		"unknown slug":       {share("hooli", nil), snap.CodeOrganizationNotFound},
		"expiry in the past": {share("globex", &past), snap.CodeInvalid},
		"unknown group":      {noGroup, snap.CodeGroupNotFound},
	} {
		if snap.CodeOf(tt.err) != tt.want {
			t.Errorf("%s: got %v, want %s", name, tt.err, tt.want)
		}
	}
	if shares, err := alice.OrgShares(ctx, sn.ID); err != nil || len(shares) != 0 {
		t.Errorf("a refusal left %v, %v", shares, err)
	}
}

// DESIGN 5: a share that the policy forbids, by its type or lifetime, is refused with the name of
// the rule.
func TestPolicyRefusesWithItsRule(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
		config.Organizations[0].Policy = cloud.Policy{ShareTypes: []snap.Type{snap.TypeSanitized},
			MaxCrossOrgExpiry: "7d"}
	}})
	alice := c.As("alice@acme.test")
	raw, clean := c.Push(alice, "shop", []byte("raw")), c.PushAs(alice, "shop", snap.TypeSanitized, []byte("clean"))
	week, later := time.Now().Add(6*24*time.Hour), time.Now().Add(8*24*time.Hour)
	refused := func(err error, rule string) {
		t.Helper()
		if snap.CodeOf(err) != snap.CodePolicy || !strings.Contains(err.Error(), rule) {
			t.Errorf("got %v, want a refusal by %s", err, rule)
		}
	}
	_, err := alice.Share(ctx, raw.ID)
	refused(err, "share_types")
	_, err = alice.ShareOrg(ctx, raw.ID, "globex", &week)
	refused(err, "share_types")
	_, err = alice.ShareOrg(ctx, clean.ID, "globex", nil)
	refused(err, "max_cross_org_expiry")
	_, err = alice.ShareOrg(ctx, clean.ID, "globex", &later)
	refused(err, "max_cross_org_expiry")
	_, err = alice.Share(ctx, clean.ID)
	must(t, err)
	_, err = alice.ShareOrg(ctx, clean.ID, "globex", &week)
	must(t, err)
	if _, err = alice.ShareGroup(ctx, raw.ID, "eng"); err != nil {
		t.Errorf("group shares are not limited by share_types: %v", err)
	}
}

// Each filter of a listing, including the four of the specification, does what its description
// says.
func TestFilters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, gail := c.As("mia@acme.test"), c.As("gail@globex.test")
	own := c.Push(mia, "shop", []byte("mia's own"))
	wide := c.PushAs(c.As("alice@acme.test"), "billing", snap.TypeSanitized, []byte("alice's, org-wide"))
	_, err := c.As("alice@acme.test").Share(ctx, wide.ID)
	must(t, err)
	got := c.Push(gail, "crm", []byte("from globex"))
	_, err = gail.ShareOrg(ctx, got.ID, "acme", nil)
	must(t, err)
	for name, tt := range map[string]struct {
		o    api.ListOptions
		want []string
	}{
		"all, newest first": {api.ListOptions{}, []string{got.ID, wide.ID, own.ID}},
		"shared":            {api.ListOptions{Filter: snap.FilterShared}, []string{got.ID, wide.ID}},
		"mine":              {api.ListOptions{Filter: snap.FilterMine}, []string{own.ID}},
		"received":          {api.ListOptions{Filter: snap.FilterReceived}, []string{got.ID}},
		"one target":        {api.ListOptions{Target: "billing"}, []string{wide.ID}},
		"one type":          {api.ListOptions{Type: snap.TypeSnapshot}, []string{got.ID, own.ID}},
		"search":            {api.ListOptions{Q: "bill"}, []string{wide.ID}},
		"nothing":           {api.ListOptions{Target: "nowhere"}, nil},
	} {
		page, err := mia.Snapshots(ctx, tt.o)
		must(t, err)
		var ids []string
		for _, s := range page.Items {
			ids = append(ids, s.ID)
		}
		if !slices.Equal(ids, tt.want) {
			t.Errorf("%s: got %v, want %v", name, ids, tt.want)
		}
	}
}

// DESIGN 4: input that is not understood is refused in one form.
func TestBadInput(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	key := c.Key("alice@acme.test")
	s := newScene(t, c)
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		code               snap.Code
	}{
		"unknown field": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share-group",
			`{"group_id":"eng","x":1}`, 400, snap.CodeInvalid},
		"field in capitals": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share-org",
			`{"org_slug":"globex","Expires_At":"2099-01-01T00:00:00Z"}`, 400, snap.CodeInvalid},
		"parameter twice":   {"GET", api.MountAgent + "/snapshots?target=shop&target=crm", "", 400, snap.CodeInvalid},
		"unknown parameter": {"GET", api.MountAgent + "/snapshots?targt=shop", "", 400, snap.CodeInvalid},
		"body after blanks": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share", strings.Repeat(" ", 2000) +
			`{"group_id":"eng"}`, 400, snap.CodeInvalid},
		"body of another route": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share",
			`{"group_id":"eng"}`, 400, snap.CodeInvalid},
		"missing field": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share-group", `{}`, 400, snap.CodeInvalid},
		"no JSON":       {"POST", api.MountAgent + "/snapshots/" + s.id + "/share-group", `{`, 400, snap.CodeInvalid},
		"not a time": {"POST", api.MountAgent + "/snapshots/" + s.id + "/share-org",
			`{"org_slug":"globex","expires_at":"tomorrow"}`, 400, snap.CodeInvalid},
		"limit too large": {"GET", api.MountAgent + "/snapshots?limit=201", "", 400, snap.CodeInvalid},
		"limit no number": {"GET", api.MountAgent + "/snapshots?limit=x", "", 400, snap.CodeInvalid},
		"unknown filter":  {"GET", api.MountAgent + "/snapshots?filter=some", "", 400, snap.CodeInvalid},
		"bad cursor":      {"GET", api.MountAgent + "/snapshots?cursor=%21", "", 400, snap.CodeInvalid},
		"bad checksum": {"POST", api.MountAgent + "/snapshots", strings.Replace(pushBody, "ba78", "zz78", 1), 400,
			snap.CodeInvalid},
		"bad target": {"POST", api.MountAgent + "/snapshots",
			strings.Replace(pushBody, `"shop"`, `"../shop"`, 1), 400, snap.CodeInvalid},
		"name with a path": {"POST", api.MountAgent + "/snapshots",
			strings.Replace(pushBody, `"name":"`, `"name":"../`, 1), 400, snap.CodeInvalid},
		"name with escape": {"POST", api.MountAgent + "/snapshots",
			strings.Replace(pushBody, `"name":"`, `"name":"a\u001b[31m`, 1), 400, snap.CodeInvalid},
		"no such path":      {"GET", "/api/v1/nothing", "", 404, snap.CodeNotFound},
		"no such method":    {"PATCH", api.MountAgent + "/snapshots", "", 405, snap.CodeMethodNotAllowed},
		"keys by key":       {"GET", api.MountAgent + "/keys", "", 404, snap.CodeNotFound},
		"a key, user mount": {"GET", api.MountUser + "/me", "", 401, snap.CodeUnauthenticated},
	} {
		res, data := send(t, tt.method, c.URL+tt.path, tt.body, key)
		if p := problemIn(t, res, data); res.StatusCode != tt.status || p.Code != tt.code {
			t.Errorf("%s: got %d %s (%s)", name, res.StatusCode, p.Code, data)
		}
	}
	res, data := send(t, http.MethodPost, c.URL+api.MountAgent+"/snapshots",
		`{"target":"`+strings.Repeat("x", 2<<20)+`"}`, key)
	if p := problemIn(t, res, data); p.Code != snap.CodeTooLarge {
		t.Errorf("a huge body: %d %s", res.StatusCode, p.Code)
	}
}

// DESIGN 4: every changing request accepts Idempotency-Key.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	post := func(key, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, c.URL+api.MountAgent+"/snapshots/"+s.id+"/share-org",
			strings.NewReader(body))
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+c.Key("alice@acme.test"))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		defer res.Body.Close()
		var b strings.Builder
		_, err = copyAll(&b, res.Body)
		must(t, err)
		return res.StatusCode, b.String()
	}
	status, first := post("one", `{"org_slug":"initech"}`)
	if status != 200 {
		t.Fatalf("first: %d %s", status, first)
	}
	must(t, c.As("alice@acme.test").UnshareOrg(context.Background(), s.id, "initech"))
	if status, again := post("one", `{"org_slug":"initech"}`); status != 200 || again != first {
		t.Errorf("again: %d %s, want the first answer %s", status, again, first)
	}
	if sees(t, c.As("ian@initech.test"), s.id) {
		t.Error("a repeated request was carried out twice")
	}
	if status, body := post("one", `{"org_slug":"globex"}`); status != 409 {
		t.Errorf("another request under the same key: %d %s", status, body)
	}
}

// RFC 9110 section 8.3.1: media types have no case. Media types other than JSON are refused with
// the code for media types.
func TestMediaTypes(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	s := newScene(t, c)
	for media, want := range map[string]snap.Code{
		"": "", "application/json": "", "Application/JSON; Charset=UTF-8": "",
		"text/plain": snap.CodeMediaType, "application/x-www-form-urlencoded": snap.CodeMediaType,
		"nonsense": snap.CodeMediaType,
	} {
		req, err := http.NewRequest(http.MethodPost, c.URL+api.MountAgent+"/snapshots/"+s.id+"/share-group",
			strings.NewReader(`{"group_id":"eng"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", media)
		req.Header.Set("Authorization", "Bearer "+c.Key("alice@acme.test"))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var p api.Problem
		if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if p.Code != want || p.Detail != "" && !strings.Contains(p.Detail, "media type") {
			t.Errorf("%q: %d %s: %s", media, res.StatusCode, p.Code, p.Detail)
		}
	}
}

// A browser that requests a missing address gets a page. Programs, and everyone who requests an
// address of the API, get an error like all others.
func TestNothingAtAPath(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct {
		path, accept string
		page         bool
	}{
		{"/nothing", browser, true},
		{"/nothing/x?y=1", browser, true},
		{"/nothing", "*/*", false},
		{"/api/v1/nothing", browser, false},
		{"/blobs/nothing/more", browser, false},
	} {
		res, text := get(t, c.URL+tt.path, "Accept", tt.accept)
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s for %s: status %d", tt.path, tt.accept, res.StatusCode)
		}
		if !tt.page {
			problemIn(t, res, text)
		} else if res.Header.Get("Content-Type") != "text/html; charset=utf-8" ||
			res.Header.Get("Content-Security-Policy") == "" || !strings.Contains(string(text), `href="/auth/account"`) {
			t.Errorf("%s for %s: %v %s", tt.path, tt.accept, res.Header, text)
		}
	}
}

// A duration is measured by the service's clock, and the response contains the recorded end,
// whatever the caller's clock says.
func TestADurationIsMeasuredByTheServicesClock(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	start := time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Second) // the caller's clock is two days ahead
	c := cloudtest.Start(t, cloudtest.Options{Clock: clocktest.New(start)})
	alice := c.As("alice@acme.test")
	sn := c.Push(alice, "shop", []byte("x"))
	made, err := alice.ShareWith(ctx, sn.ID, api.SharesRequest{OrgSlugs: []string{"globex"}, ExpiresIn: 3600}, false)
	must(t, err)
	want := start.Add(time.Hour)
	if got := made.Changes[0].ExpiresAt; got == nil || !got.Equal(want) {
		t.Errorf("the share ends at %v, want %v", got, want)
	}
	shares, err := alice.OrgShares(ctx, sn.ID)
	must(t, err)
	if !shares[0].ExpiresAt.Equal(want) {
		t.Errorf("recorded: %v, want %v", shares[0].ExpiresAt, want)
	}
	past := start.Add(-time.Minute)
	_, err = alice.ShareOrg(ctx, sn.ID, "globex", &past)
	var refusal *snap.Error
	if !errors.As(err, &refusal) || refusal.Code != snap.CodeInvalid || !strings.Contains(refusal.Hint, "expires_in") ||
		strings.Contains(refusal.Hint, "never") {
		t.Errorf("an end in the past: %#v", refusal)
	}
	_, err = alice.ShareWith(ctx, sn.ID, api.SharesRequest{OrgSlugs: []string{"globex"}, ExpiresIn: 1,
		ExpiresAt: &want},
		false)
	if snap.CodeOf(err) != snap.CodeInvalid {
		t.Errorf("both ways to give an end: %v", err)
	}
}

// Several recipients are one change: all of it is done, or nothing, with one
// audit line each.
func TestSeveralSharesAreOneChange(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, mia := c.As("alice@acme.test"), c.As("mia@acme.test")
	sn := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("x"))
	lines := func(action snap.AuditAction) int {
		page, err := alice.Audit(ctx, api.AuditOptions{Snapshot: sn.ID, Action: action})
		must(t, err)
		return len(page.Items)
	}
	for _, r := range []api.SharesRequest{
		{GroupIDs: []string{"eng", "nobody"}},
		{GroupIDs: []string{"eng"}, OrgSlugs: []string{"globex", "hooli"}},
		{OrgSlugs: []string{"globex", "acme"}},
		{},
	} {
		if _, err := alice.ShareWith(ctx, sn.ID, r, false); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
	if _, err := mia.ShareWith(ctx, sn.ID, api.SharesRequest{GroupIDs: []string{"eng"}, OrgSlugs: []string{"globex"}},
		false); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member shares with an organization: %v", err)
	}
	if n := lines(snap.AuditShared); n != 0 {
		t.Fatalf("refused changes left %d shares", n)
	}
	made, err := alice.ShareWith(ctx, sn.ID, api.SharesRequest{GroupIDs: []string{"eng", "dba", "eng"},
		OrgSlugs: []string{"globex", "initech"}, ExpiresIn: 60}, false)
	must(t, err)
	if len(made.Changes) != 4 || lines(snap.AuditShared) != 4 || made.Warning != "" {
		t.Errorf("%d changes, %d audit lines, warning %q", len(made.Changes), lines(snap.AuditShared), made.Warning)
	}
	if got := audience(t, c, sn.ID); got != "alice adam mia gus gail gary ian" {
		t.Errorf("seen by %q", got)
	}
	if _, err := mia.UnshareFrom(ctx, sn.ID, api.UnshareRequest{All: true}); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a member ends shares with organizations: %v", err)
	}
	if _, err := alice.UnshareFrom(ctx, sn.ID,
		api.UnshareRequest{GroupIDs: []string{"eng", "nobody"}}); snap.CodeOf(err) != snap.CodeGroupNotFound {
		t.Errorf("an unknown group: %v", err)
	}
	if n := lines(snap.AuditUnshared); n != 0 {
		t.Fatalf("refused changes ended %d shares", n)
	}
	ended, err := alice.UnshareFrom(ctx, sn.ID, api.UnshareRequest{All: true})
	must(t, err)
	if len(ended.Changes) != 4 || lines(snap.AuditUnshared) != 4 {
		t.Errorf("%d changes, %d audit lines", len(ended.Changes), lines(snap.AuditUnshared))
	}
	if got := audience(t, c, sn.ID); got != "alice adam mia" {
		t.Errorf("after all ended: seen by %q", got)
	}
}

// The policy unsanitized_shares covers every way to share.
func TestUnsanitizedShares(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	ctx := context.Background()
	start := func(choice snap.UnsanitizedShares) (*cloudtest.Cloud, *api.Client, api.Snapshot) {
		c := cloudtest.Start(t, cloudtest.Options{Config: func(config *cloud.Config) {
			config.Organizations[0].Policy.UnsanitizedShares = choice
		}})
		alice := c.As("alice@acme.test")
		return c, alice, c.Push(alice, "shop", []byte("raw"))
	}
	ways := func(alice *api.Client, id string) map[string]error {
		_, wide := alice.Share(ctx, id)
		_, group := alice.ShareGroup(ctx, id, "eng")
		_, org := alice.ShareOrg(ctx, id, "globex", nil)
		_, many := alice.ShareWith(ctx, id, api.SharesRequest{GroupIDs: []string{"dba"}}, false)
		_, channel := alice.AddChannel(ctx, api.ChannelRequest{Target: "shop", Type: snap.TypeSnapshot, GroupID: "eng"},
			false)
		return map[string]error{"org-wide": wide, "group": group, "organization": org, "several": many,
			"channel": channel}
	}
	for choice, want := range map[snap.UnsanitizedShares]snap.Code{"": "", snap.UnsanitizedAllow: "",
		snap.UnsanitizedAsk: snap.CodeConfirm, snap.UnsanitizedRefuse: snap.CodePolicy} {
		_, alice, sn := start(choice)
		for way, err := range ways(alice, sn.ID) {
			if snap.CodeOf(err) != want {
				t.Errorf("%q, %s: %v, want %q", choice, way, err, want)
			}
		}
	}
	c, alice, sn := start(snap.UnsanitizedAsk)
	made, err := alice.ShareWith(ctx, sn.ID, api.SharesRequest{GroupIDs: []string{"eng"}, OrgSlugs: []string{"globex"}},
		true)
	must(t, err)
	if want := "this snapshot is not sanitized: 2 more people in your organization and everyone in globex can now " +
		"see the original, unmasked data"; made.Warning != want {
		t.Errorf("warning %q, want %q", made.Warning, want)
	}
	if again, err := alice.ShareWith(ctx, sn.ID, api.SharesRequest{GroupIDs: []string{"eng"}}, true); err != nil ||
		again.Warning != "" {
		t.Errorf("shared again: %q, %v", again.Warning, err)
	}
	if _, err := alice.Share(ctx, c.PushAs(alice, "shop", snap.TypeSanitized, []byte("clean")).ID); err != nil {
		t.Errorf("a sanitized one: %v", err)
	}
	_, alice, sn = start(snap.UnsanitizedAllow)
	shared, err := alice.Share(ctx, sn.ID)
	must(t, err)
	if !strings.Contains(shared.Warning, "4 more people in your organization can now see") {
		t.Errorf("warning %q", shared.Warning)
	}
}

// The owner learns that a snapshot is shared outside the organization, but not with whom. Other
// members learn nothing about it.
func TestTheOwnerSeesThatItIsSharedOutside(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, mia, max := c.As("alice@acme.test"), c.As("mia@acme.test"), c.As("max@acme.test")
	sn := c.PushAs(mia, "shop", snap.TypeSanitized, []byte("x"))
	_, err := mia.Share(ctx, sn.ID)
	must(t, err)
	_, err = alice.ShareOrg(ctx, sn.ID, "globex", nil)
	must(t, err)
	sees := func(who *api.Client) (bool, int) {
		one, err := who.Snapshot(ctx, sn.ID)
		must(t, err)
		page, err := who.Snapshots(ctx, api.ListOptions{})
		must(t, err)
		if page.Items[0].Outside != one.Outside {
			t.Errorf("the listing says %v, the record %v", page.Items[0].Outside, one.Outside)
		}
		return one.Outside, one.Orgs
	}
	if outside, orgs := sees(mia); !outside || orgs != 0 {
		t.Errorf("the owner: outside %v, %d organizations", outside, orgs)
	}
	if outside, orgs := sees(alice); !outside || orgs != 1 {
		t.Errorf("an admin: outside %v, %d organizations", outside, orgs)
	}
	if outside, _ := sees(max); outside {
		t.Error("another member sees it")
	}
	me, err := mia.Me(ctx)
	must(t, err)
	if len(me.Notices) != 1 || me.Notices[0].Snapshot != sn.ID || me.Notices[0].Actor != "alice@acme.test" ||
		strings.Contains(me.Notices[0].Text, "globex") {
		t.Errorf("the owner gets %+v", me.Notices)
	}
	access, err := mia.Access(ctx, sn.ID, "")
	must(t, err)
	if last := access.Ways[len(access.Ways)-1]; last.Kind != "organization" || last.Organization != "" ||
		!strings.Contains(last.Through, "outside the organization") {
		t.Errorf("access tells the owner %+v", last)
	}
	log, err := alice.Audit(ctx, api.AuditOptions{Snapshot: sn.ID, Action: snap.AuditShared})
	must(t, err)
	if got := log.Items[0].Detail; got.Owner != "mia@acme.test" || got.Organization != "globex" {
		t.Errorf("the event names %+v", got)
	}
	must(t, alice.UnshareOrg(ctx, sn.ID, "globex"))
	if outside, _ := sees(mia); outside {
		t.Error("the owner sees it after it ended")
	}
}
