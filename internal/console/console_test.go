package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"snap"
	"snap/api"
	"snap/internal/cloudtest"
	"snap/internal/servertest"
	"snap/internal/store"
)

// pages are the addresses of the console.
var pages = []string{"", "/members", "/groups", "/outside", "/keys", "/channels", "/retention", "/webhooks", "/audit",
	"/storage"}

// visitor is a person at a browser who opens pages of the console.
type visitor struct {
	t    *testing.T
	c    *cloudtest.Cloud
	http *http.Client
}

// visit returns a browser in which the person with this e-mail is signed in; "" is nobody.
func visit(t *testing.T, c *cloudtest.Cloud, email string) *visitor {
	t.Helper()
	b := c.Browser()
	if email != "" {
		b.SignIn(email)
	}
	client := *b.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &visitor{t, c, &client}
}

// page is a response.
type page struct {
	*http.Response
	text string
}

func (v *visitor) do(req *http.Request, err error) page {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	res, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return page{res, string(text)}
}

func (v *visitor) get(path string) page {
	v.t.Helper()
	return v.do(http.NewRequest(http.MethodGet, v.c.URL+path, nil))
}

var token = regexp.MustCompile(`name="csrf_token" value="([^"]+)"`)

// submit sends a form of a page, as a browser does, and returns the page that follows.
func (v *visitor) submit(path string, fields ...string) page {
	v.t.Helper()
	p := v.post(path, v.token(path), fields...)
	if p.StatusCode == http.StatusSeeOther {
		return v.get(p.Header.Get("Location"))
	}
	return p
}

func (v *visitor) token(path string) string {
	v.t.Helper()
	found := token.FindStringSubmatch(v.get(path).text)
	if found == nil {
		v.t.Fatalf("%s has no form", path)
	}
	return found[1]
}

func (v *visitor) post(path, csrf string, fields ...string) page {
	v.t.Helper()
	form := url.Values{"csrf_token": {csrf}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	req, err := http.NewRequest(http.MethodPost, v.c.URL+path, strings.NewReader(form.Encode()))
	if err == nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", v.c.URL)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return v.do(req, err)
}

// undo returns the fields of the form by which the page offers Undo.
func (p page) undo() (fields []string) {
	form := regexp.MustCompile(`(?s)<form class="undo".*?</form>`).FindString(p.text)
	for _, f := range regexp.MustCompile(`name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		if f[1] != "csrf_token" {
			fields = append(fields, f[1], html.UnescapeString(f[2]))
		}
	}
	return fields
}

func (p page) must(t *testing.T, status int, want ...string) {
	t.Helper()
	if p.StatusCode != status {
		t.Fatalf("%s answered %d, want %d:\n%s", p.Request.URL, p.StatusCode, status, p.text)
	}
	for _, text := range want {
		if !strings.Contains(p.text, text) {
			t.Errorf("%s lacks %q:\n%s", p.Request.URL, text, p.text)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// People who are not owners or admins get the same response as for an address that does not exist,
// and can change nothing. People who are signed out are sent to the sign-in page, and from there
// back.
func TestOnlyOwnersAndAdminsGetIn(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	for _, email := range []string{"mia@acme.test", "vic@acme.test"} {
		v := visit(t, c, email)
		for _, path := range append(pages, "/audit/export?format=csv") {
			got, absent := v.do(browserGet(c.URL+"/console"+path)), v.do(browserGet(c.URL+"/console/no-such-page"))
			got.must(t, http.StatusNotFound)
			got.Header.Del("X-Request-Id")
			absent.Header.Del("X-Request-Id")
			got.Header.Del("Date")
			absent.Header.Del("Date")
			if got.text != absent.text || !sameHeaders(got.Header, absent.Header) {
				t.Errorf("%s tells %s that it exists: %v, %v", path, email, got.Header, absent.Header)
			}
			v.post("/console"+path, "x").must(t, map[bool]int{true: 404, false: 405}[canPost(path)])
		}
	}
	for _, path := range pages {
		p := visit(t, c, "").get("/console" + path)
		p.must(t, http.StatusSeeOther)
		if want := "/auth/signin?next=" + url.QueryEscape("/console"+path); p.Header.Get("Location") != want {
			t.Errorf("%s leads to %s, want %s", path, p.Header.Get("Location"), want)
		}
	}
	// A key or an access token opens no page.
	req, err := browserGet(c.URL + "/console/members")
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+c.Token("alice@acme.test"))
	visit(t, c, "").do(req, nil).must(t, http.StatusNotFound)
}

func canPost(path string) bool {
	return path != "" && path != "/storage" && !strings.HasPrefix(path, "/audit/export")
}

func browserGet(url string) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err == nil {
		req.Header.Set("Accept", "text/html")
	}
	return req, err
}

func sameHeaders(a, b http.Header) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

// Forms count only from our own pages: with the browser's token, from this origin, in this session.
// No page can be framed, and none has an inline script or style.
func TestFormsAndHeadersAreThoseOfTheSignInPages(t *testing.T) {
	t.Parallel()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice, adam := visit(t, c, "alice@acme.test"), visit(t, c, "adam@acme.test")
	must(t, ruleOf(c, "shop"))
	good := alice.token("/console/retention")
	another := adam.token("/console/retention")
	for name, csrf := range map[string]string{"none": "", "another's": another, "bad": good + "x"} {
		if p := alice.post("/console/retention", csrf, "delete", "shop"); p.StatusCode != http.StatusForbidden {
			t.Errorf("%s token: status %d", name, p.StatusCode)
		}
	}
	form := url.Values{"csrf_token": {good}, "delete": {"shop"}}.Encode()
	for _, header := range []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"} {
		req, err := http.NewRequest(http.MethodPost, c.URL+"/console/retention", strings.NewReader(form))
		must(t, err)
		name, value, _ := strings.Cut(header, ": ")
		req.Header.Set(name, value)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		alice.do(req, nil).must(t, http.StatusForbidden)
	}
	rules, err := c.As("alice@acme.test").Retention(t.Context())
	if err != nil || len(rules) != 1 {
		t.Fatalf("a forged form deleted the rule: %v, %v", rules, err)
	}
	sign := alice.get("/auth/account").Header
	for _, path := range pages {
		p := alice.get("/console" + path)
		p.must(t, http.StatusOK)
		for _, name := range []string{"Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options",
			"Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cache-Control"} {
			if p.Header.Get(name) == "" || p.Header.Get(name) != sign.Get(name) {
				t.Errorf("%s has %s %q, the account page %q", path, name, p.Header.Get(name), sign.Get(name))
			}
		}
		for _, bad := range []string{"<script", "<style", " style=", " onclick=", "http://", "https://"} {
			if text := strings.ReplaceAll(p.text, "https://hooks.example", ""); strings.Contains(text, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
	for _, cookie := range alice.http.Jar.Cookies(must1(url.Parse(c.URL))) {
		if cookie.Value == "" {
			t.Errorf("cookie %s is empty", cookie.Name)
		}
	}
}

func must1[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ruleOf(c *cloudtest.Cloud, target string) error {
	_, err := c.As("alice@acme.test").SetRetention(context.Background(), api.RetentionRule{Target: target, KeepLast: 1})
	return err
}

// The pages show the organization's data, and no other organization's.
func TestPagesShowTheOrganization(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	shop := c.Push(mia, "shop", []byte("twelve bytes"))
	gone := c.Push(mia, "gone", []byte("gone soon"))
	must(t, alice.Delete(ctx, gone.ID))
	c.Push(c.As("gail@globex.test"), "secret-of-globex", []byte("x"))
	_, err := mia.ShareGroup(ctx, shop.ID, "eng")
	must(t, err)
	end := time.Now().Add(48 * time.Hour)
	_, err = alice.ShareOrg(ctx, shop.ID, "globex", &end)
	must(t, err)
	_, err = alice.AddChannel(ctx, api.ChannelRequest{Target: "nightly", GroupID: "dba"}, false)
	must(t, err)
	_, err = alice.AddWebhook(ctx, api.WebhookRequest{URL: "https://hooks.example/x"})
	must(t, err)
	must(t, ruleOf(c, "shop"))
	must(t, alice.Pulled(ctx, shop.ID, 12))
	v := visit(t, c, "adam@acme.test")
	for path, want := range map[string][]string{
		"":                   {"Snapshots stored", "1 now", "12 B now", "1 in 30 days", "<svg", "<table"},
		"/members":           {"mia@acme.test", "vic@acme.test", "6 accounts", "eng", "Sign out adam@acme.test"},
		"/members?q=vic":     {"1 account", "vic@acme.test"},
		"/groups":            {"/console/groups?id=eng", "dba", "by SCIM"},
		"/groups?id=eng":     {"mia@acme.test", "gus@acme.test", shop.Name, "End share of " + shop.Name + " with eng"},
		"/outside":           {"Globex Corporation", shop.Name, "ends in", "alice@acme.test"},
		"/keys":              {"mia@acme.test", "adam@acme.test", "this browser", "Revoke test of mia@acme.test"},
		"/channels":          {"nightly", "dba"},
		"/retention":         {"shop", "The rules would delete nothing now."},
		"/webhooks":          {"https://hooks.example/x", "enabled"},
		"/audit":             {"snapshot.shared", "organization globex", shop.ID, "mia@acme.test", "127.0.0.1"},
		"/storage":           {"shop", "12 B", "mia@acme.test"},
		"/audit?actor=x@y.z": {"No lines match."},
	} {
		p := v.get("/console" + path)
		p.must(t, http.StatusOK, want...)
		for _, secret := range []string{"secret-of-globex", "gail@globex.test"} {
			if strings.Contains(p.text, secret) {
				t.Errorf("%s shows %q of another organization", path, secret)
			}
		}
	}
	if p := v.get("/console/members?q=vic"); strings.Contains(p.text, "mia@acme.test") {
		t.Error("the search does not filter")
	}
	v.get("/console/groups?id=no-such").must(t, http.StatusNotFound)
	org := must1(c.Store.OrgBySlug(ctx, "acme"))
	must1(c.Store.ApplySignIn(ctx, store.SignIn{OrgID: org.ID, Issuer: "https://idp.test", Subject: "zoe",
		Email: "zoe@acme.test", Role: snap.RoleMember, Groups: []snap.Group{{GroupID: "other", Name: "eng"}}}))
	for id, of := range map[string][2]string{"eng": {"mia@acme.test", "zoe@acme.test"},
		"other": {"zoe@acme.test", "mia@acme.test"}} { // two groups with the name eng
		p := v.get("/console/groups?id=" + id)
		if p.must(t, http.StatusOK, of[0]); strings.Contains(p.text, of[1]) {
			t.Errorf("the group %s lists %s, who is in the other group of this name", id, of[1])
		}
	}
	v.get("/console/audit?since=yesterday").must(t, http.StatusBadRequest, "A date of the filter is not valid")
	v.get("/console/audit?action=no.such").must(t, http.StatusBadRequest, "is not an action of the audit log")
	// A link cannot make a page announce anything else.
	if p := v.get("/console/members?done=Hello"); strings.Contains(p.text, "Hello") {
		t.Error("the address's text is on the page")
	}
}

// Each form of the console changes what the API shows, and the page announces it.
func TestFormsChangeWhatTheySay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	old := c.Push(mia, "shop", []byte("old"))
	shop := c.Push(mia, "shop", []byte("new"))
	_, err := mia.ShareGroup(ctx, shop.ID, "eng")
	must(t, err)
	_, err = alice.ShareOrg(ctx, shop.ID, "globex", nil)
	must(t, err)
	v := visit(t, c, "adam@acme.test")

	v.submit("/console/outside", "snapshot", shop.ID, "organization", "globex").must(t, 200, "The share ended.",
		"Nothing is shared with another organization.")
	if _, err := c.As("gail@globex.test").Snapshot(ctx, shop.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("globex still sees it: %v", err)
	}
	v.submit("/console/groups?id=eng", "snapshot", shop.ID, "group", "eng").must(t, 200, "The share ended.",
		"Nothing is shared with this group.")

	v.submit("/console/channels", "target", "shop", "type", "sanitized", "group", "dba").must(t, 200,
		"The channel was created.", "Delete the channel of shop")
	channels, err := alice.Channels(ctx)
	must(t, err)
	v.submit("/console/channels", "delete", channels[0].ID).must(t, 200, "The channel was deleted",
		"There are no channels.")
	v.submit("/console/channels", "target", "no/such", "type", "sanitized").must(t, 400, `value="no/such"`,
		"role=\"alert\"")

	v.submit("/console/retention", "target", "shop", "last", "many").must(t, 400, "is not a whole number",
		`value="many"`)
	v.submit("/console/retention", "target", "shop", "last", "1").must(t, 200, "The retention rule was saved.",
		"1 snapshot would be deleted now", old.Name)
	v.submit("/console/retention", "apply", "yes").must(t, 200, "The retention rules were applied.")
	if _, err := mia.Snapshot(ctx, old.ID); snap.CodeOf(err) != snap.CodeNotFound {
		t.Errorf("the old snapshot is still there: %v", err)
	}
	v.submit("/console/retention", "delete", "shop").must(t, 200, "kept indefinitely", "every snapshot is kept")

	v.submit("/console/webhooks", "do", "create", "url", "http://plain.example").must(t, 400,
		"must begin with https://")
	v.submit("/console/webhooks", "do", "create", "url", "https://hooks.example/x", "format", "standard").must(t, 200,
		"whsec_", "It is not shown again.")
	hooks, err := alice.Webhooks(ctx)
	must(t, err)
	v.submit("/console/webhooks", "do", "delete", "id", hooks[0].ID).must(t, 200, "The webhook was deleted.")
	v.submit("/console/webhooks", "do", "explode").must(t, 400, "The form does not say what to do")

	keys, err := c.SignedIn("alice@acme.test").Keys(ctx, api.KeyFilter{All: true})
	must(t, err)
	for _, k := range keys {
		if k.User == "mia@acme.test" {
			v.submit("/console/keys", "key", k.ID).must(t, 200, "The key was revoked.")
		}
	}
	if _, err := mia.Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("mia's key still works: %v", err)
	}
}

// Owners and admins sign out the people of their organization, and not those of another.
func TestSignOutPeople(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, gail := c.SignedIn("mia@acme.test"), c.SignedIn("gail@globex.test")
	v := visit(t, c, "alice@acme.test")
	people, err := c.As("alice@acme.test").People(ctx)
	must(t, err)
	for _, p := range people {
		if p.Email == "mia@acme.test" {
			if p.LastSeen == nil || p.Sessions != 2 || p.Role != snap.RoleMember || p.GroupsAsOf == nil {
				t.Errorf("mia is %+v", p)
			}
			v.submit("/console/members", "id", p.ID).must(t, 200, "signed out of every device and browser")
		}
	}
	if _, err := mia.Me(ctx); snap.CodeOf(err) != snap.CodeUnauthenticated {
		t.Errorf("mia is still signed in: %v", err)
	}
	others, err := c.As("gail@globex.test").People(ctx)
	must(t, err)
	for _, p := range others {
		v.submit("/console/members", "id", p.ID).must(t, 404, "role=\"alert\"")
	}
	if sessions, err := gail.AllSessions(ctx); err != nil || len(sessions) == 0 {
		t.Fatalf("gail's sessions: %v, %v", sessions, err)
	} else {
		v.submit("/console/keys", "session", sessions[0].ID).must(t, 404)
	}
	if _, err := gail.Me(ctx); err != nil {
		t.Errorf("gail was signed out from another organization: %v", err)
	}
	if _, err := c.SignedIn("vic@acme.test").AllSessions(ctx); snap.CodeOf(err) != snap.CodeForbidden {
		t.Errorf("a viewer lists everybody's sessions: %v", err)
	}
}

// The export has every line that the filter selects, in both formats, and a spreadsheet reads no
// name as a formula. The verification reads every line.
func TestAuditIsExportedAndVerified(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	alice := c.SignedIn("alice@acme.test")
	_, err := alice.NewKey(ctx, api.KeyRequest{Kind: snap.UserKey, Name: `=HYPERLINK("x")`})
	must(t, err)
	v := visit(t, c, "adam@acme.test")
	var want []api.AuditEntry
	made := api.AuditOptions{OldestFirst: true, Action: snap.AuditKeyCreated}
	for e, err := range c.As("alice@acme.test").AllAudit(ctx, made) {
		must(t, err)
		want = append(want, e)
	}
	p := v.get("/console/audit/export?action=key.created&format=jsonl")
	p.must(t, 200)
	if got := strings.Count(p.text, "\n"); got != len(want) || got == 0 {
		t.Errorf("%d lines of JSON, want %d", got, len(want))
	}
	var first api.AuditEntry
	must(t, json.NewDecoder(strings.NewReader(p.text)).Decode(&first))
	if first.Hash != want[0].Hash {
		t.Errorf("the first line is %+v", first)
	}
	p = v.get("/console/audit/export?action=key.created&format=csv")
	p.must(t, 200)
	if kind := p.Header.Get("Content-Disposition"); !strings.HasPrefix(kind, `attachment; filename="audit-acme-`) {
		t.Errorf("disposition %s", kind)
	}
	rows, err := csv.NewReader(strings.NewReader(p.text)).ReadAll()
	must(t, err)
	if len(rows) != len(want)+1 {
		t.Errorf("%d rows, want %d", len(rows), len(want)+1)
	}
	for _, row := range rows {
		for _, cell := range row {
			if strings.HasPrefix(cell, "=") {
				t.Errorf("a formula: %q", cell)
			}
		}
	}
	v.submit("/console/audit").must(t, 200, "The log is intact", "snapcloud/acme")
}

// Pages with full tables stay below 60 KB, with their stylesheet and icon, and lead to the rest.
func TestPagesStaySmall(t *testing.T) {
	t.Parallel()
	servertest.Thorough(t)
	c := cloudtest.Start(t, cloudtest.Options{})
	mia, alice := c.As("mia@acme.test"), c.As("alice@acme.test")
	for i := range 30 {
		sn := c.Push(mia, "a target with a long name", []byte{byte(i)})
		_, err := alice.ShareOrg(t.Context(), sn.ID, "globex", nil)
		must(t, err)
		_, err = c.SignedIn("mia@acme.test").NewKey(t.Context(),
			api.KeyRequest{Kind: snap.UserKey, Name: "a key of mine"})
		must(t, err)
	}
	v := visit(t, c, "adam@acme.test")
	style := v.get(regexp.MustCompile(`href="([^"]+\.css)"`).FindStringSubmatch(v.get("/console").text)[1])
	for _, path := range pages {
		p := v.get("/console" + path)
		p.must(t, http.StatusOK)
		if size := len(p.text) + len(style.text); size > 59_000 {
			t.Errorf("%s is %d bytes with its stylesheet", path, size)
		}
	}
	cursor := regexp.MustCompile(`href="(/console/outside\?cursor=[^"]+)"`)
	next := cursor.FindStringSubmatch(v.get("/console/outside").text)
	if next == nil {
		t.Fatal("no next page of shares")
	}
	if n := strings.Count(v.get(next[1]).text, "End share</button>"); n != 5 {
		t.Errorf("%d shares on the second page", n)
	}
	v.get("/console/keys?keys=25").must(t, http.StatusOK, "a key of mine")
}

// A page that only reads authenticates its caller once, for all its requests to the API. After a
// form has ended the session that sent it, neither the response nor the next page shows data,
// although the form was admitted. A link from another site opens every page.
func TestPagesAfterTheirOwnSignOut(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := cloudtest.Start(t, cloudtest.Options{})
	v := visit(t, c, "alice@acme.test")
	for _, path := range pages {
		req, err := http.NewRequest(http.MethodGet, c.URL+"/console"+path, nil)
		must(t, err)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		v.do(req, nil).must(t, 200)
	}
	csrf := v.token("/console/members")
	people := must1(c.As("alice@acme.test").People(ctx))
	alice := people[slices.IndexFunc(people, func(p api.Person) bool { return p.Email == "alice@acme.test" })]
	form := url.Values{"csrf_token": {csrf}, "id": {alice.ID}}
	req, err := http.NewRequest(http.MethodPost, c.URL+"/console/members", strings.NewReader(form.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Fragment", "1")
	if p := v.do(req, nil); p.StatusCode != http.StatusSeeOther || strings.Contains(p.text, "mia@acme.test") {
		t.Errorf("the form that signed out its own browser answered %d: %s", p.StatusCode, p.text)
	}
	v.get("/console/members").must(t, http.StatusSeeOther)
}
